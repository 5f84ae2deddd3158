"""The register file of up to four warps that run together, one NumPy row per register."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.emulator.ptx.syntax import RegisterClass

Mask: TypeAlias = "NDArray[np.bool_] | None"
"""The lanes of a warpgroup that take part; None means all of them (and none of them has left)."""

Row: TypeAlias = NDArray[Any]
Rows: TypeAlias = "Mapping[int, Row]"

UNWRITTEN = 0x7FFF_FFFF_FFFF_FFFF
"""The bits of unwritten registers, the upper ones for narrow registers: NaN in every format, and a
large integer, so that a result that depends on them shows."""
WARPGROUP_LANES = 128
WARP_LANES = 32


def as_row(value: Any, lanes: int) -> Row:
    """An operand's value as one entry per lane, where it may be a scalar."""
    if isinstance(value, np.ndarray) and value.ndim:
        return value
    return np.full(lanes, value)


@lru_cache(maxsize=512)
def lane_mask(lanes: int, lane: int) -> NDArray[np.bool_]:
    """The mask of one lane of a warpgroup; not to be written."""
    mask = np.zeros(lanes, np.bool_)
    mask[lane] = True
    mask.flags.writeable = False
    return mask


class _Rows(dict[int, Row]):
    """The rows of a block of registers by number, made when they are first used."""

    __slots__ = ("_block",)

    def __init__(self, block: NDArray[Any]) -> None:
        self._block = block

    def __missing__(self, index: int) -> Row:
        row: Row = self._block[index]
        self[index] = row
        return row


class Registers:
    """Up to 128 consecutive threads of a CTA and their registers.

    ``cta_label`` and ``cta_index`` say of which CTA, ``index`` which 128 of its threads.

    ``P``, ``U32``, ``F32`` … have one row view (shape: lanes) per register of the class,
    so that ``F32[7]`` and ``U32[7]`` are the same bits. A lane that has left keeps its registers;
    nothing reads them.
    """

    def __init__(
        self,
        cta_label: str,
        cta_index: int,
        index: int,
        lanes: int,
        registers: Mapping[RegisterClass, int],
        local_bytes: int,
    ) -> None:
        self.cta_label = cta_label
        self.cta_index = cta_index
        self.index = index
        self.lanes = lanes
        self.first_thread = index * WARPGROUP_LANES
        self.warps = (lanes + WARP_LANES - 1) // WARP_LANES
        self.live: NDArray[np.bool_] = np.ones(lanes, dtype=np.bool_)
        self.deaths = 0
        self.lane_ids: NDArray[np.int64] = np.arange(lanes, dtype=np.int64)
        self.local_bytes = local_bytes
        self.special: dict[str, Any] = {}
        self._p = np.zeros((registers["p"], lanes), np.bool_)
        self.P: Rows = _Rows(self._p)
        self._blocks: dict[str, NDArray[Any]] = {"P": self._p}
        self._h = np.full((registers["h"], lanes), UNWRITTEN >> 48, np.uint16)
        self._r = np.full((registers["r"], lanes), UNWRITTEN >> 32, np.uint32)
        self._d = np.full((registers["d"], lanes), UNWRITTEN, np.uint64)
        # (register, lane, low and high half)
        self.Q: Rows = _Rows(np.zeros((registers["q"], lanes, 2), np.uint64))

    @cached_property
    def local(self) -> NDArray[np.uint8]:
        """Local memory of the lanes, bytes by lane: shape (lanes, local_bytes)."""
        return np.zeros((self.lanes, self.local_bytes), np.uint8)

    @cached_property
    def U16(self) -> Rows:
        return _Rows(self._h)

    @cached_property
    def S16(self) -> Rows:
        return _Rows(self._h.view(np.int16))

    @cached_property
    def F16(self) -> Rows:
        return _Rows(self._h.view(np.float16))

    @cached_property
    def BF16(self) -> Rows:
        return _Rows(self._h.view(ml_dtypes.bfloat16))

    @cached_property
    def U32(self) -> Rows:
        return _Rows(self._r)

    @cached_property
    def S32(self) -> Rows:
        return _Rows(self._r.view(np.int32))

    @cached_property
    def F32(self) -> Rows:
        return _Rows(self._r.view(np.float32))

    @cached_property
    def U64(self) -> Rows:
        return _Rows(self._d)

    @cached_property
    def S64(self) -> Rows:
        return _Rows(self._d.view(np.int64))

    @cached_property
    def F64(self) -> Rows:
        return _Rows(self._d.view(np.float64))

    @property
    def alive(self) -> bool:
        """Whether a lane has not left yet."""
        return self.deaths < self.lanes

    def leave(self, mask: Mask) -> None:
        """Take lanes out for good."""
        if mask is None:
            self.live[:] = False
        else:
            self.live &= ~mask
        self.deaths = self.lanes - int(np.count_nonzero(self.live))

    def block(self, cls: RegisterClass) -> NDArray[Any]:
        """All registers of a class as one array (register, lane): h, r and d only."""
        if cls == "r":
            return self._r
        return self._h if cls == "h" else self._d

    def rows(self, view: str) -> NDArray[Any]:
        """All registers of a class as one array (register, lane), read as the view does."""
        block = self._blocks.get(view)
        if block is None:
            sources: dict[str, tuple[NDArray[Any], Any]] = {
                "U16": (self._h, np.uint16),
                "S16": (self._h, np.int16),
                "F16": (self._h, np.float16),
                "BF16": (self._h, ml_dtypes.bfloat16),
                "U32": (self._r, np.uint32),
                "S32": (self._r, np.int32),
                "F32": (self._r, np.float32),
                "U64": (self._d, np.uint64),
                "S64": (self._d, np.int64),
                "F64": (self._d, np.float64),
            }
            raw, dtype = sources[view]
            block = self._blocks[view] = raw.view(dtype)
        return block

    def lanes_of(self, mask: Mask) -> NDArray[np.int64]:
        """The lane numbers that take part."""
        return self.lane_ids if mask is None else np.flatnonzero(mask)

    def first_lane(self, mask: Mask) -> int:
        """The lowest lane that takes part."""
        return 0 if mask is None else int(mask.argmax())

    def warps_of(self, mask: Mask) -> list[int]:
        """Numbers (within the warpgroup) of the warps with a lane that takes part."""
        if mask is None:
            return list(range(self.warps))
        return sorted({int(lane) // WARP_LANES for lane in np.flatnonzero(mask)})

    def thread(self, lane: int) -> int:
        """The number of a lane's thread within its CTA."""
        return self.first_thread + lane

    def describe(self, mask: Mask) -> str:
        """The threads that take part,: ``cta 1, threads 128-255``."""
        lanes = self.lanes_of(mask) + self.first_thread
        first, last = int(lanes[0]), int(lanes[-1])
        threads = f"thread {first}" if first == last else f"threads {first}-{last}"
        if 1 < len(lanes) < last - first + 1:
            threads += f" ({len(lanes)} of them)"
        return f"{self.cta_label}, {threads}"
