"""wmma: load, multiply and store agree on the fragments, whatever those are."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.kernel import clean, vector

_CASES = [
    # shape, types of the instruction, of A and B, of C, registers of A, B, C
    ("m16n16k16", "f32.f32", "f16", "f32", np.float16, np.float32, (8, 8, 8)),
    ("m16n16k16", "f16.f16", "f16", "f16", np.float16, np.float16, (8, 8, 4)),
    ("m32n8k16", "f32.f32", "f16", "f32", np.float16, np.float32, (8, 8, 8)),
    ("m8n32k16", "f32.bf16.bf16.f32", "bf16", "f32", ml_dtypes.bfloat16, np.float32, (2, 8, 8)),
    ("m16n16k8", "f32.tf32.tf32.f32", "tf32", "f32", np.float32, np.float32, (4, 4, 8)),
    ("m16n16k16", "s32.s8.s8.s32", "s8", "s32", np.int8, np.int32, (2, 2, 8)),
    ("m32n8k16", "s32.u8.u8.s32", "u8", "s32", np.uint8, np.int32, (4, 1, 8)),
]


@pytest.mark.parametrize("layouts", ["row.col", "col.row"])
@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case[0]}.{case[1]}")
def test_product(case: Any, layouts: str) -> None:
    """Two warps, each with its own A; leading dimensions longer than the lines."""
    shape, types, kind, result, dtype, out_type, counts = case
    m, rest = shape[1:].split("n")
    rows, (columns, depth) = int(m), map(int, rest.split("k"))
    rng = np.random.default_rng(5)
    low = 0 if kind == "u8" else -4
    a = rng.integers(low, 5, (2, rows, depth)).astype(dtype)
    b = rng.integers(low, 5, (depth, columns)).astype(dtype)
    c = rng.integers(-4, 5, (rows, columns)).astype(out_type)

    def stored(matrix: np.ndarray, layout: str) -> np.ndarray:
        lines = matrix if layout == "row" else matrix.swapaxes(-1, -2)
        padded = np.zeros((*lines.shape[:-1], lines.shape[-1] + 8), matrix.dtype)
        padded[..., : lines.shape[-1]] = lines
        return padded

    a_layout, b_layout = layouts.split(".")
    left, right, start = stored(a, a_layout), stored(b, b_layout), stored(c, a_layout)
    out = np.zeros((2, rows, columns), out_type)
    na, nb, nc = (vector(first, count) for first, count in zip((10, 30, 50), counts, strict=True))
    text = f"""
    mov.u32 %r0, %tid.x; shr.u32 %r0, %r0, 5;
    mul.wide.u32 %d10, %r0, {left[0].nbytes}; add.u64 %d10, %d0, %d10;
    mul.wide.u32 %d13, %r0, {out[0].nbytes}; add.u64 %d13, %d3, %d13;
    mov.u32 %r1, {left.shape[-1]};
    wmma.load.a.sync.aligned.{a_layout}.{shape}.global.{kind} {na}, [%d10], %r1;
    wmma.load.b.sync.aligned.{b_layout}.{shape}.global.{kind} {nb}, [%d1], {right.shape[-1]};
    wmma.load.c.sync.aligned.{a_layout}.{shape}.{result} {nc}, [%d2], {start.shape[-1]};
    wmma.mma.sync.aligned.{layouts}.{shape}.{types} {nc}, {na}, {nb}, {nc};
    wmma.store.d.sync.aligned.row.{shape}.global.{result} [%d13], {nc};
    """
    clean(text, left, right, start, out, block=64)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(out, wanted.astype(out_type))
