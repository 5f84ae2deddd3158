"""Arrays of a launch file: read from .npy files, or made on the spot."""

from __future__ import annotations

import math
import re
from contextlib import suppress
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
BEGINNING: Final = b"\x93NUMPY"
"""The first bytes of a .npy file."""
COPIES: Final = 3
"""The copies of each array at a time: as described, of the run, in the emulated memory."""
_TYPE_NAME: Final = re.compile(r"[<=|]?[A-Za-z][A-Za-z0-9_]*")


def read_array(
    path: Path, dtype: str | None, key: str, *, raw_as: str | None = None
) -> NDArray[Any]:
    """Read a .npy file; ``dtype`` reads its bits as another type. Raises LaunchFileError.

    ``raw_as`` is the type of bits without one: those of a type that NumPy's format does not know.
    """
    file_bytes(path, key)
    try:
        with path.open("rb") as stream:
            if stream.read(len(BEGINNING)) != BEGINNING:
                raise ValueError("it does not begin as one")
        array = np.load(path, allow_pickle=False)
    except MemoryError:
        raise LaunchFileError(
            LaunchProblem(f"{path} says that it holds more than memory can", key)
        ) from None
    except Exception as error:  # NumPy raises nearly anything for a file that is damaged
        why = "it holds Python objects" if "allow_pickle" in str(error) else error
        raise LaunchFileError(LaunchProblem(f"{path} is no .npy file: {why}", key)) from None
    if not isinstance(array, np.ndarray):
        raise LaunchFileError(LaunchProblem(f"{path} holds several arrays; save one", key))
    if dtype is None and array.dtype.type is np.void:
        dtype = raw_as
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
    kind = np.dtype(object)
    if _TYPE_NAME.fullmatch(full):
        known = getattr(ml_dtypes, full, None)
        own = isinstance(known, type) and issubclass(known, np.generic)
        with suppress(TypeError, ValueError):
            kind = np.dtype(known if own else full)
    if kind.kind in "OUSMm" or kind.type is np.void:
        raise LaunchFileError(
            LaunchProblem(
                f"there is no type {name!r}; some are float32, float16, bfloat16, "
                "float8_e4m3fn, int32, uint8",
                key,
            )
        )
    return kind


def file_bytes(path: Path, key: str) -> int:
    """The size of a file; LaunchFileError for anything else, such as a folder or a pipe."""
    try:
        if path.is_file():
            return path.stat().st_size
        there = path.exists()
    except (OSError, ValueError) as error:  # ValueError: a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise LaunchFileError(LaunchProblem(f"cannot read {path}: {reason}", key)) from None
    what = f"{path} is no file" if there else f"there is no file {path}"
    raise LaunchFileError(LaunchProblem(what, key))


def bytes_needed(one: ArrayFile | MadeArray, folder: Path) -> tuple[int, str]:
    """Bytes that a launch needs for an array, and the key that says so. Raises LaunchFileError."""
    if isinstance(one, ArrayFile):
        return COPIES * file_bytes(folder / one.array, "array"), "array"
    drawn = 8  # numbers are drawn in types of 8 bytes
    return math.prod(one.shape) * (
        COPIES * numpy_type(one.dtype, "dtype").itemsize + drawn
    ), "shape"


def make_array(one: ArrayFile | MadeArray, folder: Path) -> NDArray[Any]:
    """The array that a launch file describes. Raises LaunchFileError."""
    if isinstance(one, ArrayFile):
        return read_array(folder / one.array, one.dtype, "array")
    dtype = numpy_type(one.dtype, "dtype")
    try:
        return _made(one, dtype)
    except (ValueError, OverflowError, TypeError) as error:
        raise LaunchFileError(LaunchProblem(f"{one.make} as {dtype}: {error}", "make")) from None
    except MemoryError:
        raise LaunchFileError(LaunchProblem("more than memory can hold", "shape")) from None


def _made(one: MadeArray, dtype: np.dtype[Any]) -> NDArray[Any]:
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
