from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fa4gen.vendor import merge as merging
from fa4gen.vendor.merge import Merged, has_conflict, line_keys

TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"}\n"]), max_size=12).map(
    b"".join
)
CONFLICT = re.compile(rb"<{7} yours\n(.*?)={7}\n(.*?)>{7} fa4gen\n", re.DOTALL)


def merge(base: bytes, yours: bytes, ours: bytes, name: str = "fa4gen") -> Merged:
    return merging.merge(line_keys(base), yours, ours, name)


@st.composite
def edits_apart(draw: st.DrawFn) -> tuple[bytes, bytes, bytes, bytes]:
    """A text of different lines, edits by each side, two lines apart, and both together."""
    count = draw(st.integers(1, 30))
    base = [b"%d\n" % number for number in range(count)]
    sides = [list(base), list(base), list(base)]
    for number in range(0, count, 3):  # the two lines after it stay as they are
        whose = draw(st.sampled_from([None, 0, 1]))
        if whose is None:
            continue
        what = draw(
            st.sampled_from([b"", b"new %d\n" % number, b"x %d\ny %d\n" % (number, number)])
        )
        sides[whose][number] = sides[2][number] = what
    yours, ours, both = (b"".join(side) for side in sides)
    return b"".join(base), yours, ours, both


@given(edits_apart())
def test_edits_apart_always_merge(texts: tuple[bytes, bytes, bytes, bytes]) -> None:
    base, yours, ours, both = texts
    merged = merge(base, yours, ours)
    assert (merged.data, merged.conflicts) == (both, 0)


@given(TEXTS, TEXTS)
def test_one_side_alone_is_taken_whole(base: bytes, side: bytes) -> None:
    for merged in (merge(base, side, base), merge(base, base, side), merge(base, side, side)):
        assert (merged.data, merged.conflicts) == (side, 0)


def adds_only(base: bytes, side: bytes) -> bool:
    """Whether a side has all lines of the base, in their order."""
    rest = iter(side.splitlines())
    return all(line in rest for line in base.splitlines())


@example(b"b\na\na\na\n", b"a\na\na\na\n", b"a\nb\na\na\n")  # ours moves a line
@given(TEXTS, TEXTS, TEXTS)
def test_every_edited_line_is_there_or_in_conflict(base: bytes, yours: bytes, ours: bytes) -> None:
    merged = merge(base, yours, ours)
    found = CONFLICT.findall(merged.data)
    assert len(found) == merged.conflicts
    assert has_conflict(merged.data) == (merged.conflicts > 0)
    result = merged.data.splitlines()
    for side, other in ((yours, ours), (ours, yours)):
        for line in set(side.splitlines()):
            # All that a side has is in the result, if the other took nothing away, nor moved it.
            if line not in base.splitlines() or adds_only(base, other):
                assert result.count(line) >= side.splitlines().count(line)
    for line in set(base.splitlines()) - set(yours.splitlines()) - set(ours.splitlines()):
        assert line not in merged.data.splitlines()


@given(TEXTS, TEXTS, TEXTS)
def test_the_sides_are_alike(base: bytes, yours: bytes, ours: bytes) -> None:
    one, other = merge(base, yours, ours), merge(base, ours, yours)
    assert one.conflicts == other.conflicts
    swapped = CONFLICT.sub(
        lambda match: b"<<<<<<< yours\n%b=======\n%b>>>>>>> fa4gen\n" % (match[2], match[1]),
        other.data,
    )
    assert one.data == swapped


def test_a_conflict_shows_both_sides() -> None:
    base, yours, ours = (
        f"a\n{b}\nc\nc\nc\n{d}\n".encode() for b, d in ("bd", ("mine", "d"), ("theirs", "D"))
    )
    merged = merge(base, yours, ours, "fa4gen 2.0")
    assert merged.conflicts == 1
    assert merged.data == (
        b"a\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> fa4gen 2.0\nc\nc\nc\nD\n"
    )


@pytest.mark.parametrize(
    ("base", "yours", "ours"),
    [
        (b"a\nb\n", b"A\nb\n", b"a\nB\n"),  # edits that touch
        (b"a\n", b"a\nx\n", b"a\ny\n"),  # insertions at one place
        (b"a\nb\n", b"b\n", b"A\nb\n"),  # deleted here, changed there
        (b"", b"x\n", b"y\n"),
    ],
)
def test_what_cannot_be_told_apart_is_a_conflict(base: bytes, yours: bytes, ours: bytes) -> None:
    merged = merge(base, yours, ours)
    assert merged.conflicts == 1
    assert all(line in merged.data.splitlines() for line in yours.splitlines())


