"""What parameters of a kernel are, behind their declarations: rendered text has a table of it."""

from __future__ import annotations

import re
import textwrap

from fa4gen.render.wrap import MAX_COLUMNS

_ROW = re.compile(r"//   (\w+) +(\S.*)")
_MORE = re.compile(r"// {10,}(\S.*)")
_PARAMETER = re.compile(r" +.*\b(\w+)(?:,|\) \{)")


def documented(lines: list[str]) -> list[str]:
    """Return ``lines`` with comments behind parameters in the place of tables before kernels."""
    done: list[str] = []
    comment: list[str] = []
    meanings: dict[str, str] = {}
    for line in lines:
        if line.startswith("//"):
            comment.append(line)
            continue
        if line.startswith('extern "C" __global__'):
            comment, meanings = _split(comment)
        done += comment
        comment = []
        match = _PARAMETER.fullmatch(line)
        done += _behind(line, meanings.pop(match[1])) if match and match[1] in meanings else [line]
    return done + comment


def _split(comment: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return what is no table of a comment, and the table's rows by name."""
    rest: list[str] = []
    meanings: dict[str, str] = {}
    name = ""
    for line in comment:
        row, more = _ROW.fullmatch(line), _MORE.fullmatch(line)
        if row:
            name = row[1]
            meanings[name] = row[2]
        elif more and name:
            meanings[name] += f" {more[1]}"
        else:
            rest.append(line)
            name = ""
    return rest, meanings


def _behind(line: str, meaning: str) -> list[str]:
    if len(line) + 5 + len(meaning) <= MAX_COLUMNS:
        return [f"{line}  // {meaning}"]
    indent = line[: len(line) - len(line.lstrip())] + "// "
    rows = textwrap.wrap(meaning, MAX_COLUMNS, initial_indent=indent, subsequent_indent=indent)
    return [*rows, line]
