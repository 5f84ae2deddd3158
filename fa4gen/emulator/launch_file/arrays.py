"""The arrays and arguments that a launch file describes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.launch_file.array_files import (
    bytes_needed,
    file_bytes,
    make_array,
    numpy_type,
)
from fa4gen.emulator.launch_file.model import (
    ArrayFile,
    BytesArgument,
    BytesFile,
    LaunchFile,
    MadeArray,
    MapArgument,
    ScalarArgument,
    UsedArray,
    by_offset,
    split_part,
    split_pointer,
)
from fa4gen.emulator.launch_file.problems import LaunchFileError, LaunchProblem
from fa4gen.emulator.state.budget import Budget, default_budget
from fa4gen.emulator.state.relocations import Bytes, Memory, check_places, target
from fa4gen.emulator.state.tensor_map import TensorMap

MAX_PARAMETER: Final = 32_764
"""Bytes of all parameters of a kernel, from CUDA 12.1 on."""
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class LaunchArrays:
    """The initial arrays of a launch. Every run gets copies, so that all runs start alike."""

    file: LaunchFile
    arrays: dict[str, NDArray[Any]]
    """By name; an argument without a name is called after its place: ``0``, ``1``, ..."""
    described: dict[str, ArrayFile | MadeArray]
    places: dict[str, str]
    """The key of each array in the file."""
    raw: dict[int, bytes]
    """The bytes of arguments that are given as such, by index."""

    def outputs(self) -> tuple[str, ...]:
        """The arrays that the kernel has to write, every element."""
        return tuple(
            name
            for name, one in self.described.items()
            if (one.output is not None or one.expect is not None) and not one.partial
        )

    def variables(self, arrays: Arrays) -> dict[str, Memory]:
        """The ``variables`` of ``Program.launch``, from the arrays that ``arguments`` gave."""
        return {
            name: Memory(arrays[name], address=one.address)
            for name, one in self.file.variables.items()
        }

    def _named(self, name: str, one: ArrayFile | MadeArray) -> bool:
        """Whether the file names an array that would have the parameter's name otherwise."""
        return name in self.file.arrays or one.name is not None

    def arguments(self) -> tuple[list[Any], dict[str, NDArray[Any]], list[Memory]]:
        """Arguments for ``Program.launch``, the arrays they are or point to, and its ``memory``."""
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        # names that no parameter gives, addresses and relocations come with these
        memory = [
            Memory(
                arrays[name],
                _pointers(one.pointers, arrays, self.places[name]),
                _maps(one.tensor_maps, arrays, self.places[name]),
                one.address,
                name,
            )
            for name, one in self.described.items()
            if name not in self.file.variables
            if one.address is not None or one.pointers or one.tensor_maps or self._named(name, one)
        ]
        for one in memory:
            _check_places(one, one.array.nbytes, self.places[one.name])
        arguments: list[Any] = []
        for index, argument in enumerate(self.file.arguments):
            key = f"arguments[{index}]"
            if isinstance(argument, (ArrayFile, MadeArray)):
                arguments.append(arrays[argument.name or str(index)])
            elif isinstance(argument, UsedArray):
                arguments.append(arrays[argument.use])
            elif isinstance(argument, MapArgument):
                arguments.append(_tensor_map(key, argument, arrays))
            elif isinstance(argument, ScalarArgument):
                arguments.append(_scalar(key, argument))
            elif isinstance(argument, (BytesArgument, BytesFile)):
                arguments.append(
                    Bytes(
                        self.raw[index],
                        _pointers(argument.pointers, arrays, key),
                        _maps(argument.tensor_maps, arrays, key),
                    )
                )
                _check_places(arguments[-1], len(self.raw[index]), key)
            else:
                arguments.append(None)
        return arguments, arrays, memory


def prepare(file: LaunchFile, folder: Path) -> LaunchArrays:
    """Make and read all arrays; paths in the file are relative to ``folder``.

    Raises LaunchFileError for names, types and files that do not fit, with all of them.
    """
    problems: list[LaunchProblem] = []
    described: dict[str, ArrayFile | MadeArray] = {}
    places: dict[str, str] = {}
    candidates = [(f"arrays.{name}", name, one) for name, one in file.arrays.items()]
    candidates += [(f"variables.{name}", name, one) for name, one in file.variables.items()]
    for index, argument in enumerate(file.arguments):
        if isinstance(argument, (ArrayFile, MadeArray)):
            candidates.append((f"arguments[{index}]", argument.name or str(index), argument))
    for place, name, one in candidates:
        if name in described:
            problems.append(
                LaunchProblem(f"the name {name} is that of {places[name]}, too", place + ".name")
            )
        described[name], places[name] = one, place
    _check_memory(file, folder, described, places, problems)
    arrays: dict[str, NDArray[Any]] = {}
    raw: dict[int, bytes] = {}
    for name, one in {} if problems else described.items():
        try:
            arrays[name] = make_array(one, folder)
        except LaunchFileError as error:
            problems += _within(places[name], error)
    for index, argument in enumerate(file.arguments):
        if isinstance(argument, (BytesArgument, BytesFile)):
            try:
                raw[index] = _raw_bytes(argument, folder)
            except LaunchFileError as error:
                problems += _within(f"arguments[{index}]", error)
    for key, wanted in _names_used(file, described, places):
        if wanted not in described:
            there = ", ".join(described) or "none"
            problems.append(LaunchProblem(f"no array is called {wanted!r}; there is {there}", key))
    if problems:
        raise LaunchFileError(*problems)
    prepared = LaunchArrays(file, arrays, described, places, raw)
    prepared.arguments()  # errors of a tensor map are reported before anything runs
    return prepared


