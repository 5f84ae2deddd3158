"""Elementwise kernels: functions, whole numbers, types, loops, random numbers."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

kernels = pytest.importorskip("tests.emulator.triton.kernels", reason="needs Triton")
launch = pytest.importorskip("tests.emulator.triton.compiling", reason="needs Triton").launch

pytestmark = pytest.mark.triton
FLOAT8 = ml_dtypes.float8_e4m3fn
FUNCTIONS = {
    # name: NumPy's, lowest and highest argument, allowed error relative to 1 + |result|
    "exp": (np.exp, -20, 20, 3e-6),
    "exp2": (np.exp2, -20, 20, 5e-7),
    "log": (np.log, 1e-6, 100, 1e-6),
    "log2": (np.log2, 1e-6, 100, 1e-6),
    "sin": (np.sin, -3, 3, 1e-6),
    "cos": (np.cos, -3, 3, 1e-6),
    "tanh": (np.tanh, -5, 5, 1e-6),
    "erf": (np.vectorize(math.erf), -4, 4, 1e-6),
    "sqrt": (np.sqrt, 0, 1e4, 1e-6),
    "sqrt_rn": (np.sqrt, 0, 1e4, 1e-7),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-3, 1e4, 1e-6),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -20, 20, 1e-6),
    "floor": (np.floor, -9, 9, 0),
    "ceil": (np.ceil, -9, 9, 0),
    "rint": (np.rint, -9, 9, 0),
    "expm1": (np.expm1, -3, 3, 1e-6),
    "log1p": (np.log1p, -0.9, 9, 1e-6),
    "atan": (np.arctan, -9, 9, 1e-6),
    "cbrt": (np.cbrt, -9, 9, 1e-6),
    "cube": (lambda x: x**3, 0.1, 3, 1e-6),
}
EXACT_IN_DOUBLE = ("exp", "log", "sin", "tanh", "erf", "sqrt", "floor", "log1p", "cube")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
@pytest.mark.parametrize(("count", "warps", "block"), [(1000, 4, 256), (1, 1, 32), (1024, 8, 1024)])
def test_add(arch, rng, dtype, count, warps, block) -> None:
    x, y = (rng.integers(-999, 999, count).astype(dtype) for _ in range(2))
    out = np.zeros_like(x)
    launch(kernels.add, arch, -(-count // block), (x, y, out, count), warps=warps, BLOCK=block)
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(arch, rng, name) -> None:
    right, low, high, bound = FUNCTIONS[name]
    x = rng.uniform(low, high, 500).astype(np.float32)
    out = np.zeros_like(x)
    launch(kernels.function, arch, 2, (x, out, 500), NAME=name, BLOCK=256)
    exact = right(x.astype(np.float64))
    assert np.all(np.abs(out - exact) <= bound * (1 + np.abs(exact)))


@pytest.mark.parametrize("name", EXACT_IN_DOUBLE)
def test_function_of_doubles(rng, name) -> None:
    right, low, high, _ = FUNCTIONS[name]
    x = rng.uniform(low, high, 100)
    out = np.zeros_like(x)
    launch(kernels.function, 90, 1, (x, out, 100), NAME=name, BLOCK=128)
    np.testing.assert_allclose(out, right(x), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.int16])
def test_arithmetic(arch, rng, dtype) -> None:
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 300, dtype=dtype)
    y = np.where(rng.random(300) < 0.5, rng.integers(1, 9, 300), x // 3 + 1).astype(dtype)
    out = np.zeros((6, 300), dtype)
    launch(kernels.arithmetic, arch, 3, (x, y, out, 300), BLOCK=128)
    signs = np.sign(x.astype(object)) * np.sign(y.astype(object))
    quotient = signs * (abs(x.astype(object)) // abs(y.astype(object)))  # towards zero, as C has it
    np.testing.assert_array_equal(out[0], quotient.astype(dtype))
    np.testing.assert_array_equal(out[1], (x.astype(object) - quotient * y).astype(dtype))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out[2], (x << dtype(3)) ^ (x >> dtype(2)))
        np.testing.assert_array_equal(out[3], (x & y) | ~y)
        np.testing.assert_array_equal(out[4], np.minimum(x, y) + dtype(3) * np.maximum(x, y))
        np.testing.assert_array_equal(out[5], np.abs(x) * y - x)


def test_high_product(arch, rng) -> None:
    x, y = (rng.integers(0, 2**32, 100, dtype=np.uint32) for _ in range(2))
    out = np.zeros_like(x)
    launch(kernels.high_product, arch, 1, (x, y, out, 100), BLOCK=128)
    np.testing.assert_array_equal(out, (x.astype(np.uint64) * y >> np.uint64(32)).astype(np.uint32))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.float32, np.float16),
        (np.float32, ml_dtypes.bfloat16),
        (np.float32, FLOAT8),
        (np.float32, ml_dtypes.float8_e5m2),
        (FLOAT8, np.float32),
        (FLOAT8, np.float16),
        (ml_dtypes.float8_e5m2, ml_dtypes.bfloat16),
        (np.float16, FLOAT8),
        (np.float32, np.int32),
        (np.int8, np.float32),
        (np.uint32, np.float32),
        (np.int64, np.float64),
        (np.float64, np.float32),
        (ml_dtypes.bfloat16, np.float32),
        (np.int32, np.int8),
    ],
    ids=lambda kind: np.dtype(kind).name,
)
def test_convert(arch, rng, source, target) -> None:
    whole = np.dtype(source).kind in "iu" and np.dtype(source).name in (
        "int8",
        "uint32",
        "int64",
        "int32",
    )
    x = (rng.integers(0, 100, 600) if whole else rng.normal(size=600) * 20).astype(source)
    out = np.zeros(600, target)
    launch(kernels.convert, arch, 3, (x, out, 600), BLOCK=256)
    np.testing.assert_array_equal(out, x.astype(target))


@pytest.mark.parametrize("nans", [False, True])
def test_clamp(arch, rng, nans) -> None:
    x = rng.normal(size=200).astype(np.float32)
    x[::9] = np.nan
    out = np.zeros_like(x)
    launch(kernels.clamp, arch, 1, (x, -0.5, 1.25, out, 200), NANS=nans, BLOCK=256)
    v = np.clip(x, np.float32(-0.5), np.float32(1.25))
    if not nans:
        v = np.where(np.isnan(x), np.float32(-0.5), v)
    exact = v.astype(np.float64) ** 2 - v
    np.testing.assert_array_equal(out, np.where(v > 0, v * 2 + 1, exact.astype(np.float32)))


@pytest.mark.parametrize("schedule", ["uniform", "starve"])
def test_a_loop_of_unknown_length(arch, schedule) -> None:
    x = np.arange(1, 101, dtype=np.int32)
    out = np.zeros_like(x)
    launch(kernels.collatz, arch, 2, (x, out, 100), warps=2, schedule=schedule, BLOCK=64)

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [steps(n) for n in range(1, 101)]


def philox(seed: int, offsets: np.ndarray) -> np.ndarray:
    """The first word of Philox 4x32 with 10 rounds; counter (offset, 0, 0, 0), key (seed, 0)."""
    mask = np.uint64(0xFFFFFFFF)
    counter = [offsets.astype(np.uint64), *(np.zeros(len(offsets), np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    words = []
    for _ in range(10):
        first = counter[0] * np.uint64(0xD2511F53)
        third = counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (third >> np.uint64(32)) ^ counter[1] ^ key[0],
            third & mask,
            (first >> np.uint64(32)) ^ counter[3] ^ key[1],
            first & mask,
        ]
        key = [(key[0] + np.uint64(0x9E3779B9)) & mask, (key[1] + np.uint64(0xBB67AE85)) & mask]
        words = counter
    return np.stack(words).astype(np.uint32)


def unit(words: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1) from 32 random bits, as Triton documents tl.rand."""
    signed = words.astype(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(
        4.6566127342e-10
    )


def test_random(arch) -> None:
    out, normal = np.zeros(500, np.float32), np.zeros(500, np.float32)
    whole = np.zeros(500, np.int32)
    launch(kernels.random, arch, 2, (out, whole, normal, 12345, 500), BLOCK=256)
    words = philox(12345, np.arange(500))
    np.testing.assert_array_equal(whole, words[0].astype(np.int32))
    np.testing.assert_allclose(out, unit(words[0]), rtol=1e-6)
    first, second = np.maximum(unit(words[0]), 1e-7), unit(words[1])
    exact = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
    np.testing.assert_allclose(normal, exact, atol=1e-4)


def test_dropout(arch, rng) -> None:
    x = rng.normal(size=1000).astype(np.float32)
    out = np.zeros_like(x)
    launch(kernels.dropout, arch, 4, (x, out, 1000, 0.75, 99), BLOCK=256)
    kept = unit(philox(99, np.arange(1000))[0]) < 0.75
    np.testing.assert_allclose(out, np.where(kept, x / np.float32(0.75), 0), rtol=1e-6)
    assert 0.7 < kept.mean() < 0.8
