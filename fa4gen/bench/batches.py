"""Batches as inference engines have them, by the query and key rows of each sequence."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

COLUMNS = 4096
"""Query heads times depth, at most; a multiple of the key heads."""
KEY_HEADS = 8
LONGEST, SHORTEST, TOKENS = 8192, 20, 32768
_THREE_NUMBERS = re.compile(r"(\d{1,7}k?)x(\d{1,7}k?)x(\d{1,7}k?)", re.IGNORECASE)


@dataclass(frozen=True)
class Batch:
    """Sequences with as many query rows and key rows each, and the word that ``--sizes`` takes."""

    word: str
    query_rows: tuple[int, ...]
    key_rows: tuple[int, ...]


def query_heads(depth: int) -> int:
    """Return the query heads that share KEY_HEADS key heads: 64, 32 and 16 at 64, 128 and 256."""
    return max(1, COLUMNS // depth // KEY_HEADS) * KEY_HEADS


def _log_normal() -> list[int]:
    """Draw lengths until there are 32768 tokens; the same ones every time."""
    rng = random.Random(5)
    drawn: list[int] = []
    while sum(drawn) < TOKENS:
        drawn.append(min(LONGEST, max(SHORTEST, int(rng.lognormvariate(6.5, 1.0)))))
    return drawn


def named_batches() -> dict[str, Batch]:
    """Return the batches that have a name: queries and keys are the same tokens."""
    lengths = {
        "lognormal": _log_normal(),
        "equal": [2048] * 16,
        "giant": [16384] + [33] * 400,
        "dwarfs": [48] * 1024,
    }
    return {name: Batch(name, tuple(rows), tuple(rows)) for name, rows in lengths.items()}


def parse_batch(word: str) -> Batch | None:
    """Read a name, or "2x512x16k": 2 sequences of 512 new rows over 16384 keys each.

    None for anything else.
    """
    word = word.strip().lower()
    named = named_batches().get(word)
    match = _THREE_NUMBERS.fullmatch(word)
    if named is not None or match is None:
        return named
    numbers = (int(text.rstrip("k")) * (1024 if text[-1] == "k" else 1) for text in match.groups())
    batch, rows, keys = numbers
    if not (1 <= batch <= 65536 and 1 <= rows <= 1 << 20 and 1 <= keys <= 1 << 20):
        return None
    return Batch(word, (rows,) * batch, (keys,) * batch)
