"""The arrays and arguments that a launch file describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.launch_file import (
    ArrayFile,
    LaunchFile,
    MadeArray,
    MapArgument,
    ScalarArgument,
    UsedArray,
)
from fa4gen.emulator.launch_problems import LaunchFileError, LaunchProblem
from fa4gen.emulator.tensor_map import TensorMap

SHORT_NAMES: Final = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "fp64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e8m0": "float8_e8m0fnu",
    "e2m1": "float4_e2m1fn",
}


@dataclass(frozen=True)
class LaunchArrays:
    """What a launch starts from. Every run gets copies, so that all runs start alike."""

    file: LaunchFile
    arrays: dict[str, NDArray[Any]]
    """By name; an argument without a name is called after its place: ``0``, ``1``, ..."""
    described: dict[str, ArrayFile | MadeArray]
    places: dict[str, str]
    """The key of each array in the file."""

    def arguments(self) -> tuple[list[Any], dict[str, NDArray[Any]]]:
        """Arguments for ``Program.launch``, and the arrays among them and behind them."""
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        arguments: list[Any] = []
        for index, argument in enumerate(self.file.arguments):
            if isinstance(argument, (ArrayFile, MadeArray)):
                arguments.append(arrays[argument.name or str(index)])
            elif isinstance(argument, UsedArray):
                arguments.append(arrays[argument.use])
            elif isinstance(argument, MapArgument):
                arguments.append(_tensor_map(index, argument, arrays))
            elif isinstance(argument, ScalarArgument):
                arguments.append(_scalar(index, argument))
            else:
                arguments.append(None)
        return arguments, arrays


def prepare(file: LaunchFile, folder: Path) -> LaunchArrays:
    """Make and read all arrays; ``folder`` is what paths in the file are relative to.

    Raises LaunchFileError for names, types and files that do not fit, with all of them.
    """
    problems: list[LaunchProblem] = []
    described: dict[str, ArrayFile | MadeArray] = {}
    places: dict[str, str] = {}
    candidates = [(f"arrays.{name}", name, one) for name, one in file.arrays.items()]
    for index, argument in enumerate(file.arguments):
        if isinstance(argument, (ArrayFile, MadeArray)):
            candidates.append((f"arguments[{index}]", argument.name or str(index), argument))
    for place, name, one in candidates:
        if name in described:
            problems.append(
                LaunchProblem(f"the name {name} is that of {places[name]}, too", place + ".name")
            )
        described[name], places[name] = one, place
    arrays: dict[str, NDArray[Any]] = {}
    for name, one in described.items():
        try:
            arrays[name] = _array(one, folder)
        except LaunchFileError as error:
            problems += [
                LaunchProblem(each.message, f"{places[name]}.{each.key}") for each in error.problems
            ]
    for index, argument in enumerate(file.arguments):
        used = {UsedArray: "use", MapArgument: "tensor_map"}.get(type(argument))
        if used is not None and (wanted := getattr(argument, used)) not in described:
            problems.append(
                LaunchProblem(
                    f"no array is called {wanted!r}; there is {', '.join(described) or 'none'}",
                    f"arguments[{index}].{used}",
                )
            )
    if problems:
        raise LaunchFileError(*problems)
    prepared = LaunchArrays(file, arrays, described, places)
    prepared.arguments()  # what a tensor map refuses is told before anything runs
    return prepared


def read_array(path: Path, dtype: str | None, key: str) -> NDArray[Any]:
    """Read a .npy file; ``dtype`` reads its bits as another type. Raises LaunchFileError."""
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise LaunchFileError(LaunchProblem(f"there is no file {path}", key)) from None
    except (OSError, ValueError, EOFError) as error:
        raise LaunchFileError(LaunchProblem(f"{path} is no .npy file: {error}", key)) from None
    if not isinstance(array, np.ndarray):
        raise LaunchFileError(LaunchProblem(f"{path} holds several arrays; save one", key))
    if dtype is not None:
        kind = numpy_type(dtype, "dtype")
        if kind.itemsize != array.dtype.itemsize:
            raise LaunchFileError(
                LaunchProblem(
                    f"{kind} has {kind.itemsize} bytes, the elements of {path} {array.itemsize}",
                    "dtype",
                )
            )
        array = array.view(kind)
    elif array.dtype.type is np.void or array.dtype.kind in "OUS":
        raise LaunchFileError(
            LaunchProblem(
                f"{path} holds {array.dtype}: say with dtype what its bits are, such as bfloat16",
                key,
            )
        )
    return np.ascontiguousarray(array) if array.ndim else array.reshape(1)


def numpy_type(name: str, key: str) -> np.dtype[Any]:
    """The type of that name, NumPy's or of ml_dtypes. Raises LaunchFileError."""
    full = SHORT_NAMES.get(name, name)
    try:
        kind = np.dtype(getattr(ml_dtypes, full, full))
    except TypeError:
        kind = np.dtype(object)
    if kind.kind in "OUSMm" or kind.type is np.void:
        raise LaunchFileError(
            LaunchProblem(
                f"there is no type {name!r}; some are float32, float16, bfloat16, "
                "float8_e4m3fn, int32, uint8",
                key,
            )
        )
    return kind


def _array(one: ArrayFile | MadeArray, folder: Path) -> NDArray[Any]:
    if isinstance(one, ArrayFile):
        return read_array(folder / one.array, one.dtype, "array")
    dtype = numpy_type(one.dtype, "dtype")
    shape = tuple(one.shape)
    random = np.random.default_rng(one.seed)
    high = 1.0 if one.high is None else one.high
    values: NDArray[Any]
    if one.make == "normal":
        values = random.normal(size=shape) * one.scale
    elif one.make == "uniform":
        values = random.uniform(one.low, max(high, one.low), shape) * one.scale
    elif one.make == "randint":
        values = random.integers(int(one.low), int(high), shape)
    elif one.make == "arange":
        values = np.arange(int(np.prod(shape))).reshape(shape)
        values = values if one.scale == 1 else values * one.scale
    else:
        value = {"zeros": 0, "ones": 1}.get(one.make, one.value)
        values = np.full(shape, value)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def _scalar(index: int, argument: ScalarArgument) -> Any:
    key = f"arguments[{index}]"
    dtype = numpy_type(argument.dtype, f"{key}.dtype")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if argument.scalar != int(argument.scalar) or not info.min <= argument.scalar <= info.max:
            raise LaunchFileError(
                LaunchProblem(f"{argument.scalar} does not fit into {dtype}", f"{key}.scalar")
            )
    value: Any = np.array(argument.scalar).astype(dtype)[()]
    return value


def _tensor_map(index: int, argument: MapArgument, arrays: dict[str, NDArray[Any]]) -> TensorMap:
    dtype = None
    if argument.dtype is not None:
        dtype = numpy_type(argument.dtype, f"arguments[{index}].dtype")
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
        )
    except LaunchError as error:
        raise LaunchFileError(LaunchProblem(str(error), f"arguments[{index}]")) from None
