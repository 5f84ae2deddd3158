"""What is timed: sequences of many lengths with the same number of tokens and columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem
from fa4gen.masks import mask_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.shared.attention_model import AttentionPlan

TOKENS = 16384
"""Batch times rows: as flash-attention's benchmarks have it."""
COLUMNS = 2048
"""Heads times depth."""
DEFAULT_SIZES = "1k,2k,4k,8k,16k"
LARGEST_SIZE = 1 << 20


@dataclass(frozen=True)
class Workload:
    """One problem: as many query as key rows, as many key as query heads."""

    batch: int
    rows: int
    heads: int
    depth: int
    value_depth: int

    @property
    def elements(self) -> int:
        """Elements of the largest tensor."""
        return self.batch * self.rows * self.heads * max(self.depth, self.value_depth)

    @property
    def shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Of query, key and value: (batch, rows, heads, depth)."""
        query = (self.batch, self.rows, self.heads, self.depth)
        return query, query, (*query[:3], self.value_depth)


def make_workload(rows: int, depth: int, value_depth: int | None = None) -> Workload:
    """Return the workload of ``rows``: one batch at least, one head at least.

    Values are as deep as keys unless ``value_depth`` says otherwise.
    """
    batch, heads = max(1, TOKENS // rows), max(1, COLUMNS // depth)
    return Workload(batch, rows, heads, depth, depth if value_depth is None else value_depth)


def count_flop(plan: AttentionPlan, workload: Workload) -> float:
    """Count the floating-point operations of Q.K and P.V that the mask leaves.

    By the usual convention a causal mask leaves half; others leave the pairs that are visible.
    """
    columns = workload.depth + workload.value_depth
    pairs = plan.mask.pairs(workload.rows)
    return 2.0 * workload.batch * workload.heads * columns * pairs


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read "1k,2k,300" as numbers of rows; k is 1024. Raises ConfigError."""
    sizes = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,7})(k?)\s*", word, re.IGNORECASE)
        size = int(match[1]) * (1024 if match[2] else 1) if match else 0
        if not 1 <= size <= LARGEST_SIZE:
            raise ConfigError(
                Problem(
                    f"--sizes: {word.strip()!r} is not a number of rows from 1 to {LARGEST_SIZE}",
                    "Give numbers of rows, as in 512,1k,16k.",
                )
            )
        sizes.append(size)
    return tuple(dict.fromkeys(sizes))


def size_word(rows: int) -> str:
    """Write 1024 as 1k."""
    return f"{rows // 1024}k" if rows % 1024 == 0 else str(rows)


def mask_word(facts: Mapping[str, Any]) -> str:
    """Return a mask in words: dense, causal, or the window."""
    return mask_in(facts).short
