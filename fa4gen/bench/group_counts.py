"""Groups of uneven sizes as a problem: rows drawn as a router deals them, or named one by one."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from dataclasses import dataclass

from fa4gen.bench.workload import LARGEST_SIZE

MOST_GROUPS = 65536
_NUMBER = r"\d{1,7}k?"
_DRAWN = re.compile(rf"({_NUMBER})/({_NUMBER})(?:@(\d{{1,9}}))?")
_NAMED = re.compile(rf"{_NUMBER}(?:\+{_NUMBER})+")


@dataclass(frozen=True)
class GroupCounts:
    """Rows of each group, of which some may have none, and the word that ``--sizes`` takes."""

    word: str
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return sum(self.counts)

    @property
    def most(self) -> int:
        """Rows of the largest group."""
        return max(self.counts)

    @property
    def filled(self) -> int:
        """Groups that have rows: the others' weights are not read."""
        return len(self.counts) - self.counts.count(0)

    @property
    def text(self) -> str:
        """The rows of each group, for readers."""
        return ", ".join(map(str, self.counts))


def draw_counts(groups: int, rows: int, seed: int) -> tuple[int, ...]:
    """Deal ``rows`` rows to groups at random, each to group i with a chance like exp(z_i).

    z_i are drawn from N(0, 1): with many rows the groups' sizes are log-normal. The draw follows
    from the seed, by Python's generator.
    """
    rng = random.Random(seed)
    weights = [math.exp(rng.gauss(0, 1)) for _ in range(groups)]
    dealt = Counter(rng.choices(range(groups), weights, k=rows))
    return tuple(dealt[group] for group in range(groups))


def parse_counts(text: str) -> GroupCounts | None:
    """Read "32/8192@5", 8192 rows dealt to 32 groups with seed 5, or "0+17+300", rows of each.

    The seed is 0 where it is left out. None for anything else, and without any row.
    """
    text = text.strip().lower()
    match = _DRAWN.fullmatch(text)
    if match is not None:
        groups, rows, seed = _number(match[1]), _number(match[2]), int(match[3] or 0)
        if not (1 <= groups <= MOST_GROUPS and 1 <= rows <= LARGEST_SIZE):
            return None
        return GroupCounts(f"{groups}/{rows}@{seed}", draw_counts(groups, rows, seed))
    if _NAMED.fullmatch(text) is None:
        return None
    counts = tuple(_number(word) for word in text.split("+"))
    if not 1 <= sum(counts) <= LARGEST_SIZE or len(counts) > MOST_GROUPS:
        return None
    return GroupCounts("+".join(map(str, counts)), counts)


def _number(text: str) -> int:
    return int(text.rstrip("k")) * (1024 if text[-1] == "k" else 1)
