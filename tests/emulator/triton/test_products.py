"""Matrix products: tensor cores of each kind, descriptors, persistent and split loops."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

products = pytest.importorskip("tests.emulator.triton.kernels_products", reason="needs Triton")
compiling = pytest.importorskip("tests.emulator.triton.compiling", reason="needs Triton")
launch, Descriptor, SCRATCH = compiling.launch, compiling.Descriptor, compiling.SCRATCH

pytestmark = pytest.mark.triton
BFLOAT16, FLOAT8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def check(out, left, right, rounding=2.0**-22) -> None:
    """``out`` against left rightᵀ in float64: a sum may be off by its terms' roundings."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    bound = rounding * (np.abs(a) @ np.abs(b).T) + 1e-6
    step = np.float64(ml_dtypes.finfo(out.dtype).eps) if out.dtype.kind != "i" else 0.0
    exact = a @ b.T
    assert np.all(np.abs(out.astype(np.float64) - exact) <= bound + step * np.abs(exact))


def numbers(rng, dtype, *shape):
    if np.dtype(dtype) == np.int8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [BFLOAT16, np.float16, FLOAT8, np.float32, np.int8])
def test_types(arch, rng, dtype, transposed) -> None:
    rows, columns, depth = 70, 100, 96
    a, b = numbers(rng, dtype, rows, depth), numbers(rng, dtype, columns, depth)
    c = np.zeros((rows, columns), np.int32 if dtype is np.int8 else np.float32)
    stored = b if transposed else np.ascontiguousarray(b.T)
    launch(
        products.product, arch, (2, 1),
        (a, stored, c, rows, columns, depth, depth, stored.shape[1], columns),
        TRANSPOSED=transposed, PRECISION="tf32", HEIGHT=64, WIDTH=128, DEPTH=32,
    )  # fmt: skip
    check(c, a, b, 2.0**-9 if dtype in (np.float32, FLOAT8) else 2.0**-20)


@pytest.mark.parametrize(
    ("height", "width", "deep", "warps", "stages"),
    [
        (16, 16, 16, 1, 1),
        (32, 64, 32, 4, 2),
        (128, 64, 64, 8, 3),
        (64, 256, 16, 4, 4),
        (128, 128, 64, 4, 2),
    ],
)
def test_tiles(arch, rng, height, width, deep, warps, stages) -> None:
    rows, columns, depth = height + 5, width, 2 * deep + 16
    a, b = numbers(rng, np.float16, rows, depth), numbers(rng, np.float16, columns, depth)
    c = np.zeros((rows, columns), np.float16)
    launch(
        products.product, arch, (2, 1), (a, b, c, rows, columns, depth, depth, depth, columns),
        warps=warps, stages=stages,
        TRANSPOSED=True, PRECISION="tf32", HEIGHT=height, WIDTH=width, DEPTH=deep,
    )  # fmt: skip
    check(c, a, b, 2.0**-20)


@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
def test_precisions(arch, rng, precision) -> None:
    a, b = numbers(rng, np.float32, 32, 40), numbers(rng, np.float32, 32, 40)
    c = np.zeros((32, 32), np.float32)
    launch(
        products.product, arch, (1, 1), (a, b, c, 32, 32, 40, 40, 40, 32),
        TRANSPOSED=True, PRECISION=precision, HEIGHT=32, WIDTH=32, DEPTH=16,
    )  # fmt: skip
    check(c, a, b, 2.0**-19)


@pytest.mark.parametrize("schedule", ["uniform", "eager", "lazy"])
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT8])
@pytest.mark.parametrize(("width", "deep", "warps"), [(64, 64, 4), (128, 32, 8)])
def test_descriptors(arch, rng, dtype, width, deep, warps, schedule) -> None:
    rows, columns, depth = 128 + 40, width, 3 * deep + 16  # odd sizes: descriptors guard the edges
    a, b = numbers(rng, dtype, rows, depth), numbers(rng, dtype, columns, depth)
    c = np.zeros((rows, columns), np.float16)
    launch(
        products.product_described, arch, (2, 1),
        (
            Descriptor(a, (128, deep)), Descriptor(b, (width, deep)), Descriptor(c, (128, width)),
            depth,
        ),
        warps=warps, schedule=schedule, known=SCRATCH if arch == 100 else (),
        HEIGHT=128, WIDTH=width, DEPTH=deep,
    )  # fmt: skip
    check(c, a, b, 2.0**-13 if dtype is FLOAT8 else 2.0**-20)


@pytest.mark.parametrize("specialised", [False, True])
@pytest.mark.parametrize("schedule", ["uniform", "starve"])
def test_persistent(arch, rng, specialised, schedule) -> None:
    rows, columns, depth = 200, 192, 80
    a, b = numbers(rng, BFLOAT16, rows, depth), numbers(rng, BFLOAT16, columns, depth)
    c = np.zeros((rows, columns), np.float32)
    launch(
        products.product_persistent, arch, 2, (a, b, c, rows, columns, depth),
        schedule=schedule, known=(*SCRATCH, *(compiling.ROLES if specialised else ())),
        SPECIALISED=specialised, HEIGHT=128, WIDTH=64, DEPTH=32,
    )  # fmt: skip
    check(c, a, b)


@pytest.mark.parametrize("schedule", ["uniform", "priority"])
def test_split(arch, rng, schedule) -> None:
    rows, columns, depth = 50, 64, 200
    a, b = numbers(rng, np.float16, rows, depth), numbers(rng, np.float16, columns, depth)
    c = np.zeros((rows, columns), np.float32)
    launch(
        products.product_split, arch, (1, 1, 3),
        (a, np.ascontiguousarray(b.T), c, rows, columns, depth), schedule=schedule,
        HEIGHT=64, WIDTH=64, DEPTH=32,
    )  # fmt: skip
    check(c, a, b, 2.0**-20)


@pytest.mark.parametrize("kinds", ["e4m3 e4m3", "e4m3 e2m1", "e2m1 e2m1"])
def test_scaled(arch, rng, kinds) -> None:
    height, width, depth = 128, 64, 128
    sides, stored = [], []
    for kind, rows in zip(kinds.split(), (height, width), strict=True):
        if kind == "e4m3":
            bits = rng.normal(size=(rows, depth)).astype(FLOAT8)
            values = bits.astype(np.float64)
        else:
            codes = rng.integers(0, 16, (rows, depth)).astype(np.uint8)
            values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
            bits = codes[:, ::2] | codes[:, 1::2] << 4
        scales = rng.integers(120, 135, (rows, depth // 32)).astype(np.uint8)
        sides.append(values * np.exp2(np.repeat(scales.astype(np.float64) - 127, 32, axis=1)))
        stored += [bits, scales]
    c = np.zeros((height, width), np.float32)
    a_kind, b_kind = kinds.split()
    launch(
        products.product_scaled, arch, 1, (*stored, c), A_KIND=a_kind, B_KIND=b_kind,
        A_PACK=1 + (a_kind == "e2m1"), B_PACK=1 + (b_kind == "e2m1"),
        HEIGHT=height, WIDTH=width, DEPTH=depth,
    )  # fmt: skip
    check(c, *sides, 2.0**-13)
