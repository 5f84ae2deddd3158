"""Tensor descriptors of other ranks and uses, clusters, dependent launches."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

kernels = pytest.importorskip("tests.emulator.triton.kernels_tensors", reason="needs Triton")
products = pytest.importorskip("tests.emulator.triton.kernels_products", reason="needs Triton")
compiling = pytest.importorskip("tests.emulator.triton.compiling", reason="needs Triton")
launch, Descriptor = compiling.launch, compiling.Descriptor

pytestmark = pytest.mark.triton


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8])
@pytest.mark.parametrize("schedule", ["uniform", "lazy"])
def test_three_dimensions(arch, rng, dtype, schedule) -> None:
    x = rng.integers(-9, 9, (3, 20, 64)).astype(dtype)
    out = np.zeros_like(x)
    launch(
        kernels.shift, arch, (3, 3, 2),
        (Descriptor(x, (1, 8, 32)), Descriptor(out, (1, 8, 32)), 2, -16),
        schedule=schedule, A=1, B=8, C=32,
    )  # fmt: skip
    right = np.ones_like(x)
    right[:, :18, 16:] += x[:, 2:, :-16]
    np.testing.assert_array_equal(out, right)


@pytest.mark.parametrize("name", ["add", "max", "min", "xor", "or"])
def test_reductions_into_a_tensor(arch, rng, name) -> None:
    x = rng.integers(0, 999, (4, 16, 32)).astype(np.float32 if name == "add" else np.int32)
    out = np.full((16, 32), 500, x.dtype)
    launch(kernels.meet, arch, 4, (Descriptor(out, (16, 32)), x), NAME=name, ROWS=16, WIDTH=32)
    function = {
        "add": np.add, "max": np.maximum, "min": np.minimum, "xor": np.bitwise_xor,
        "or": np.bitwise_or,
    }[name]  # fmt: skip
    np.testing.assert_array_equal(out, function.reduce([np.full_like(out, 500), *x]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gathered_rows(rng, dtype) -> None:
    x = rng.normal(size=(40, 64)).astype(dtype)
    out = np.zeros((40, 32), dtype)
    index = rng.permutation(40)[:16].astype(np.int32)
    launch(
        kernels.gather_rows, 100, 1, (Descriptor(x, (1, 32)), index, Descriptor(out, (1, 32))),
        ROWS=16, WIDTH=32,
    )  # fmt: skip
    right = np.zeros_like(out)
    right[index ^ 1] = x[index, 8:40]
    np.testing.assert_array_equal(out, right)


def test_dependent_launches(arch, rng) -> None:
    x = rng.normal(size=300).astype(np.float32)
    out = np.zeros_like(x)
    launch(kernels.after, arch, 3, (x, out, 300), BLOCK=128)
    np.testing.assert_array_equal(out, x * x)


@pytest.mark.parametrize("ctas", [2, 4])
def test_a_product_of_a_cluster(arch, rng, ctas) -> None:
    a, b = (rng.integers(-9, 9, (128, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((128, 128), np.float32)
    launch(
        products.product, arch, 1, (a, b, c, 128, 128, 64, 64, 64, 128), clusters=ctas, stages=1,
        TRANSPOSED=True, PRECISION="tf32", HEIGHT=128, WIDTH=128, DEPTH=64,
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
