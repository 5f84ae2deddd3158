"""PTX types: how wide they are and how NumPy reads their bits."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from fa4gen.emulator.ptx.syntax import RegisterClass

# name of a PTX type -> (register file view that reads it, NumPy dtype)
_VIEWS: Final[dict[str, tuple[str, Any]]] = {
    "pred": ("P", np.bool_),
    "b8": ("U8", np.uint8),
    "u8": ("U8", np.uint8),
    "s8": ("S8", np.int8),
    "b16": ("U16", np.uint16),
    "u16": ("U16", np.uint16),
    "s16": ("S16", np.int16),
    "f16": ("F16", np.float16),
    "bf16": ("BF16", ml_dtypes.bfloat16),
    "b32": ("U32", np.uint32),
    "u32": ("U32", np.uint32),
    "s32": ("S32", np.int32),
    "f32": ("F32", np.float32),
    "f16x2": ("U32", np.uint32),
    "bf16x2": ("U32", np.uint32),
    "b64": ("U64", np.uint64),
    "u64": ("U64", np.uint64),
    "s64": ("S64", np.int64),
    "f64": ("F64", np.float64),
    "f32x2": ("U64", np.uint64),
    "b128": ("Q", np.uint64),
}

VIEWS: Final = frozenset(view for view, _ in _VIEWS.values())
"""Names of the ways to read a warpgroup's registers."""

CLASS_BITS: Final[dict[RegisterClass, int]] = {"p": 1, "h": 16, "r": 32, "d": 64, "q": 128}


def is_type(name: str) -> bool:
    """Whether ``name`` is a type that registers and memory can hold."""
    return name in _VIEWS


def view_of(name: str) -> str:
    """The attribute of Warpgroup that reads registers as this type."""
    return _VIEWS[name][0]


def dtype_of(name: str) -> Any:
    """The NumPy scalar type of a PTX type; b128 is a pair of uint64."""
    return _VIEWS[name][1]


def bits_of(name: str) -> int:
    """Width in bits; a predicate has one."""
    if name == "pred":
        return 1
    if name == "b128":
        return 128
    return int(np.dtype(_VIEWS[name][1]).itemsize) * 8


def is_signed(name: str) -> bool:
    return name[0] == "s"


def is_float(name: str) -> bool:
    return name[0] == "f" or name.startswith("bf")
