"""The shape of a launch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.ptx.types import CLASS_BITS
from fa4gen.emulator.state.budget import Budget, shown_bytes
from fa4gen.emulator.state.memory import RESERVED_SHARED

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import RegisterClass

MAX_THREADS: Final = 1024
MAX_SHARED: Final = 227 * 1024
MAX_CLUSTER: Final = 16
MAX_GRID: Final = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Grid and cluster in CTAs, block in threads, dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    dynamic_shared: int

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def num_clusters(self) -> int:
        """Clusters of the grid."""
        return math.prod(self.grid) // math.prod(self.cluster)

    def check_memory(
        self,
        budget: Budget,
        registers: Mapping[RegisterClass, int],
        local_bytes: int,
        static_end: int,
    ) -> None:
        """Raise LaunchError where one cluster alone needs more than there may be.

        ``local_bytes`` are those of a thread, ``static_end`` is the end of static shared memory.
        """
        ctas = math.prod(self.cluster)
        file = sum(-(-CLASS_BITS[cls] // 8) * count for cls, count in registers.items())
        budget.need(
            ctas * (self.threads * (file + local_bytes) + static_end + self.dynamic_shared),
            f"a cluster of {ctas} CTAs of {self.threads} threads, each with {shown_bytes(file)} of"
            f" registers and {shown_bytes(local_bytes)} of local memory",
        )

    def first_cta(self, cluster: int) -> tuple[int, int, int]:
        """The first CTA of a cluster, which are numbered in launch order."""
        x, y, z = self.cluster
        wide, high = self.grid[0] // x, self.grid[1] // y
        return cluster % wide * x, cluster // wide % high * y, cluster // (wide * high) * z


def triple(value: int | Sequence[int], what: str) -> tuple[int, int, int]:
    """Three positive numbers from one to three of them."""
    numbers = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not 1 <= len(numbers) <= 3 or any(
        not isinstance(n, (int, np.integer)) or n < 1 for n in numbers
    ):
        raise LaunchError(f"{what} is one to three positive integers, not {value!r}", what)
    filled = (*map(int, numbers), 1, 1)
    return filled[0], filled[1], filled[2]


def make_geometry(
    grid: int | Sequence[int],
    block: int | Sequence[int],
    cluster: int | Sequence[int] | None,
    dynamic_shared: int,
    directives: Mapping[str, tuple[int, ...]],
    static_end: int,
) -> Geometry:
    """Check a launch against the limits of the chip and the directives of the entry."""
    grid3, block3 = triple(grid, "grid"), triple(block, "block")
    fixed = directives.get("reqnctapercluster")
    if cluster is None:
        cluster3 = triple(fixed, "cluster") if fixed else (1, 1, 1)
    else:
        cluster3 = triple(cluster, "cluster")
        if fixed and cluster3 != triple(fixed, "cluster"):
            raise LaunchError(
                f"the entry was compiled for clusters of {fixed}, not {cluster3}", "cluster"
            )
    geometry = Geometry(grid3, block3, cluster3, int(dynamic_shared))
    if geometry.threads > MAX_THREADS:
        raise LaunchError(
            f"a block of {geometry.threads} threads; at most {MAX_THREADS} fit", "block"
        )
    bound = directives.get("reqntid")
    if bound and tuple(bound) != block3:
        raise LaunchError(f"the entry needs blocks of {bound} threads, not {block3}", "block")
    bound = directives.get("maxntid")
    if bound and geometry.threads > math.prod(bound):
        raise LaunchError(
            f"a block of {geometry.threads} threads, but the entry was compiled for "
            f"at most {math.prod(bound)} (.maxntid)",
            "block",
        )
    if any(g > most for g, most in zip(grid3, MAX_GRID, strict=True)):
        raise LaunchError(f"a grid of {grid3} CTAs; at most {MAX_GRID} are possible", "grid")
    if any(g % c for g, c in zip(grid3, cluster3, strict=True)):
        raise LaunchError(f"grid {grid3} is no multiple of the cluster {cluster3}", "grid")
    if math.prod(cluster3) > MAX_CLUSTER:
        raise LaunchError(
            f"a cluster of {cluster3} CTAs; at most {MAX_CLUSTER} are possible", "cluster"
        )
    if dynamic_shared < 0:
        raise LaunchError("dynamic_shared is a number of bytes, 0 or more", "dynamic_shared")
    used = static_end - RESERVED_SHARED + geometry.dynamic_shared
    if used > MAX_SHARED:
        raise LaunchError(
            f"{used} bytes of shared memory, {geometry.dynamic_shared} of them dynamic; a CTA has "
            f"at most {MAX_SHARED}",
            "dynamic_shared",
        )
    return geometry
