"""Reciprocals, roots, exponentials and the like; classification."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.lanes import execute


def ulps(found, wanted):
    return np.abs(found.astype(np.float64) - wanted) / np.spacing(np.abs(found))


APPROXIMATIONS = {
    "ex2": (np.exp2, np.linspace(-120, 120, 1000)),
    "lg2": (np.log2, np.linspace(2, 1000, 1000)),
    "sin": (np.sin, np.linspace(0.1, 3, 1000)),
    "cos": (np.cos, np.linspace(-1.5, 1.5, 1000)),
    "tanh": (np.tanh, np.linspace(-5, 5, 1001)),
    "rcp": (np.reciprocal, np.linspace(1e-5, 1000, 1000)),
    "sqrt": (np.sqrt, np.linspace(0, 1000, 1000)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), np.linspace(1e-5, 1000, 1000)),
}


@pytest.mark.parametrize("name", APPROXIMATIONS)
def test_approximations(name):
    function, points = APPROXIMATIONS[name]
    x = points.astype(np.float32)
    found = execute(f"{name}.approx.f32 %r2, %r1;", "r2", r1=x).view(np.float32)
    assert ulps(found, function(x.astype(np.float64))).max() <= 2
    if name != "tanh":
        np.testing.assert_array_equal(
            execute(f"{name}.approx.ftz.f32 %r2, %r1;", "r2", r1=x).view(np.float32), found
        )


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_narrow_approximations(kind, dtype):
    x = np.linspace(-6, 3, 500).astype(dtype)
    ftz = ".ftz" if kind == "bf16" else ""
    found = execute(f"ex2.approx{ftz}.{kind} %h2, %h1;", "h2", h1=x).view(dtype)
    np.testing.assert_array_equal(
        found, np.exp2(x.astype(np.float64)).astype(np.float32).astype(dtype)
    )
    found = execute(f"tanh.approx.{kind} %h2, %h1;", "h2", h1=x).view(dtype)
    np.testing.assert_array_equal(
        found, np.tanh(x.astype(np.float64)).astype(np.float32).astype(dtype)
    )


def test_ex2_corners():
    """As observed on an H200."""
    inf, tiny = math.inf, 2.0**-140
    x = np.float32([-inf, inf, math.nan, 0.0, -0.0, tiny, -tiny, -126, -127, 128])
    found = execute("ex2.approx.ftz.f32 %r2, %r1;", "r2", r1=x)
    assert found[2] == 0x7FFFFFFF
    numbers = np.delete(found.view(np.float32), 2).tolist()
    assert numbers == [0, inf, 1, 1, 1, 1, 2.0**-126, 0, inf]
    found = execute("ex2.approx.f32 %r2, %r1;", "r2", r1=x).view(np.float32)
    assert found[8] == 2.0**-127


def test_division_without_rounding():
    a = np.float32([1, 10, -7, 1, 0, 1e-40])
    b = np.float32([3, 4, 2, 2.0**127, 0, 1])
    rows = {"r1": a, "r2": b}
    found = execute("div.full.f32 %r3, %r1, %r2;", "r3", **rows).view(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, a / b)
    found = execute("div.approx.ftz.f32 %r3, %r1, %r2;", "r3", **rows).view(np.float32)
    np.testing.assert_array_equal(found, np.float32([1 / 3, 2.5, -3.5, 0, math.nan, 0]))


def test_coarse_reciprocals():
    x = np.float64([3.0, -0.0, math.inf])
    found = execute("rcp.approx.ftz.f64 %d2, %d1;", "d2", d1=x)
    assert (found & np.uint64(0xFFFFFFFF)).tolist() == [0, 0, 0]
    np.testing.assert_allclose(found.view(np.float64), [1 / 3, -math.inf, 0], rtol=2**-20)
    assert (
        execute("rcp.approx.ftz.f64 %d2, %d1;", "d2", d1=np.float64(math.nan))[0]
        == 0x7FFFFFFF << 32
    )
    found = execute("rsqrt.approx.f64 %d2, %d1;", "d2", d1=np.float64([4.0])).view(np.float64)
    assert found.tolist() == [0.5]
