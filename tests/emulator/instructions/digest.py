"""Hashes of what the emulator works out, to compare with those of another host or process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from fa4gen.emulator import Program
from fa4gen.emulator.instructions.copy import reductions
from fa4gen.emulator.instructions.memory import atomics
from fa4gen.emulator.instructions.mma.products import sums_of_products
from tests.emulator.hardware.record_families import all_probes, arrays_of, bits, dynamic_shared
from tests.emulator.instructions.forms import all_forms
from tests.emulator.instructions.rows import Runner, operands

_FLOATS = {
    "f16": ("h", np.float16), "bf16": ("h", ml_dtypes.bfloat16), "f32": ("r", np.float32),
    "f64": ("d", np.float64),
}  # fmt: skip
_INTEGERS = {
    "u32": ("r", np.uint32), "s32": ("r", np.int32), "b32": ("r", np.uint32),
    "u64": ("d", np.uint64), "s64": ("d", np.int64), "b64": ("d", np.uint64),
}  # fmt: skip


@cache
def updates() -> dict[str, tuple[Any, ...]]:
    """Functions of memory's old values and new ones, and hard values for them."""
    found: dict[str, tuple[Any, ...]] = {}
    for kind, (cls, dtype) in {**_FLOATS, **_INTEGERS}.items():
        old, new = (row.view(dtype) for row in operands(cls * 3))
        for operation in reductions.OPERATIONS:
            combine = reductions.find(operation, kind)
            if combine is not None:
                found[f"cp.reduce {operation}.{kind}"] = (combine, old, new)
            form: Any = SimpleNamespace(operation=operation, kind=kind, dtype=np.dtype(dtype))
            halves = kind in ("f16", "bf16")
            if kind in atomics._TYPES.get(operation, ()) or (halves and operation == "add"):
                for space in ("global", "shared"):
                    update = atomics._update_of(form, space)
                    found[f"atom.{space}.{operation}.{kind}"] = (_two(update), old, new)
    return found


def _two(update: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda old, new: update(old, new, None)


def _sums() -> dict[str, np.ndarray]:
    """Matrix products, of operands whose sums are exact in float64 and of others."""
    rng = np.random.default_rng(11)
    found = {}
    for dtype in (ml_dtypes.bfloat16, np.float16):
        for m, n, k in ((16, 8, 16), (64, 48, 64), (128, 64, 512)):
            a, b = (rng.normal(size=(rows, k)) for rows in (m, n))
            for name, left in (("plain", a), ("probabilities", 2.0 ** -(9 * np.abs(a)))):
                x, y = (matrix.astype(dtype).astype(np.float32) for matrix in (left, b))
                found[f"{name} {np.dtype(dtype)} {m}x{n}x{k}"] = sums_of_products(x, y)
    return found


def _changed_by(probe: Any) -> np.ndarray:
    arguments = probe.arguments()
    Program(probe.ptx).launch(
        grid=probe.grid, block=probe.block, args=arguments, dynamic_shared=dynamic_shared(probe),
        checks=False,
    )  # fmt: skip
    return np.concatenate(
        [bits(array).view(np.uint8).reshape(-1) for array in arrays_of(arguments)]
    )


def digest() -> dict[str, str]:
    """A hash of each: every form of arithmetic, updates of memory, products, and small kernels."""
    with np.errstate(all="ignore"):
        results = {
            **{str(form): Runner(form).over(slice(None)) for form in all_forms()},
            **{name: function(*rows) for name, (function, *rows) in updates().items()},
            **_sums(),
        }
    results |= {probe.name: _changed_by(probe) for probe in all_probes()}
    return {
        name: hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()[:16]
        for name, result in results.items()
    }