def test_a_last_line_without_end_keeps_that_and_never_joins_a_marker() -> None:
    assert merge(b"a\nb", b"A\nb", b"a\nb").data == b"A\nb"
    merged = merge(b"a", b"x", b"y")
    assert merged.data == b"<<<<<<< yours\nx\n=======\ny\n>>>>>>> fa4gen\n"


@given(edits_apart())
def test_windows_line_ends_of_the_user_are_no_edit(
    texts: tuple[bytes, bytes, bytes, bytes],
) -> None:
    base, yours, ours, both = texts
    merged = merge(base, yours.replace(b"\n", b"\r\n"), ours)
    expected = both.replace(b"\n", b"\r\n") if yours else both
    assert (merged.data, merged.conflicts) == (expected, 0)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a\n<<<<<<< HEAD\nb\n", True),
        (b"a\r\n>>>>>>> theirs\r\n", True),
        (b"<<<<<<<\n", True),
        (b"x <<<<<<< y\n", False),
        (b"<<<<<<<<\n", False),
        (b"=======\n", False),
    ],
)
def test_markers_are_found_whoever_put_them(data: bytes, found: bool) -> None:
    assert has_conflict(data) is found


def test_closing_lines_belong_to_the_line_before_them() -> None:
    base = b"int f(void) {\n  a();\n  b();\n  return 1;\n}\n\n"
    base += b"int g(void) {\n  c();\n  return 2;\n}\n"
    assert len(line_keys(base).keys) == 6  # and the end
    yours = base.replace(b"return 2", b"return 3")
    ours = base.replace(b"f(void)", b"f(int a)")
    merged = merge(base, yours, ours)
    assert merged.data == ours.replace(b"return 2", b"return 3")
    more = base.replace(b"  return 1", b"  d();\n  e();\n  return 1")
    yours = more.replace(b"}\n\n", b"}\n/* mine */\n\n")
    merged = merge(more, yours, more.replace(b"f(void)", b"f(int a)"))
    assert (merged.data, merged.conflicts) == (yours.replace(b"f(void)", b"f(int a)"), 0)


def test_keys_of_each_line_are_those_of_older_folders() -> None:
    lines = [b"a\n", b"}\n", b"\n", b"b\n", b"c\n", b"d\n"]
    keys = merging.LineKeys(tuple(merging._keys([*lines, b""], 16)), 16, "lines")
    base = b"".join(lines)
    merged = merging.merge(keys, base.replace(b"a", b"A"), base.replace(b"c", b"C"))
    assert (merged.data, merged.conflicts) == (b"A\n}\n\nb\nC\nd\n", 0)


def test_a_changed_line_of_the_same_key_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_keys", lambda lines, bits: [bits for _ in lines])
    base = line_keys(b"a\nb\n")
    merged = merging.merge(base, b"a\nmine\n", b"a\nb\n")
    assert merged.conflicts == 1
    assert b"mine\n" in merged.data


def test_an_edited_line_whose_key_is_the_old_one_is_not_lost() -> None:
    """A line's own key has few bits; the next line's key covers it as well."""
    base = b"a\nb\nc\nd\n"
    old = line_keys(base).keys[1]
    edit = next(
        line
        for line in (b"edit %d\n" % number for number in range(1 << 20))
        if line_keys(b"a\n" + line).keys[1] == old
    )
    merged = merge(base, base.replace(b"b\n", edit), base.replace(b"b\n", b"new\n"))
    assert merged.conflicts == 1
    assert edit in merged.data


def test_lines_that_go_on_belong_to_the_line_before_them() -> None:
    top = b"/* top\n * a\n * b\n * c\n * of it */\n"
    base = top + b"int f(int a,\n      int b);\na;\nb;\n// one\n// two\nx = 1 +\n    2;\n"
    assert len(line_keys(base).keys) == 10  # those at the top are five, and the end
    ours = base.replace(b"of it", b"of all")
    merged = merge(base, b"/* mine */\n" + base.replace(b"2;", b"3;"), ours)
    assert merged.conflicts == 0
    assert merged.data == b"/* mine */\n" + ours.replace(b"2;", b"3;")


def test_a_comment_is_about_the_line_after_it_and_a_block_begins_with_its_head() -> None:
    base = b"x;\n// one\na;\n\n// alone\n\nfor (;;) {\n  b;\n  c;\n}\nd;\n"
    assert len(line_keys(base).keys) == 7  # x, a, alone, b, c, d and the end
    short = b"int f(void) {\n  return 1;\n}\n\nint g(void) {\n  return 2;\n}\n"
    merged = merge(short, short.replace(b"1", b"3"), short.replace(b"2", b"4"))
    assert merged.conflicts == 1  # of two blocks side by side
    assert b"return 3" in merged.data
    assert b"return 4" in merged.data
