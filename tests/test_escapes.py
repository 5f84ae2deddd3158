from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.escapes import line_so_far, one_line, printable

ACTIVE = "\x1b\x07\x08\x0b\x0c\x7f\x9b\u202e\u2066\u2028\u200f:# \t\r\n[a"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain: a::b ## c, \u65e5\u672c\t\u00e9", "plain: a::b ## c, \u65e5\u672c\t\u00e9"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("\x9b31m", "\\u009b31m"),
        ("abc\u202edef", "abc\\u202edef"),
        ("x\r::error::y", "x\\u000d::error::y"),
        ("line\r\nline\r\n", "line\r\nline\r\n"),
        ("::error::a", ":\\u003aerror::a"),
        ("a\n \t\u3000::set-env::b\n:: c", "a\n \t\u3000:\\u003aset-env::b\n:\\u003a c"),
        ("a ##[error]b", "a ##\\u005berror]b"),
        ("###[error]b", "###\\u005berror]b"),
    ],
)
def test_what_acts_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_name_stays_on_its_line() -> None:
    assert one_line("a\n::error::\tb\r\n\x1b") == "a\\u000a::error::\\u0009b\\u000d\\u000a\\u001b"


@given(st.text(ACTIVE), st.text(ACTIVE))
def test_text_in_pieces_is_as_safe_as_in_one(first: str, second: str) -> None:
    shown = printable(first)
    shown += printable(second, line_so_far(shown))
    for line in shown.split("\n"):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert not set(line.removesuffix("\r")) & set(ACTIVE[:11])


@given(st.text(ACTIVE))
def test_json_has_the_same_characters(text: str) -> None:
    assert json.loads(printable(json.dumps({text: text}, indent=2, ensure_ascii=False))) == {
        text: text
    }
