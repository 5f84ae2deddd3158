"""Accesses of the generic proxy: from the lanes' addresses to bytes of the address spaces.

An instruction makes one ``Access``; each execution splits its lanes by the memory that they reach,
nearly always one, and gathers or scatters words of that memory (PTX ISA, "State Spaces", "Generic
Addressing").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.ptx.syntax import Operand, Register, Sink
from fa4gen.emulator.ptx.types import CLASS_BITS, bits_of, is_signed
from fa4gen.emulator.state.memory import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    OFFSET_MASK,
    PARAM_WINDOW,
    RANK_SHIFT,
    RESERVED_SHARED,
    SHARED_WINDOW,
    WINDOW_BYTES,
)

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import Cta, Warpgroup
    from fa4gen.emulator.state.registers import Mask
    from fa4gen.emulator.translate.emit import Emitter

Offsets: TypeAlias = NDArray[np.int64]
RowOf: TypeAlias = Callable[["Warpgroup"], NDArray[Any]]

SPACES: Final = (
    "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry",
)  # fmt: skip

_WINDOW_SHIFT: Final = WINDOW_BYTES.bit_length() - 1
# generic windows, by the upper half of an address
_WINDOWS: Final = {
    SHARED_WINDOW >> _WINDOW_SHIFT: ("shared::cluster", SHARED_WINDOW),
    LOCAL_WINDOW >> _WINDOW_SHIFT: ("local", LOCAL_WINDOW),
    PARAM_WINDOW >> _WINDOW_SHIFT: ("param", PARAM_WINDOW),
}
_FIRST_WINDOW: Final = min(_WINDOWS)


@dataclass(frozen=True, slots=True)
class Part:
    """Lanes whose addresses lie in one memory.

    data     the bytes of that memory
    offsets  into ``data``: one for each lane of ``mask`` in lane order, or one for all of them
    aligned  whether offsets and the memory are multiples of the access's size
    mask     the lanes
    places   their indices among the lanes of the instruction; None for all of them
    cta      the owner of the shared memory
    """

    space: str
    data: NDArray[np.uint8]
    offsets: Offsets
    aligned: bool
    mask: Mask
    places: NDArray[np.int64] | None
    cta: Cta | None

    def words(self, dtype: Any, count: int) -> tuple[NDArray[Any], Offsets]:
        """The memory as items of ``count`` words, and the item of each lane; of an aligned part.

        The items have shape (items,) where count is one, else (items, count).
        """
        size = np.dtype(dtype).itemsize * count
        data = self.data
        view = data[: len(data) // size * size].view(dtype)
        index: Offsets = self.offsets >> (size.bit_length() - 1)
        return (view if count == 1 else view.reshape(-1, count)), index

    def gather(self, dtype: Any, count: int) -> NDArray[Any]:
        """``count`` words at each offset: (offsets,) where count is one, else (offsets, count)."""
        if self.aligned:
            view, index = self.words(dtype, count)
            return view.take(index, axis=0)
        size = np.dtype(dtype).itemsize * count
        words: NDArray[Any] = self.data[self.offsets[:, None] + np.arange(size)].view(dtype)
        return words[:, 0] if count == 1 else words

    def scatter(self, values: NDArray[Any]) -> None:
        """The reverse of gather; of lanes with the same offset the last one wins."""
        if len(self.offsets) == 1:
            values = values[-1:]
        if self.aligned:
            view, index = self.words(values.dtype, values.shape[1] if values.ndim > 1 else 1)
            view[index] = values
        else:
            raw = raw_bytes(values)
            self.data[self.offsets[:, None] + np.arange(raw.shape[1])] = raw

    def addresses(self) -> NDArray[np.int64]:
        """Global addresses of a part in global memory."""
        return self.offsets + GLOBAL_BASE


@dataclass(frozen=True, slots=True)
class Access:
    """The accesses of an instruction.

    space   a state space, or ``generic``
    size    bytes of each lane; addresses are multiples of it
    kind    ``read``, ``write`` or ``atomic``, as the observer calls it
    """

    site: Instruction
    space: str
    size: int
    kind: str

    def parts(self, wg: Warpgroup, mask: Mask, addresses: Offsets) -> Sequence[Part]:
        """Check addresses and split the lanes; stops the launch at a bad one.

        ``addresses`` has one entry for each lane of ``mask``, or one for all.
        """
        if self.size > 1 and int(np.bitwise_or.reduce(addresses)) & (self.size - 1):
            self._misaligned(wg, mask, addresses)
        return self._parts(wg, mask, addresses, self.space, None)

    def observe(self, wg: Warpgroup, part: Part, values: NDArray[Any] | None = None) -> None:
        """Tell the observer, if it listens.

        ``values`` are those about to be stored, one item for each lane.
        """
        observer = wg.machine.observer
        if not observer.enabled:
            return
        raw = None if values is None else raw_bytes(values)
        if part.cta is not None:
            observer.shared_access(
                wg, part.mask, part.cta, part.offsets, self.size, self.kind, self.site, raw
            )
        elif part.space == "global":
            observer.global_access(
                wg, part.mask, part.addresses(), self.size, self.kind, self.site, raw
            )

    # ---- spaces

    def _parts(
        self, wg: Warpgroup, mask: Mask, addresses: Offsets, space: str, places: Any
    ) -> Sequence[Part]:
        low, high = int(addresses.min()), int(addresses.max())
        if space == "generic":
            window, last = low >> _WINDOW_SHIFT, high >> _WINDOW_SHIFT
            if last < _FIRST_WINDOW:
                space = "global"
            elif window != last:
                return self._split(wg, mask, addresses, _window_numbers(addresses), space, places)
            elif window in _WINDOWS:
                space, base = _WINDOWS[window]
                addresses, low, high = addresses - base, low - base, high - base
            else:
                space = "global"
        if space in ("global", "const"):
            return (self._global(wg, mask, addresses, low, high, places),)
        if space.startswith("shared"):
            if low >> RANK_SHIFT != high >> RANK_SHIFT:
                ranks = addresses >> RANK_SHIFT
                return self._split(wg, mask, addresses, ranks, space, places)
            return (self._shared(wg, mask, addresses, low, high, space, places),)
        if space == "local":
            return (self._local(wg, mask, addresses, low, high, places),)
        data = wg.machine.parameters
        if low < 0 or high + self.size > len(data):
            self._outside(wg, mask, addresses, 0, len(data), "the kernel's parameters")
        return (Part("param", data, addresses, False, mask, places, None),)

    def _split(
        self,
        wg: Warpgroup,
        mask: Mask,
        addresses: Offsets,
        numbers: Offsets,
        space: str,
        outer: Any,
    ) -> list[Part]:
        """Treat lanes with different numbers (windows, ranks) apart."""
        lanes = wg.lanes_of(mask)
        result: list[Part] = []
        values = np.unique(numbers)
        if len(values) == 1:
            # outside the windows everything is global memory
            return list(self._parts(wg, mask, addresses, "global", outer))
        for number in values:
            places = np.flatnonzero(numbers == number)
            part = np.zeros(wg.lanes, np.bool_)
            part[lanes[places]] = True
            where = places if outer is None else outer[places]
            result.extend(self._parts(wg, part, addresses[places], space, where))
        return result

    def _global(
        self, wg: Warpgroup, mask: Mask, addresses: Offsets, low: int, high: int, places: Any
    ) -> Part:
        memory = wg.machine.memory
        region = memory.region(low)
        if region is None or high + self.size > region.stop:
            good = memory.valid(addresses.view(np.uint64), self.size)
            if not good.all():
                self._bad_global(wg, mask, addresses, int(good.argmin()))
            if self.kind != "read":
                self._writable(wg, mask, addresses)
        elif not region.writable and self.kind != "read":
            self._writable(wg, mask, addresses)
        return Part("global", memory.data, addresses - GLOBAL_BASE, True, mask, places, None)

    def _shared(
        self, wg: Warpgroup, mask: Mask, addresses: Offsets, low: int, high: int, space: str,
        places: Any,
    ) -> Part:  # fmt: skip
        cta = wg.cta
        if low >> RANK_SHIFT != cta.rank:
            cluster = space == "shared::cluster"
            cta, _ = wg.machine.shared_at(wg, low % (1 << 64), self.site, cluster)
        offsets = addresses & OFFSET_MASK if low >> RANK_SHIFT else addresses
        size = cta.shared.size
        if (low & OFFSET_MASK) < RESERVED_SHARED or (high & OFFSET_MASK) + self.size > size:
            what = f"the kernel's shared memory of {cta.label}"
            self._outside(wg, mask, offsets, RESERVED_SHARED, size, what)
        return Part("shared", cta.shared.data, offsets, True, mask, places, cta)

    def _local(
        self, wg: Warpgroup, mask: Mask, addresses: Offsets, low: int, high: int, places: Any
    ) -> Part:
        size = wg.local_bytes
        if low < 0 or high + self.size > size:
            self._outside(wg, mask, addresses, 0, size, "local memory")
        offsets = addresses + wg.lanes_of(mask) * size
        aligned = size % self.size == 0
        return Part("local", wg.local.reshape(-1), offsets, aligned, mask, places, None)

    # ---- bad addresses

    def _stop(self, wg: Warpgroup, mask: Mask, kind: str, place: int, message: str) -> NoReturn:
        """Blame the lane at a place among those of the mask."""
        lane = np.zeros(wg.lanes, np.bool_)
        lane[wg.lanes_of(mask)[place]] = True
        wg.machine.fault(kind, message, self.site, wg, lane)

    def _misaligned(self, wg: Warpgroup, mask: Mask, addresses: Offsets) -> NoReturn:
        place = int(((addresses & (self.size - 1)) != 0).argmax())
        address = int(addresses[place]) % (1 << 64)
        message = f"{self._what()} at {self._describe(wg, address)}"
        message += f" (address {address:#x}), which is not a multiple of {self.size}"
        self._stop(wg, mask, "misaligned", place, message)

    def _what(self) -> str:
        kind = "an atomic update" if self.kind == "atomic" else f"a {self.kind}"
        return f"{kind} of {self.size} byte{'s' if self.size > 1 else ''}"

    def _describe(self, wg: Warpgroup, address: int) -> str:
        space = self.space
        if space == "generic" and address >> _WINDOW_SHIFT in _WINDOWS:
            space, base = _WINDOWS[address >> _WINDOW_SHIFT]
            address -= base
        if space in ("generic", "global", "const"):
            return wg.machine.memory.describe(address)
        if space.startswith("shared"):
            return wg.cta.name_of(address & OFFSET_MASK)
        return f"{space} + {address}"

    def _bad_global(self, wg: Warpgroup, mask: Mask, addresses: Offsets, place: int) -> NoReturn:
        memory = wg.machine.memory
        address = int(addresses[place]) % (1 << 64)
        where = memory.describe(address)
        if memory.region(address) is not None:
            where += f" and on, up to {memory.describe(address + self.size - 1)}"
        self._stop(wg, mask, "out-of-bounds", place, f"{self._what()} at {where}")

    def _writable(self, wg: Warpgroup, mask: Mask, addresses: Offsets) -> None:
        memory = wg.machine.memory
        for place, address in enumerate(addresses.tolist()):
            region = memory.region(address)
            if region is not None and not region.writable:
                message = f"{self._what()} at {memory.describe(address)}, which is read only"
                self._stop(wg, mask, "out-of-bounds", place, message)

    def _outside(
        self, wg: Warpgroup, mask: Mask, offsets: Offsets, start: int, stop: int, what: str
    ) -> NoReturn:
        good = (offsets >= start) & (offsets + self.size <= stop)
        place = int(good.argmin())
        self._stop(
            wg,
            mask,
            "out-of-bounds",
            place,
            f"{self._what()} at offset {int(offsets[place])} of {what}, which is bytes {start} to"
            f" {stop}",
        )


def _window_numbers(addresses: Offsets) -> Offsets:
    """The window of each generic address; everything outside the windows is one."""
    numbers: Offsets = addresses >> _WINDOW_SHIFT
    return np.where(np.isin(numbers, list(_WINDOWS)), numbers, 0)


def raw_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Items as bytes: (items, bytes each)."""
    raw: NDArray[np.uint8] = np.ascontiguousarray(values).view(np.uint8)
    return raw.reshape(len(values), -1)


