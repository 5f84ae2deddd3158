"""The arguments of a launch: arrays into global memory, values into the parameter buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.names import Names
from fa4gen.emulator.ptx.mangled import shown_name
from fa4gen.emulator.ptx.syntax import Function, Variable
from fa4gen.emulator.state.global_arrays import GlobalArrays
from fa4gen.emulator.state.layout import Layout
from fa4gen.emulator.state.map_bits import MAP_ALIGN, MAP_BYTES
from fa4gen.emulator.state.memory import GlobalMemory
from fa4gen.emulator.state.relocations import POINTER_BYTES, Bytes, Memory, resolve
from fa4gen.emulator.state.tensor_map import TensorMap


@dataclass(slots=True)
class Bound:
    """The parameter buffer, and the arrays with their copies in global memory."""

    parameters: NDArray[np.uint8]
    arrays: GlobalArrays

    def fetch(self) -> None:
        """Copy the arrays back to where the caller keeps them."""
        self.arrays.fetch()


def bind_arguments(
    function: Function,
    layout: Layout,
    memory: GlobalMemory,
    args: Sequence[Any],
    more: Sequence[Memory] = (),
    names: Names | None = None,
) -> Bound:
    """Fill the parameters of an entry; seals ``memory`` with the arrays in it.

    Raises LaunchError where number, kind or size of the arguments do not fit.
    """
    parameters = function.parameters
    if len(args) != len(parameters):
        expected = ", ".join(f"{_name(function, p)} ({p.size} bytes)" for p in parameters) or "none"
        raise LaunchError(
            f"{shown_name(function.name)} has {len(parameters)} parameters, {len(args)} arguments"
            f" were given; the parameters are: {expected}"
        )
    arrays = GlobalArrays()
    for parameter, argument in zip(parameters, args, strict=True):
        arrays.add(argument, _name(function, parameter))
    for one in more:
        if not isinstance(one, Memory):
            raise LaunchError(f"memory lists Memory objects, not {type(one).__name__}")
        arrays.add(one, "memory")
    arrays.place(memory)
    buffer = np.zeros(max(layout.parameter_bytes, 1) + 128, np.uint8)
    for index, (parameter, argument) in enumerate(zip(parameters, args, strict=True)):
        at = layout.parameter_offsets[index]
        called = names.of_parameter(index) if names else None
        what = f"argument {index} ({called or _name(function, parameter)})"
        raw = _raw(what, parameter, argument, arrays.addresses)
        buffer[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
    arrays.fill(memory)
    return Bound(buffer, arrays)


def _name(function: Function, parameter: Variable) -> str:
    """A parameter without the entry's name, which compilers put before it."""
    return shown_name(parameter.name.removeprefix(function.name + "_"))


def _raw(what: str, parameter: Variable, argument: Any, addresses: dict[int, int]) -> bytes:
    if isinstance(argument, TensorMap):
        if parameter.size != MAP_BYTES:
            raise LaunchError(f"{what} has {parameter.size} bytes; a tensor map has {MAP_BYTES}")
        encoded: bytes = argument.encode(addresses[id(argument.array)])
        return encoded
    array = argument.array if isinstance(argument, Memory) else argument
    if isinstance(array, np.ndarray) and (array.ndim > 0 or array is not argument):
        if parameter.size != POINTER_BYTES:
            raise LaunchError(
                f"{what} has {parameter.size} bytes; an array is passed as a pointer of 8"
            )
        return int(addresses[id(array)]).to_bytes(POINTER_BYTES, "little")
    if argument is None:
        return bytes(parameter.size)
    if isinstance(argument, Bytes):
        raw = _relocated(what, parameter, argument, addresses)
    elif isinstance(argument, (bytes, bytearray)):
        raw = bytes(argument)
    elif isinstance(argument, (np.generic, np.ndarray)):
        raw = argument.tobytes()
    else:
        raise LaunchError(
            f"{what} is a {type(argument).__name__}; pass a NumPy array, a NumPy "
            "scalar such as numpy.int32(7), a TensorMap, Bytes, bytes, or None for zeros"
        )
    if len(raw) != parameter.size:
        raise LaunchError(
            f"{what} has {parameter.size} bytes, but {len(raw)} were given "
            f"({type(argument).__name__})"
        )
    return raw


def _relocated(what: str, parameter: Variable, argument: Bytes, addresses: dict[int, int]) -> bytes:
    if argument.maps and parameter.align < MAP_ALIGN:
        raise LaunchError(
            f"{what} is aligned to {parameter.align} bytes only; a tensor map in it needs"
            f" {MAP_ALIGN}"
        )
    raw = bytearray(argument.data)
    for offset, word in resolve(argument, addresses, what):
        raw[offset : offset + len(word)] = word
    return bytes(raw)
