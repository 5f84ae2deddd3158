"""Batches as inference engines have them, by the query and key rows of each sequence."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

COLUMNS = 4096
"""Query heads times depth, at most; a multiple of the key heads."""
KEY_HEADS = 8
LONGEST, SHORTEST, TOKENS = 8192, 20, 32768
MOST_HEADS = 1024
_NUMBER = r"(\d{1,7}k?)"
_NUMBERS = re.compile(rf"{_NUMBER}x(?:{_NUMBER}x)?{_NUMBER}(?:@(\d{{1,4}})/(\d{{1,4}}))?")


@dataclass(frozen=True)
class Batch:
    """Sequences with as many query rows and key rows each, and the word that ``--sizes`` takes."""

    word: str
    query_rows: tuple[int, ...]
    key_rows: tuple[int, ...]
    heads: tuple[int, int] | None = None
    """Query heads and key heads; by depth where the word does not say."""


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
    """Read a name, or numbers; None for anything else.

    "2x512x16k" is 2 sequences of 512 new rows over 16384 keys each; "2x16k" has one new row of
    each, and "2x16k@16/1" 16 query heads that share one key head.
    """
    word = word.strip().lower()
    named = named_batches().get(word)
    match = _NUMBERS.fullmatch(word)
    if named is not None or match is None:
        return named
    batch, rows, keys = (_number(text) for text in match.groups("1")[:3])
    if not (1 <= batch <= 65536 and 1 <= rows <= 1 << 20 and 1 <= keys <= 1 << 20):
        return None
    heads = None
    if match[4] is not None:
        heads = (int(match[4]), int(match[5]))
        if not 1 <= heads[1] <= heads[0] <= MOST_HEADS or heads[0] % heads[1]:
            return None
    return Batch(word, (rows,) * batch, (keys,) * batch, heads)


def _number(text: str) -> int:
    return int(text.rstrip("k")) * (1024 if text[-1] == "k" else 1)
