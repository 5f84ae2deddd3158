"""The arrays of a launch: their addresses in global memory, and how they are copied back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.state.map_bits import MAP_ALIGN
from fa4gen.emulator.state.memory import GlobalMemory
from fa4gen.emulator.state.relocations import Bytes, Memory, check_places, resolve, targets
from fa4gen.emulator.state.tensor_map import TensorMap

_ALLOCATION_ALIGN: Final = 256
_STRETCH: Final = 1 << 20
_EVERYWHERE: Final = 0, 1 << 62


@dataclass(slots=True)
class _Span:
    """An array, the memory from ``low`` to ``high`` that it covers on the host, its name."""

    low: int
    high: int
    array: NDArray[Any]
    names: list[str]
    fixed: int | None


@dataclass(frozen=True, slots=True)
class Output:
    """An array that the kernel has to write, whole; ``address`` is that of its first element."""

    name: str
    address: int
    array: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Pending:
    """Half-open address ranges that the grid before may still write, or read, at the beginning."""

    writes: tuple[tuple[int, int], ...]
    reads: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class GlobalArrays:
    """Collects the arrays of a launch, places them, and copies them in and back."""

    addresses: dict[int, int] = field(default_factory=dict)
    """The address of each array, by ``id``."""
    _arrays: dict[int, tuple[NDArray[Any], list[str]]] = field(default_factory=dict)
    """Each array with its name, by ``id``."""
    _owners: dict[int, Memory] = field(default_factory=dict)
    _copies: list[tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=list)
    _written: list[tuple[NDArray[Any], NDArray[Any], int, bytes]] = field(default_factory=list)

    def add(self, argument: Any, name: str) -> None:
        """Note the arrays that an argument is or points to; ``name`` is for those without one."""
        if isinstance(argument, TensorMap):
            self._array(argument.array, name)
        elif isinstance(argument, Memory):
            if id(argument) in self._owners:
                return
            self._owners[id(argument)] = argument
            name = argument.name or name
            if not isinstance(argument.array, np.ndarray):
                raise LaunchError(f"{name}: a Memory holds a NumPy array, not {argument.array!r}")
            self._array(argument.array, name, known=bool(argument.name))
            if argument.pointers or argument.maps:
                if not argument.array.flags.c_contiguous:
                    raise LaunchError(f"{name} holds addresses, so it has to be C-contiguous")
                check_places(argument, argument.array.nbytes, name)
            self._behind(argument, name)
        elif isinstance(argument, Bytes):
            check_places(argument, len(argument.data), name)
            self._behind(argument, name)
        elif isinstance(argument, np.ndarray) and argument.ndim > 0:
            self._array(argument, name)

    def place(self, memory: GlobalMemory) -> None:
        """Reserve global memory; arrays that share memory keep sharing it. Seals ``memory``."""
        fixed: dict[int, int] = {}
        for owner in self._owners.values():
            if owner.address is not None and fixed.setdefault(id(owner.array), owner.address) != (
                owner.address
            ):
                raise LaunchError(
                    f"{owner.name or 'an array'} is to be at {fixed[id(owner.array)]:#x} and"
                    f" at {owner.address:#x}"
                )
        groups = _groups(self._arrays, fixed)
        # those at a given address first: the others are placed after them
        for group in sorted(groups, key=lambda one: not any(s.fixed is not None for s in one)):
            _place(group, memory, self.addresses)
        memory.seal()

    def fill(self, memory: GlobalMemory) -> None:
        """Copy the arrays to global memory, and write the addresses that they hold."""
        for array, _ in self._arrays.values():
            view = memory.view(array, self.addresses[id(array)])
            copy_array(view, array)
            self._copies.append((array, view))
        for owner in self._owners.values():
            start = self.addresses[id(owner.array)]
            what = owner.name or "an array"
            if owner.maps and start % MAP_ALIGN:
                raise LaunchError(
                    f"{what} holds tensor maps and begins at {start:#x}: a view has to begin at a"
                    f" multiple of {MAP_ALIGN} bytes"
                )
            for offset, raw in resolve(owner, self.addresses, what):
                place = memory.view(np.empty(len(raw), np.uint8), start + offset)
                old = place.copy()
                place[...] = np.frombuffer(raw, np.uint8)
                self._written.append((place, old, start + offset, raw))

    def pending(
        self,
        writes: Sequence[NDArray[Any]] | Literal["all"],
        reads: Sequence[NDArray[Any]],
    ) -> Pending | None:
        """The address ranges of arrays of the launch, or of parts of them; None without any.

        Raises LaunchError for any other array.
        """
        written = (_EVERYWHERE,) if writes == "all" else self._spans("pending_writes", writes)
        read = self._spans("pending_reads", reads)
        return Pending(written, read) if written or read else None

    def _spans(self, key: str, arrays: Sequence[NDArray[Any]]) -> tuple[tuple[int, int], ...]:
        return tuple(self._span(key, array) for array in arrays)

    def _span(self, key: str, array: NDArray[Any]) -> tuple[int, int]:
        if not array.size:
            return 0, 0
        low, high = np.lib.array_utils.byte_bounds(array)
        for whole, _ in self._arrays.values():
            if id(whole) == id(array) or (whole.size and np.may_share_memory(whole, array)):
                first, end = np.lib.array_utils.byte_bounds(whole)
                if first <= low and high <= end:
                    start: int = self.addresses[id(whole)] + low
                    start -= whole.__array_interface__["data"][0]
                    return start, start + high - low
        raise LaunchError(f"{key} lists arrays of the launch; one is not among them")

    def fetch(self) -> None:
        """Copy the arrays back to where the caller keeps them, without addresses of ours."""
        for place, old, _, raw in self._written:
            if place.tobytes() == raw:
                place[...] = old
        for array, copy in self._copies:
            if array.flags.writeable:
                copy_array(array, copy)

    def outputs(self, arrays: Sequence[NDArray[Any]]) -> tuple[Output, ...]:
        """Name and place of arrays of the launch. Raises LaunchError for others."""
        found = []
        for array in arrays:
            known = self._arrays.get(id(array))
            if known is None:
                raise LaunchError(
                    f"no argument leads to an output of shape {array.shape} and type {array.dtype}:"
                    " outputs are arrays of the launch, the very objects"
                )
            found.append(Output("/".join(known[1]), self.addresses[id(array)], array))
        return tuple(found)

    def _array(self, array: NDArray[Any], name: str, *, known: bool = False) -> None:
        names = self._arrays.setdefault(id(array), (array, []))[1]
        if known:
            names[:] = [name]
        elif name not in names:
            names.append(name)

    def _behind(self, owner: Bytes | Memory, name: str) -> None:
        for offset, goal in targets(owner, name):
            self.add(goal.memory or goal.array, f"{name}+{offset}")
        for offset, tensor_map in owner.maps.items():
            if not isinstance(tensor_map, TensorMap):
                raise LaunchError(
                    f"{name}, map at {offset}: a TensorMap was expected, not {tensor_map!r}"
                )
            self.add(tensor_map, f"{name}+{offset}")


def copy_array(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy an array; of large ones only stretches that differ, so that zeros need no memory."""
    if source.nbytes <= _STRETCH or not (source.flags.c_contiguous and target.flags.c_contiguous):
        target[...] = source
        return
    to, of = target.reshape(-1).view(np.uint8), source.reshape(-1).view(np.uint8)
    for at in range(0, len(of), _STRETCH):
        if not np.array_equal(to[at : at + _STRETCH], of[at : at + _STRETCH]):
            to[at : at + _STRETCH] = of[at : at + _STRETCH]


