"""How many lines of code are repeated.

python benchmarks/repeated_lines.py [PATH ...] [--run N] [--list N]

A line counts as repeated when it belongs to a run of N or more code lines (4 by default) that is
repeated, line for line, at another place of the same set. Blank lines, comments and docstrings are
not counted; indentation does not matter, nor does a line of brackets alone. Without PATH the two
sets of the project are measured: ``templates`` without ``templates/vendored``, and
``fa4gen/designs``.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SETS = (("templates",), ("fa4gen/designs",))
EXCLUDED = ("templates/vendored",)
JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


@dataclass(frozen=True)
class CodeLine:
    """A line of code without its indentation, and its place."""

    file: str
    number: int
    """1-based."""
    text: str


def docstring_lines(source: str) -> set[int]:
    """Line numbers of strings that are statements: docstrings and attribute documentation."""
    return {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def code_lines(path: Path, name: str) -> list[CodeLine]:
    """Return the code of a Python, C, CUDA or Jinja file, without comments and lone brackets."""
    source = path.read_text()
    skipped = docstring_lines(source) if path.suffix == ".py" else set()
    comment = "#" if path.suffix == ".py" else "//"
    source = JINJA_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), source)
    lines = []
    for number, line in enumerate(source.splitlines(), 1):
        text = " ".join(line.split())
        if number in skipped or text.startswith(comment) or not re.search(r"\w", text):
            continue
        lines.append(CodeLine(name, number, text))
    return lines


def runs(files: list[list[CodeLine]], length: int) -> Iterator[list[tuple[int, int]]]:
    """Places (file, first line) of each run of ``length`` lines that is at two or more."""
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for index, lines in enumerate(files):
        for first in range(len(lines) - length + 1):
            places[tuple(line.text for line in lines[first : first + length])].append(
                (index, first)
            )
    yield from (found for found in places.values() if len(found) > 1)


def measure(roots: tuple[str, ...], length: int, shown: int) -> str:
    """Count the repeated lines under ``roots`` and name the first ``shown`` runs."""
    paths = sorted(
        path
        for root in roots
        for path in ([ROOT / root] if (ROOT / root).is_file() else (ROOT / root).rglob("*"))
        if path.suffix in (".py", ".j2")
        and not path.relative_to(ROOT).as_posix().startswith(EXCLUDED)
    )
    files = [code_lines(path, path.relative_to(ROOT).as_posix()) for path in paths]
    repeated: set[tuple[int, int]] = set()
    partners: dict[tuple[int, int], tuple[int, int]] = {}
    for found in runs(files, length):
        for place, other in zip(found, found[1:] + found[:1], strict=True):
            repeated |= {(place[0], place[1] + i) for i in range(length)}
            partners.setdefault(place, other)
    total = sum(map(len, files))
    report = [
        f"{' '.join(roots)}: {len(repeated)} of {total} lines of code repeated "
        f"({100 * len(repeated) / max(total, 1):.1f} %)"
    ]
    for (index, first), (other, second) in sorted(partners.items()):
        if shown <= 0:
            break
        if (index, first - 1) in partners:
            continue
        shown -= 1
        here, there = files[index][first], files[other][second]
        report.append(f"  {here.file}:{here.number} as {there.file}:{there.number}: {here.text}")
    return "\n".join(report)


def main() -> None:
    """Print a line for each set, and the requested runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--run", type=int, default=4, help="lines that make a run")
    parser.add_argument("--list", type=int, default=0, help="how many runs to name")
    arguments = parser.parse_args()
    for roots in [tuple(arguments.paths)] if arguments.paths else SETS:
        print(measure(roots, arguments.run, arguments.list))


if __name__ == "__main__":
    main()
