"""Opcodes and their parts."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def split_opcode(text: str) -> tuple[str, tuple[str, ...]]:
    """Split an opcode into its first component and the others, at single dots."""
    opcode, *modifiers = text.split(".")
    return opcode, tuple(modifiers)
