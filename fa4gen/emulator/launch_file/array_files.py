"""Arrays of a launch file: read from .npy files, or made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.launch_file.model import ArrayFile, MadeArray
from fa4gen.emulator.launch_file.problems import LaunchFileError, LaunchProblem

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


def make_array(one: ArrayFile | MadeArray, folder: Path) -> NDArray[Any]:
    """The array that a launch file describes. Raises LaunchFileError."""
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