def lane_addresses(addresses: Any, mask: Mask) -> Offsets:
    """Addresses from ``Emitter.address`` of the lanes that take part, or one for all of them."""
    row = np.atleast_1d(addresses).view(np.int64)
    return row if mask is None or len(row) == 1 else row[mask]


def lane_values(values: Any, wg: Warpgroup, mask: Mask) -> NDArray[Any]:
    """The value of a reader for each lane that takes part."""
    if not getattr(values, "ndim", 0):
        count = wg.lanes if mask is None else int(np.count_nonzero(mask))
        return np.full(count, values)
    row: NDArray[Any] = values if mask is None else values[mask]
    return row


def word_of(kind: str) -> Any:
    """The NumPy type that holds a memory word of a PTX type: integers, signed where the type is."""
    if kind == "b128":
        return np.dtype(np.uint64)
    return np.dtype(f"{'i' if is_signed(kind) else 'u'}{bits_of(kind) // 8}")


def destination(e: Emitter, operand: Operand, kind: str) -> RowOf | None:
    """The register row that a loaded word goes to; None for a sink.

    A wider register gets the word sign- or zero-extended: the row has the register's width.
    """
    if isinstance(operand, Sink):
        return None
    if not isinstance(operand, Register) or operand.cls == "p":
        raise e.refuse("the destination is not a register that can hold the value")
    width, index = CLASS_BITS[operand.cls], operand.index
    if width < bits_of(kind) or (width == 128) != (kind == "b128"):
        raise e.refuse(f"{operand.name} does not hold a .{kind}")
    view = "Q" if kind == "b128" else f"{'S' if is_signed(kind) else 'U'}{width}"

    def row(wg: Warpgroup) -> NDArray[Any]:
        found: NDArray[Any] = getattr(wg, view)[index]
        return found

    return row


def put(row: NDArray[Any], values: Any, mask: Mask) -> None:
    """Write values of the lanes that take part (or one for all) into a row."""
    if mask is None:
        row[...] = values
    else:
        row[mask] = values
