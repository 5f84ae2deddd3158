"""Products of groups of rows that are timed: how many rows, equal and drawn, and tiles."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

Tiles = Mapping[str, Mapping[str, object]]

FEW, FEWEST = 128, 32
"""Rows of a group, on average, up to which tiles for few rows are timed, and for a few alone."""
HOPPER = {"kernel": "gemm", "arch": "sm_90a"}
MANY_TILES: Tiles = {
    "128x256": {},
    "128x256 two slots": {"num_epi_stages": 2},
    "128x256 pair": {"cta_group": 2},
    "128x256 pair of columns": {"cta_group": 2, "share": "a"},
    "256x128": {"BM": 256},
    "128x192": {"BN": 192},
    "128x128 in turn, pair": {"ping_pong": True, "cta_group": 2},
}
FEW_TILES: Tiles = {
    "64x256": {"BM": 64, "evict_first": "b"},
    "64x128": {"BM": 64, "BN": 128, "evict_first": "b"},
    "128x256": {"evict_first": "b"},
    "128x128": {"BN": 128, "evict_first": "b"},
    "swapped 64x64": {"BM": 64, "swap_operands": True},
    "swapped 64x128": {"BM": 64, "BN": 128, "swap_operands": True},
}
FEWEST_TILES: Tiles = {
    f"swapped {rows}x{columns}": {"BM": rows, "BN": columns, "swap_operands": True}
    for rows in (16, 32)
    for columns in (64, 128)
}
SCALED_MANY: Tiles = {
    "128x128": {"BM": 128},
    "128x160": {"BM": 128, "BN": 160},
    "256x128": {"BM": 256},
    "128x128 pair": {"BM": 128, "cta_group": 2},
}
SCALED_FEW: Tiles = {
    f"{rows}x{columns}": {"BM": rows, "BN": columns, "evict_first": "b"}
    for rows in (64, 128)
    for columns in (64, 128)
} | {
    "swapped 64x64": {"BM": 64, "swap_operands": True},
    "swapped 64x128": {"BM": 64, "BN": 128, "swap_operands": True},
}


@dataclass(frozen=True)
class Problem:
    """Rows of groups, and the extents of their products."""

    name: str
    counts: tuple[int, ...]
    n: int
    k: int

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return sum(self.counts)

    @property
    def mean(self) -> float:
        """Rows of a group."""
        return self.rows / len(self.counts)

    @property
    def offsets(self) -> list[int]:
        """First rows of the groups, and the end of the last."""
        found = [0]
        for count in self.counts:
            found.append(found[-1] + count)
        return found


def draws() -> dict[str, tuple[int, ...]]:
    """Return groups by name: equal ones, and uneven ones as routers make them."""
    rng = random.Random(3)

    def draw(groups: int, rows: int) -> tuple[int, ...]:
        weights = [math.exp(rng.gauss(0, 1)) for _ in range(groups)]
        counts = [0] * groups
        for group in rng.choices(range(groups), weights, k=rows):
            counts[group] += 1
        return tuple(counts)

    equal = {f"{groups}x{rows}": (rows,) * groups for groups, rows in EQUAL}
    return equal | {f"{groups}, {rows} drawn": draw(groups, rows) for groups, rows in DRAWN}


EQUAL = ((4, 8192), (8, 4096), (32, 256), (64, 64), (32, 16))
DRAWN = ((4, 32768), (32, 8192), (64, 4096), (32, 512))


def tiles_for(problem: Problem, dtype: str) -> Tiles:
    """Return the tiles to time."""
    if problem.mean > FEW:
        return MANY_TILES if dtype == "bf16" else SCALED_MANY
    few = FEW_TILES if dtype == "bf16" else SCALED_FEW
    return few if problem.mean > FEWEST else {**few, **FEWEST_TILES}


def config_of(dtype: str, groups: str | None, tile: Mapping[str, object]) -> dict[str, object]:
    """Return the config of a tile."""
    types: dict[str, object] = {"dtype": "bf16"}
    if dtype == "fp8":
        types = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}}
    return {**HOPPER, **types, **({"groups": groups} if groups else {}), **tile}
