"""A kernel's manifest as a vendored folder holds it: the same data in fewer bytes, a row a line."""

from __future__ import annotations

import json
from typing import Any

STEP = " "


def short_manifest(text: str) -> str:
    """Return the JSON ``text`` with mappings down to the plan's own keys, and rows, a line each."""
    return _lines(json.loads(text), 0, deep=2) + "\n"


def _lines(value: Any, depth: int, *, deep: int) -> str:
    """Spread mappings of ``deep`` levels over lines, and lists of mappings at any level of them."""
    if isinstance(value, dict) and value and deep:
        rows = [
            f"{_flat(key)}: {_lines(row, depth + 1, deep=deep - 1)}" for key, row in value.items()
        ]
        return _block("{", rows, "}", depth)
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return _block("[", [_flat(row) for row in value], "]", depth)
    return _flat(value)


def _block(opening: str, rows: list[str], closing: str, depth: int) -> str:
    inner = "\n" + STEP * (depth + 1)
    return f"{opening}{inner}{f',{inner}'.join(rows)}\n{STEP * depth}{closing}"


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
