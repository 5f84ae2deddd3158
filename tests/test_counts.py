"""Numbers of things: the helper, and that messages of the command line use it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fa4gen
from fa4gen.counts import counted

PACKAGE = Path(fa4gen.__file__).parent
PLURALS = re.compile(
    r" (cases|configs|kernels|files|entries|problems|places|warnings|results|folders|orphans)\b"
)
SEEN = [
    path
    for room in ("cli", "sweep", "verify", "vendoring")
    for path in (PACKAGE / room).rglob("*.py")
]


@pytest.mark.parametrize(
    ("number", "what", "text"),
    [
        (1, "case", "1 case"),
        (0, "case", "0 cases"),
        (5, "entry", "5 entries"),
        (1, "kernel was", "1 kernel was"),
        (2, "kernel was", "2 kernels were"),
    ],
)
def test_counted(number: int, what: str, text: str) -> None:
    assert counted(number, what) == text


def plurals(tree: ast.AST) -> list[int]:
    """Lines where a plural follows a number that may be 1."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value, after in zip(node.values, node.values[1:], strict=False)
        if isinstance(value, ast.FormattedValue)
        and isinstance(after, ast.Constant)
        and PLURALS.match(after.value)
    ]


def test_no_message_says_1_cases() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in SEEN
        for line in plurals(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_such_a_message_is_found() -> None:
    assert plurals(ast.parse('f"{len(x)} cases: {y}"')) == [1]
    assert plurals(ast.parse("f\"{counted(len(x), 'case')}: {y}\"")) == []
