"""Words that docs/glossary.md replaces do not come back in code, messages and documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
        *(path for path in (ROOT / "docs").glob("*.md") if path.stem != "glossary"),
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_words_are_those_of_the_glossary(path: Path) -> None:
    assert found(GENERATED.sub("", path.read_text(encoding="utf-8"))) == []


def test_a_replaced_word_is_found() -> None:
    assert found("The consumer is told, and\ngives back the slot.") == [
        "told: write reported",
        "gives back: write release, return",
    ]
    assert found("A consumer waits, and releases the slot that it is done with.") == []
