"""The plan's parts: one frozen object holds everything that follows from a config.

Templates, the manifest, the header of barrier offsets, ``explain``, the launcher and the
reports read these objects and compute nothing again. Offsets and sizes are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BARRIER_BYTES = 8

ArriveHow = Literal["thread", "tma_bytes", "store_bytes", "mma_commit", "multicast_commit"]
Ctas = Literal["own", "leader", "pair", "cluster"]
ChoiceSource = Literal["config", "default", "auto", "derived"]
Swizzle = Literal[0, 32, 64, 128]
NamedBarriers = tuple[tuple[str, int], ...]
"""Constants of the hardware's named barriers: name and first id; 0 is __syncthreads."""


@dataclass(frozen=True)
class Barrier:
    """One row of the barrier table: ``slots`` mbarriers that work alike."""

    name: str
    """snake_case; ``constant`` derives the C++ name from it."""
    slots: int
    arrivals: int
    """Arrivals that complete a phase (the count given to mbarrier.init)."""
    arrive_how: ArriveHow
    arrived_by: str
    """The arriving threads or units, in words: "producer thread, then the bytes of K"."""
    waited_by: str
    meaning: str
    """The meaning of a completed phase: "a block of K has landed in its slot"."""
    first_wait_parity: Literal[0, 1] = 0
    """1 for barriers that start open (a slot that is free at first), else 0."""
    transaction_bytes: int = 0
    """Bytes that TMA, or stores of the peer, add to each phase; 0 where there are none."""
    cta: Ctas = "own"
    """The CTA with the barrier that counts: each CTA's own, the leader's, or own with arrivals from
    the pair."""
    offset: int = 0
    """From the base of shared memory; 0 until the rows are laid out."""

    @property
    def constant(self) -> str:
        """``kv_full`` -> ``kKvFull``."""
        return "k" + "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def bytes(self) -> int:
        """Bytes of all slots."""
        return self.slots * BARRIER_BYTES


@dataclass(frozen=True)
class SharedRegion:
    """A contiguous piece of dynamic shared memory, ``slots`` equal parts."""

    name: str
    offset: int
    bytes: int
    alignment: int
    slots: int
    holds: str
    """Its content, with the shape: "3 query tiles of 64 x 128 bf16, 128B swizzle"."""

    @property
    def end(self) -> int:
        """First byte past the region."""
        return self.offset + self.bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot."""
        return self.bytes // self.slots


@dataclass(frozen=True)
class TensorMemoryRegion:
    """Columns of tensor memory, all 128 lanes of them. Regions may overlap."""

    name: str
    column: int
    columns: int
    holds: str
    """Its content: "scores of query tile 0, 128 x 128 float32"."""

    @property
    def end(self) -> int:
        """First column past the region."""
        return self.column + self.columns


@dataclass(frozen=True)
class Role:
    """Warps that run the same code."""

    name: str
    first_warp: int
    num_warps: int
    registers: int
    """Per thread after setmaxnreg."""
    work: str

    @property
    def num_threads(self) -> int:
        """Threads of the role."""
        return 32 * self.num_warps


@dataclass(frozen=True)
class TensorMapPlan:
    """The encoding of a tensor map; dimensions from the contiguous one outwards.

    ``dims`` names what each dimension runs over. For attention, out of "column" (inside a panel),
    "row" (sequence), "panel" (groups of ``box[0]`` columns), "head", "batch"; with "place" and
    "wrap" the map ends at any row (see ``tensor_maps``), and columns are those of all panels. For a
    matrix product the extents "m", "n" and "k" themselves, and "batch".
    """

    name: str
    parameter: str
    tensor: Literal["query", "key", "value", "out", "a", "b", "c", "scale_a", "scale_b"]
    dims: tuple[str, ...]
    box: tuple[int, ...]
    swizzle: Swizzle
    box_bytes: int
    direction: Literal["load", "store"]
    l2_promotion: Literal[64, 128, 256] = 256
    """Bytes that L2 fetches together; no more than a row of a head where heads are read apart."""


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter, in order."""

    name: str
    c_type: str
    meaning: str


@dataclass(frozen=True)
class TileListPlan:
    """The launch before, which lists the tiles of a ragged batch, or the blocks that tiles see."""

    entry_point: str
    threads: int
    parameters: tuple[Parameter, ...]
    tables: tuple[str, ...]
    """Those of the parameters that lengths and places are read from."""
    bounded_keys: bool
    """Whether key_rows, the most keys of a sequence, is among the parameters."""
    tile_rows: int
    """Query rows of an entry: of the tiles that a cluster works on at once, or of a list."""
    is_of_tiles: bool = False
    """Whether each tile has a CTA; else one CTA lists all."""

    def grid(self, num_tiles: int) -> int:
        """Return the CTAs of the launch before one of at most ``num_tiles`` tiles."""
        return num_tiles if self.is_of_tiles else 1


@dataclass(frozen=True)
class Choice:
    """The origin of a value: given in the config, or chosen, and the limit that bound it."""

    key: str
    value: object
    """The value of the key, as the plan holds it; hashable."""
    source: ChoiceSource
    reason: str


@dataclass(frozen=True)
class LaunchGeometry:
    """Threads, cluster and dynamic shared memory of a launch; the grid depends on the problem."""

    threads: int
    cluster: int
    dynamic_shared_bytes: int
    grid: str
    """The rule for the grid, in words."""
    cooperative: bool = False
    """All CTAs have to run at once, since they wait for one another: a cooperative launch."""
    dependent_launch: bool = False
    """The launch may start before the previous one ends: the kernel itself waits for it."""