def _groups(
    arrays: dict[int, tuple[NDArray[Any], list[str]]], fixed: dict[int, int]
) -> list[list[_Span]]:
    """Arrays that overlap on the host, together."""
    spans: list[_Span] = []
    for key, (array, names) in arrays.items():
        low, high = np.lib.array_utils.byte_bounds(array) if array.size else (id(array), id(array))
        spans.append(_Span(low, max(high, low + 1), array, names, fixed.get(key)))
    spans.sort(key=lambda one: (one.low, one.high))
    groups: list[list[_Span]] = []
    end = -1
    for span in spans:
        if not groups or span.low >= end:
            groups.append([])
        groups[-1].append(span)
        end = max(end, span.high)
    return groups


def _place(group: Sequence[_Span], memory: GlobalMemory, addresses: dict[int, int]) -> None:
    low = group[0].low
    size = max(one.high for one in group) - low
    writable = any(one.array.flags.writeable for one in group)
    elements = sum(one.array.nbytes for one in group)
    names = "/".join(dict.fromkeys(name for one in group for name in one.names))
    starts = {one.fixed - (_first(one) - low) for one in group if one.fixed is not None}
    if len(starts) > 1:
        raise LaunchError(f"{names} share memory, so their addresses cannot be chosen freely")
    if starts:
        start = starts.pop()
        memory.reserve_at(start, size, names, writable=writable, elements=elements)
    else:
        # an allocation starts on a wide boundary, as the GPU's allocator does; an array inside one
        # keeps its distance from the start
        lead = (low - _allocation(group[0].array)) % _ALLOCATION_ALIGN
        room = size + lead
        start = memory.reserve(room, names, writable=writable, elements=elements + lead) + lead
    for one in group:
        addresses[id(one.array)] = start + _first(one) - low


def _first(span: _Span) -> int:
    """The host's address of element 0."""
    if not span.array.size:
        return span.low
    first: int = span.array.__array_interface__["data"][0]
    return first


def _allocation(array: NDArray[Any]) -> int:
    """The address where the memory begins that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    address: int = array.__array_interface__["data"][0]
    return address
