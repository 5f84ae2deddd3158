"""Words that the glossary replaces do not come back in code, messages and documents.

A docstring names its subject: one that begins in the middle of a sentence needs the line above it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
INSTEAD = {
    r"told": "reported",
    r"hears?": "waits for",
    r"gangs?": "warpgroup",
    r"(?<!its )(?<!their )ways? out": "suggested fix",
    r"through with": "done with",
    r"behind the (last|end)": "past the end",
    r"at hand": "this",
    r"mend(s|ed)?": "fix",
    r"lies": "is",
    r"gives? back|given back": "release, return",
    r"goes on": "continues",
    r"strangers?": "other projects",
}
PACKAGES = (
    "bench", "cli", "config", "designs", "emulator", "key_sources", "masks", "render",
    "runtime", "scores", "sweep", "toolchain", "tune", "vendoring", "verify",
)  # fmt: skip
FILES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(path for path in (ROOT / "docs").rglob("*.md") if path.stem != "glossary"),
        *(path for name in PACKAGES for path in (ROOT / "fa4gen" / name).rglob("*.py")),
        *(
            path
            for name in ("attention", "gemm", "ptx", "rings", "skeleton")
            for path in (ROOT / "templates" / name).rglob("*.j2")
        ),
    ]
)
GENERATED = re.compile(r"<!-- begin (\w[\w ]*) -->.*?<!-- end \1 -->", re.DOTALL)


ANY = re.compile("|".join(rf"(?:{pattern})" for pattern in INSTEAD))
"""One of the words, maybe within another: one quick look at texts that have none."""


def found(text: str) -> list[str]:
    """Each replaced word in ``text``, and what to write instead."""
    if not ANY.search(text.lower()):
        return []
    return [
        f"{match[0]}: write {word}"
        for pattern, word in INSTEAD.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
    ]


FRAGMENTS = {
    r"Of\b": "name the thing: 'The number of ...'",
    r"The same\b|As of\b|Likewise\b": "repeat the subject: the line above may not be shown",
    r"What\b|Whose\b": "a noun with an article ('The bytes that ...'), or a verb",
    r"See [\w.]+\.$": "@override without a docstring, or say what this method does",
}


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, also of attributes and constants."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text.strip()


def fragments(source: str, name: str) -> list[str]:
    """Each docstring of ``source`` that begins as a fragment, as file:line and what to write."""
    return [
        f"{name}:{line}: {text.splitlines()[0]!r}: {hint}"
        for line, text in docstrings(ast.parse(source))
        for pattern, hint in FRAGMENTS.items()
        if re.match(pattern, text)
    ]


@pytest.mark.parametrize("folder", ["fa4gen", "tests"])
def test_docstrings_are_no_fragments(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert len(paths) > 100
    assert [
        found
        for path in paths
        for found in fragments(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ] == []


@pytest.mark.parametrize(
    "text",
    ["Of a tile.", "The same of a row.", "What a tile has.", "Whose rows.", "As of.", "Likewise."],
)
def test_a_fragment_is_found(text: str) -> None:
    for source in (
        f'"""{text}"""',
        f'x = 1\n"""{text}"""',
        f'class A:\n    x: int\n    """{text}"""',
    ):
        (found,) = fragments(source, "a.py")
        line = source.count("\n") + 1
        assert found.startswith(f"a.py:{line}: {text!r}: ")


def test_a_reference_alone_is_a_fragment() -> None:
    assert len(fragments('def f() -> None:\n    """See Mask."""', "a.py")) == 1
    assert fragments('def f() -> None:\n    """Return the rows; see Mask."""', "a.py") == []
    assert fragments('"""Offsets of a row."""\nx = f("Of a tile.")', "a.py") == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_words_are_those_of_the_glossary(path: Path) -> None:
    assert found(GENERATED.sub("", path.read_text(encoding="utf-8"))) == []


def test_a_replaced_word_is_found() -> None:
    assert found("The consumer is told, and\ngives back the slot.") == [
        "told: write reported",
        "gives back: write release, return",
    ]
    assert found("A consumer waits, and releases the slot that it is done with.") == []
