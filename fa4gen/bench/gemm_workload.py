"""The workload of a matrix product: its sizes, its factors, its bytes."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.bench.group_counts import GroupCounts, parse_counts
from fa4gen.bench.workload import LARGEST_SIZE, size_word
from fa4gen.epilogues import RESIDUALS, residual_of
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.designs.common.gemm_model import GemmPlan

DEFAULT_SIZES = "2k,4k,8k,16k,8192x28672x8192"
ALPHA = 1.0
BETAS = {residual.name: residual.beta for residual in RESIDUALS}
PROTOCOL: Mapping[str, Any] = {
    "alpha": ALPHA,
    "beta": BETAS,
    "data": "A, B: N(0, 1); C: N(0, k), its scale a power of two",
}
MOST_SETS = 8


@dataclass(frozen=True)
class GemmWorkload:
    """One problem: D (m, n) from A (m, k) and B (k, n), or ``batch`` of them in one call."""

    m: int
    n: int
    k: int
    batch: int = 1
    row_elements: int = 0
    """Elements from one row of A and B to the next; k where it is 0."""
    uneven: GroupCounts | None = field(default=None, kw_only=True)
    """Rows of groups of uneven sizes: ``batch`` of them, with ``m`` rows on average, rounded up."""

    @classmethod
    def of_counts(cls, counts: GroupCounts, n: int, k: int) -> GemmWorkload:
        """Return the problem of groups with these rows."""
        groups = len(counts.counts)
        return cls(math.ceil(counts.rows / groups), n, k, groups, uneven=counts)

    @property
    def heights(self) -> Mapping[int, int]:
        """The number of matrices, or groups, by their rows."""
        return {self.m: self.batch} if self.uneven is None else Counter(self.uneven.counts)

    @property
    def group_rows(self) -> tuple[int, ...]:
        """Rows of each matrix, or group."""
        return (self.m,) * self.batch if self.uneven is None else self.uneven.counts

    @property
    def rows(self) -> int:
        """Rows of all matrices."""
        return self.batch * self.m if self.uneven is None else self.uneven.rows

    @property
    def lead(self) -> tuple[int, ...]:
        """The extents in front of a matrix: none for a single one."""
        return (self.batch,) if self.batch > 1 or self.uneven is not None else ()

    @property
    def flop(self) -> float:
        """Multiplications and additions of the product."""
        return 2.0 * self.rows * self.n * self.k

    @property
    def word(self) -> str:
        """The size in a word: 4k for a cube, 8kx28kx8k, 16x1kx1kx1k for a batch of 16.

        Uneven groups: 32/8192@0:4kx7k.
        """
        if self.uneven is not None:
            return f"{self.uneven.word}:{size_word(self.n)}x{size_word(self.k)}"
        if self.batch == 1 and self.m == self.n == self.k:
            return size_word(self.m)
        return "x".join([*map(str, self.lead), *map(size_word, (self.m, self.n, self.k))])

    @property
    def at(self) -> str:
        """The size for a message."""
        if self.uneven is not None:
            return f"{self.uneven.word}:{self.n}x{self.k}"
        return "x".join(map(str, (*self.lead, self.m, self.n, self.k)))

    @property
    def extents(self) -> dict[str, Any]:
        """The extents for the JSON file."""
        batch = {"batch": self.batch} if self.batch > 1 else {}
        found = {"word": self.word, **batch, "m": self.m, "n": self.n, "k": self.k}
        if self.uneven is not None:
            found |= {"rows": self.rows, "counts": list(self.uneven.counts)}
        return found

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a table."""
        if self.uneven is not None:
            return self.uneven.word, str(self.n), str(self.k)
        batch = f"{self.batch} x " if self.batch > 1 else ""
        return f"{batch}{self.m}", str(self.n), str(self.k)

    @property
    def residual_scale(self) -> float:
        """About the square root of k, as large as the product: omitting C is then an error."""
        return 2.0 ** round(math.log2(self.k) / 2)

    def bytes_moved(self, plan: GemmPlan) -> int:
        """Count the bytes of A, B, their scales, C and D, each once.

        Groups without rows read no B.
        """
        residual = residual_of(plan.residual)
        if residual.is_matrix or self.uneven is not None:
            of_c = sum(
                number * residual.elements(rows, self.n)
                for rows, number in self.heights.items()
                if rows
            )
        else:
            of_c = residual.elements(self.m, self.n)
        written = plan.out_element_bytes * (self.rows * self.n + of_c)
        return self.bytes_read(plan) + written

    def bytes_read(self, plan: GemmPlan) -> int:
        """Count the bytes of A, B and their scales, each once: those that the product needs."""
        read = 0
        for rows, number in self.heights.items():
            if rows:
                elements = self.k * (rows + self.n) * plan.element_bytes
                scales = sum(row.count_bytes(rows, self.n, self.k) for row in plan.scales)
                read += number * (elements // plan.elements_per_byte + scales)
        return read

    def count_sets(self, plan: GemmPlan, l2_bytes: int) -> int:
        """Return how many sets of arrays take turns, so that no call finds its arrays in L2."""
        moved = self.bytes_moved(plan)
        return 1 if moved > l2_bytes else min(MOST_SETS, 1 + math.ceil(l2_bytes / moved))


def parse_sizes(text: str) -> tuple[GemmWorkload, ...]:
    """Read "2k,8192x28672x8192,16x1kx1kx1k": m = n = k, m x n x k, or a batch of these.

    Groups of rows are a batch, too: "32x256:4096x7168" is groups x rows of each : n x k. Uneven
    groups are dealt (``draw_counts``) or named: "32/8192@5:4096x7168" and "0+17+300:4096x7168". In
    a number, k is 1024. Raises ConfigError.
    """
    return tuple(dict.fromkeys(_parse_size(word) for word in text.split(",")))


def _parse_size(word: str) -> GemmWorkload:
    of_rows, colon, rest = word.strip().lower().partition(":")
    uneven = parse_counts(of_rows) if colon else None
    if uneven is not None:
        found = _extents(rest.split("x"))
        if len(found) == 2:
            return GemmWorkload.of_counts(uneven, *found)
    extents = _extents(re.split("[x:]", word.strip().lower()))
    if len(extents) == 1:
        return GemmWorkload(*3 * extents)
    of_groups = [len(side.split("x")) for side in word.split(":")]
    if of_groups == [2, 2] or (len(of_groups) == 1 and len(extents) in (3, 4)):
        return GemmWorkload(*extents[-3:], *extents[:-3])
    raise ConfigError(
        Problem(
            f"--sizes: {word.strip()!r} is not a size of a matrix product, with extents from 1 to "
            f"{LARGEST_SIZE}",
            "Give m = n = k, m x n x k, batch x m x n x k, or groups x rows : n x k: "
            "2k,8192x28672x8192,16x1kx1kx1k,32x256:4096x7168. Uneven groups: groups / rows of all "
            "@ seed, or the rows of each: 32/8192@0:4096x7168,0+17+300:4096x7168.",
        )
    )


def _extents(numbers: Sequence[str]) -> list[int]:
    """Return the numbers, empty where one is none or out of range."""
    parts = [re.fullmatch(r"([0-9]{1,7})(k?)", part) for part in numbers]
    extents = [int(part[1]) * (1024 if part[2] else 1) for part in parts if part]
    good = len(extents) == len(parts) and all(1 <= extent <= LARGEST_SIZE for extent in extents)
    return extents if good else []


def problem_words(facts: Mapping[str, Any]) -> str:
    """Describe a kernel's function: types, scales, layout unless that of a linear layer, C."""
    words = [facts["dtype"]]
    if "b_dtype" in facts:
        words.append(f"B {facts['b_dtype']}")
    if "scales" in facts:
        words.append(f"scales of {facts['scales']}")
    if "rows" in facts:
        words.append(f"{facts['rows']} rows")
    if "groups" in facts:
        words.append(f"groups by {'offsets' if facts['groups'] == 'offsets' else 'counts'}")
    if facts["out_dtype"] != facts["dtype"]:
        words.append(f"{facts['out_dtype']} out")
    if (facts["a_major"], facts["b_major"]) != ("k", "k"):
        words.append(f"A {facts['a_major']}-major, B {facts['b_major']}-major")
    words.append(residual_of(facts["residual"]).short)
    if facts["activation"] is not None:
        words.append(facts["activation"])
    return ", ".join(words)