def _check_memory(
    file: LaunchFile,
    folder: Path,
    described: Mapping[str, ArrayFile | MadeArray],
    places: Mapping[str, str],
    problems: list[LaunchProblem],
) -> None:
    """Add a problem where the arrays together need more memory than a launch may use."""
    budget = default_budget() if file.max_memory is None else Budget(file.max_memory)
    total = 0
    for name, one in described.items():
        try:
            size, key = bytes_needed(one, folder)
        except LaunchFileError as error:
            problems += _within(places[name], error)
            continue
        total += size
        try:
            budget.need(total, "memory for this and the arrays before it")
        except LaunchError as error:
            message = f"{error}. {error.remedy}"
            problems.append(LaunchProblem(message, f"{places[name]}.{key}"))
            return


def _within(place: str, error: LaunchFileError) -> list[LaunchProblem]:
    return [LaunchProblem(each.message, f"{place}.{each.key}") for each in error.problems]


def _names_used(
    file: LaunchFile, described: Mapping[str, ArrayFile | MadeArray], places: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Each key of the file that names an array, and the name."""
    owners: list[tuple[str, Any]] = [
        (f"arguments[{index}]", argument) for index, argument in enumerate(file.arguments)
    ]
    written = () if file.pending_writes == "all" else file.pending_writes
    for pending, parts in (("pending_writes", written), ("pending_reads", file.pending_reads)):
        for index, part in enumerate(parts):
            yield f"{pending}[{index}]", split_part(part)[0]
    owners += [(places[name], one) for name, one in described.items() if name in file.arrays]
    for key, one in owners:
        for kind in ("use", "tensor_map"):
            if isinstance(one, {"use": UsedArray, "tensor_map": MapArgument}[kind]):
                yield f"{key}.{kind}", getattr(one, kind)
        for offset, text in getattr(one, "pointers", {}).items():
            yield f"{key}.pointers[{offset}]", split_pointer(text)[0]
        for offset, argument in getattr(one, "tensor_maps", {}).items():
            yield f"{key}.tensor_maps[{offset}].tensor_map", argument.tensor_map


def _raw_bytes(argument: BytesArgument | BytesFile, folder: Path) -> bytes:
    if isinstance(argument, BytesArgument):
        key = "bytes"
        try:
            raw = bytes.fromhex(argument.bytes)
        except ValueError as error:
            raise LaunchFileError(LaunchProblem(f"no hexadecimal digits: {error}", key)) from None
    else:
        key = "bytes_file"
        path = folder / argument.bytes_file
        try:
            if file_bytes(path, key) > MAX_PARAMETER:
                raise LaunchFileError(
                    LaunchProblem(f"{path} has more than {MAX_PARAMETER} bytes", key)
                )
            raw = path.read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise LaunchFileError(LaunchProblem(f"cannot read {path}: {reason}", key)) from None
    if max(len(raw), argument.size or 0) > MAX_PARAMETER:
        raise LaunchFileError(
            LaunchProblem(f"a kernel has at most {MAX_PARAMETER} bytes of parameters", "size")
        )
    if argument.size is None:
        return raw
    if argument.size < len(raw):
        raise LaunchFileError(
            LaunchProblem(f"{argument.size} bytes are fewer than the {len(raw)} given", "size")
        )
    return raw.ljust(argument.size, b"\0")


def _check_places(owner: Bytes | Memory, size: int, key: str) -> None:
    try:
        check_places(owner, size, "this")
    except LaunchError as error:
        message = str(error).removeprefix("this: ")
        raise LaunchFileError(LaunchProblem(message, key)) from None


def _pointers(described: Mapping[str, str], arrays: Arrays, place: str) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for offset, text in by_offset(described).items():
        name, at = split_pointer(text)
        found[offset] = Memory(arrays[name], name=name), at
        try:
            target(found[offset], name)
        except LaunchError as error:
            key = f"{place}.pointers[{offset}]"
            raise LaunchFileError(LaunchProblem(str(error), key)) from None
    return found


def _maps(described: Mapping[str, MapArgument], arrays: Arrays, place: str) -> dict[int, TensorMap]:
    return {
        offset: _tensor_map(f"{place}.tensor_maps[{offset}]", one, arrays)
        for offset, one in by_offset(described).items()
    }


def _scalar(key: str, argument: ScalarArgument) -> Any:
    dtype = numpy_type(argument.dtype, f"{key}.dtype")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        number = argument.scalar
        if not math.isfinite(number) or number != int(number) or not info.min <= number <= info.max:
            raise LaunchFileError(
                LaunchProblem(f"{argument.scalar} does not fit into {dtype}", f"{key}.scalar")
            )
    try:
        with np.errstate(all="ignore"):
            value: Any = np.array(argument.scalar).astype(dtype)[()]
    except (TypeError, ValueError, OverflowError) as error:
        raise LaunchFileError(LaunchProblem(f"{dtype}: {error}", f"{key}.scalar")) from None
    return value


def _tensor_map(key: str, argument: MapArgument, arrays: Arrays) -> TensorMap:
    dtype = None
    if argument.dtype is not None:
        dtype = numpy_type(argument.dtype, f"{key}.dtype")
    try:
        return TensorMap(
            arrays[argument.tensor_map],
            argument.box,
            swizzle=argument.swizzle,
            element_strides=argument.element_strides,
            interleave=argument.interleave,
            fill=argument.fill,
            dtype=dtype,
            shape=argument.shape,
            strides=argument.strides,
            atom=argument.atom,
            packed=argument.packed,
            im2col=argument.im2col,
        )
    except LaunchError as error:
        raise LaunchFileError(LaunchProblem(str(error), key)) from None
