"""Long lists of operands of asm statements, by macros: elements of an array one after the other.

And the registers %0 to %31 in the text of instructions.
"""

from __future__ import annotations

import re
from itertools import pairwise

_OPERAND = re.compile(r'("[=+]?[a-z]")\((\w+)\[(\d+)\]\)')
_BETWEEN = re.compile(r",\s*")
_REGISTERS = re.compile(
    "%0" + "".join(rf',\s*(?:"\s*")?%{number}' for number in range(1, 32)) + r"\b"
)
SIZES = (64, 16, 4)
LEAST = 8
"""Operands of a list that is made shorter."""


def short_lists(text: str, macro: str) -> str:
    """Return ``text`` with calls of ``macro``_4, _16 and _64 in the place of long lists."""
    done, end = "", 0
    for run in _runs(text):
        first, last = run[0], run[-1]
        if len(run) < LEAST:
            continue
        done += text[end : first.start()] + ", ".join(_calls(first, len(run), macro))
        end = last.end()
    return _REGISTERS.sub(f'" {macro}_REGISTERS "', done + text[end:])


def definitions(text: str, macro: str) -> str:
    """Return the macros that ``text`` uses, and those that they use; "" without any."""
    largest = next((size for size in SIZES if f"{macro}_{size}(" in text), 0)
    lines = [
        f"#define {macro}_{size}(c, x, i) \\\n  {_parts(size, macro)}\n"
        for size in reversed(SIZES)
        if size <= largest
    ]
    comment = "// Operands of asm: elements of an array from i on.\n"
    registers = [", ".join(f"%{i}" for i in range(begin, begin + 16)) for begin in (0, 16)]
    names = f'#define {macro}_REGISTERS \\\n  "{registers[0]}, " \\\n  "{registers[1]}"\n'
    return (comment + "".join(lines) if lines else "") + (
        names if f"{macro}_REGISTERS" in text else ""
    )


def _parts(size: int, macro: str) -> str:
    step = size // 4
    places = ["i", *(f"i + {step * number}" for number in (1, 2, 3))]
    if size == SIZES[-1]:
        return ", ".join(f"c(x[{place}])" for place in places)
    return ", ".join(f"{macro}_{step}(c, x, {place})" for place in places)


def _runs(text: str) -> list[list[re.Match[str]]]:
    """Return lists of operands that follow one another."""
    found = list(_OPERAND.finditer(text))
    runs = [found[:1]] if found else []
    for one, other in pairwise(found):
        together = _BETWEEN.fullmatch(text, one.end(), other.start()) is not None
        if (
            together
            and one[1] == other[1]
            and one[2] == other[2]
            and int(other[3]) == int(one[3]) + 1
        ):
            runs[-1].append(other)
        else:
            runs.append([other])
    return runs


def _calls(first: re.Match[str], count: int, macro: str) -> list[str]:
    calls, at, end = [], int(first[3]), int(first[3]) + count
    while at < end:
        size = next((size for size in SIZES if at + size <= end), 1)
        if size == 1:
            calls.append(f"{first[1]}({first[2]}[{at}])")
        else:
            calls.append(f"{macro}_{size}({first[1]}, {first[2]}, {at})")
        at += size
    return calls
