"""The arguments of a launch: arrays into global memory, values into the parameter buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.layout import Layout
from fa4gen.emulator.memory import GlobalMemory
from fa4gen.emulator.ptx.syntax import Function, Variable
from fa4gen.emulator.tensor_map import TensorMap

_ALLOCATION_ALIGN: Final = 256


@dataclass(slots=True)
class Bound:
    """The parameter buffer, and the arrays with their copies in global memory."""

    parameters: NDArray[np.uint8]
    arrays: list[tuple[NDArray[Any], NDArray[Any]]]

    def fetch(self) -> None:
        """Copy the arrays back to where the caller keeps them."""
        for array, copy in self.arrays:
            if array.flags.writeable:
                array[...] = copy


def bind_arguments(
    function: Function, layout: Layout, memory: GlobalMemory, args: Sequence[Any]
) -> Bound:
    """Fill the parameters of an entry; seals ``memory`` with the arrays in it.

    Raises LaunchError where number, kind or size of the arguments do not fit.
    """
    parameters = function.parameters
    if len(args) != len(parameters):
        expected = ", ".join(f"{p.name} ({p.size} bytes)" for p in parameters) or "none"
        raise LaunchError(
            f"{function.name} has {len(parameters)} parameters, {len(args)} arguments"
            f" were given; the parameters are: {expected}"
        )
    arrays: list[tuple[NDArray[Any], str]] = []
    for parameter, argument in zip(parameters, args, strict=True):
        name = parameter.name.removeprefix(function.name + "_")
        if isinstance(argument, TensorMap):
            arrays.append((argument.array, name))
        elif isinstance(argument, np.ndarray) and argument.ndim > 0:
            arrays.append((argument, name))
    addresses = _map_arrays(arrays, memory)
    memory.seal()
    buffer = np.zeros(max(layout.parameter_bytes, 1) + 128, np.uint8)
    for index, (parameter, argument) in enumerate(zip(parameters, args, strict=True)):
        raw = _raw(index, parameter, argument, addresses)
        at = layout.parameter_offsets[index]
        buffer[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
    copies = []
    for array, _ in arrays:
        view = memory.view(array, addresses[id(array)])
        view[...] = array
        copies.append((array, view))
    return Bound(buffer, copies)


def _map_arrays(arrays: Sequence[tuple[NDArray[Any], str]], memory: GlobalMemory) -> dict[int, int]:
    """Give every array an address; arrays that share memory keep sharing it."""
    spans: list[list[Any]] = []
    for array, name in arrays:
        low, high = np.lib.array_utils.byte_bounds(array) if array.size else (id(array), id(array))
        spans.append([low, max(high, low + 1), array, name])
    spans.sort(key=lambda one: (one[0], one[1]))
    addresses: dict[int, int] = {}
    group: list[list[Any]] = []
    end = -1

    def place() -> None:
        if not group:
            return
        low = group[0][0]
        high = max(one[1] for one in group)
        writable = any(one[2].flags.writeable for one in group)
        names = "/".join(dict.fromkeys(one[3] for one in group))
        # an allocation starts on a wide boundary, as the GPU's allocator gives it; what lies
        # inside one keeps its distance from there
        lead = (low - _allocation(group[0][2])) % _ALLOCATION_ALIGN
        start = memory.reserve(high - low + lead, names, writable=writable) + lead
        for one in group:
            array = one[2]
            first = array.__array_interface__["data"][0] if array.size else low
            addresses[id(array)] = start + first - low

    for one in spans:
        if group and one[0] >= end:
            place()
            group = []
            end = -1
        group.append(one)
        end = max(end, one[1])
    place()
    return addresses


def _allocation(array: NDArray[Any]) -> int:
    """The address where the memory begins that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    address: int = array.__array_interface__["data"][0]
    return address


def _raw(index: int, parameter: Variable, argument: Any, addresses: dict[int, int]) -> bytes:
    what = f"argument {index} ({parameter.name})"
    if isinstance(argument, TensorMap):
        if parameter.size != 128:
            raise LaunchError(f"{what} has {parameter.size} bytes; a tensor map has 128")
        encoded: bytes = argument.encode(addresses[id(argument.array)])
        return encoded
    if isinstance(argument, np.ndarray) and argument.ndim > 0:
        if parameter.size != 8:
            raise LaunchError(
                f"{what} has {parameter.size} bytes; an array is passed as a pointer of 8"
            )
        return int(addresses[id(argument)]).to_bytes(8, "little")
    if argument is None:
        return bytes(parameter.size)
    if isinstance(argument, (bytes, bytearray)):
        raw = bytes(argument)
    elif isinstance(argument, (np.generic, np.ndarray)):
        raw = argument.tobytes()
    else:
        raise LaunchError(
            f"{what} is a {type(argument).__name__}; pass a NumPy array, a NumPy "
            "scalar such as numpy.int32(7), a TensorMap, bytes, or None for zeros"
        )
    if len(raw) != parameter.size:
        raise LaunchError(
            f"{what} has {parameter.size} bytes, but {len(raw)} were given "
            f"({type(argument).__name__})"
        )
    return raw
