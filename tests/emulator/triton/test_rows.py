"""Kernels whose threads talk to one another: reductions, scans, orders, atomics, locks."""

from __future__ import annotations

import numpy as np
import pytest

kernels = pytest.importorskip("tests.emulator.triton.kernels", reason="needs Triton")
launch = pytest.importorskip("tests.emulator.triton.compiling", reason="needs Triton").launch

pytestmark = pytest.mark.triton


@pytest.mark.parametrize("name", ["argmax", "argmin", "sum", "xor"])
@pytest.mark.parametrize(
    ("columns", "block", "rows", "warps"), [(100, 128, 4, 4), (700, 1024, 1, 8)]
)
def test_reduce(arch, rng, name, columns, block, rows, warps) -> None:
    x = rng.integers(-50, 50, (8, columns)).astype(np.int32 if name == "xor" else np.float32)
    out, where = np.zeros(8, x.dtype), np.zeros(8, np.int32)
    launch(
        kernels.reduce_rows, arch, 8 // rows, (x, out, where, columns), warps=warps,
        NAME=name, BLOCK=block, ROWS=rows,
    )  # fmt: skip
    function = {"argmax": np.max, "argmin": np.min, "sum": np.sum, "xor": np.bitwise_xor.reduce}
    np.testing.assert_array_equal(out, function[name](x, axis=1))
    if name.startswith("arg"):  # the first of equals
        np.testing.assert_array_equal(where, getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", ["sum", "product", "compose"])
@pytest.mark.parametrize(("rows", "block", "warps"), [(2, 256, 4), (16, 32, 2)])
def test_scan(arch, rng, name, backwards, rows, block, warps) -> None:
    x, y = (rng.uniform(0.5, 1.5, (rows, block)).astype(np.float32) for _ in range(2))
    out = np.zeros_like(x)
    launch(
        kernels.scan, arch, 1, (x, y, out), warps=warps,
        NAME=name, BACKWARDS=backwards, ROWS=rows, BLOCK=block,
    )  # fmt: skip
    a, b = (v[:, ::-1].astype(np.float64) if backwards else v.astype(np.float64) for v in (x, y))
    if name == "compose":
        exact, last = np.zeros_like(b), np.zeros(rows)
        for column in range(block):
            last = a[:, column] * last + b[:, column]
            exact[:, column] = last
    else:
        exact = np.cumsum(a, 1) if name == "sum" else np.cumprod(a, 1)
    np.testing.assert_allclose(out, exact[:, ::-1] if backwards else exact, rtol=2e-5)


@pytest.mark.parametrize("bins", [16, 128])
def test_histogram(arch, rng, bins) -> None:
    x = rng.integers(0, bins, 900).astype(np.int32)
    out = np.zeros(bins, np.int32)
    launch(kernels.histogram, arch, 4, (x, out, 900), BINS=bins, BLOCK=256)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=bins))


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("down", [False, True])
def test_sort(arch, rng, dtype, down) -> None:
    x = rng.permuted(np.arange(4 * 64).reshape(4, 64) - 100, axis=1).astype(dtype)
    out = np.zeros_like(x)
    launch(kernels.sort, arch, 1, (x, out), DOWN=down, ROWS=4, BLOCK=64)
    np.testing.assert_array_equal(out, np.sort(x, 1)[:, ::-1] if down else np.sort(x, 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(arch, rng, axis) -> None:
    x = rng.normal(size=(16, 64)).astype(np.float32)
    index = rng.integers(0, x.shape[axis], x.shape).astype(np.int32)
    out = np.zeros_like(x)
    launch(kernels.gather, arch, 1, (x, index, out), ROWS=16, BLOCK=64, AXIS=axis)
    np.testing.assert_array_equal(out, np.take_along_axis(x, index, axis))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_shuffle(arch, rng, dtype) -> None:
    x = rng.integers(-100, 100, (32, 64)).astype(dtype)
    out = np.zeros((64, 32), dtype)
    launch(kernels.shuffle, arch, 1, (x, out), ROWS=32, BLOCK=64)
    pairs = x.T.reshape(64, 16, 2)[:, :, ::-1]  # split, put together the other way round
    np.testing.assert_array_equal(out, pairs.reshape(64, 32)[:, ::-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_block_pointers(arch, rng, dtype) -> None:
    x = rng.normal(size=(50, 70)).astype(dtype)
    out = np.zeros((70, 50), dtype)
    launch(kernels.copy_blocks, arch, (2, 3), (x, out, 50, 70), HEIGHT=32, WIDTH=32)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("schedule", ["uniform", "priority"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_atomics(arch, rng, dtype, schedule) -> None:
    x = rng.integers(0, 30, 500).astype(np.float32)  # sums that float16 can hold
    sums = np.zeros(8, dtype)
    counts = np.zeros(16, np.int32)
    greatest, least = np.full(1, -np.inf, np.float32), np.full(1, 1000, np.int32)
    bits = np.array([0, 0, -1], np.int32)
    launch(
        kernels.atomics, arch, 4, (x, sums, counts, greatest, least, bits, 500),
        schedule=schedule, BLOCK=128,
    )  # fmt: skip
    np.testing.assert_array_equal(sums, [x[i::8].sum() for i in range(8)])
    whole = x.astype(np.int32)
    np.testing.assert_array_equal(counts, np.bincount(whole % 16, minlength=16))
    assert (greatest[0], least[0]) == (x.max(), whole.min())
    ones = np.bitwise_or.reduce(np.int64(1) << (whole % 32)).astype(np.uint32).view(np.int32)
    assert bits.tolist() == [ones, np.bitwise_xor.reduce(whole), ~ones]


@pytest.mark.parametrize("schedule", ["uniform", "priority", "starve"])
def test_a_lock(arch, rng, schedule) -> None:
    x = rng.integers(-9, 9, (6, 64)).astype(np.float32)
    out, lock = np.zeros(64, np.float32), np.zeros(1, np.int32)
    launch(kernels.locked_sum, arch, 6, (x, lock, out), warps=2, schedule=schedule, BLOCK=64)
    np.testing.assert_array_equal(out, x.sum(0))
    assert lock[0] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("columns", "warps"), [(100, 2), (777, 8)])
def test_softmax(arch, rng, dtype, columns, warps) -> None:
    x = (rng.normal(size=(9, columns)) * 4).astype(dtype)
    out = np.zeros_like(x)
    block = 1 << (columns - 1).bit_length()
    launch(kernels.softmax, arch, 3, (x, out, 9, columns, columns), warps=warps, BLOCK=block)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    np.testing.assert_allclose(out, exact, rtol=2e-5 if dtype is np.float32 else 1e-3, atol=1e-7)


@pytest.mark.parametrize(("columns", "block", "warps"), [(200, 64, 2), (300, 512, 4)])
def test_layer_norm(arch, rng, columns, block, warps) -> None:
    x = (rng.normal(size=(4, columns)) * 3 + 1).astype(np.float32)
    weight, bias = (rng.normal(size=columns).astype(np.float32) for _ in range(2))
    out, mean, inverse = np.zeros_like(x), np.zeros(4, np.float32), np.zeros(4, np.float32)
    launch(
        kernels.layer_norm, arch, 4, (x, out, weight, bias, mean, inverse, columns, 1e-5),
        warps=warps, BLOCK=block,
    )  # fmt: skip
    v = x.astype(np.float64)
    scale = 1 / np.sqrt(v.var(1) + 1e-5)
    np.testing.assert_allclose(mean, v.mean(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(inverse, scale, rtol=1e-5)
    exact = (v - v.mean(1, keepdims=True)) * scale[:, None] * weight + bias
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-5)


def normalise_back(arch, rng, schedule, ordered):
    """Launch; return the report, then the three results, then what they should be."""
    rows, columns, groups = 6, 90, 2
    x, dout = (rng.normal(size=(rows, columns)).astype(np.float32) for _ in range(2))
    weight = rng.normal(size=columns).astype(np.float32)
    v = x.astype(np.float64)
    mean, scale = v.mean(1), 1 / np.sqrt(v.var(1) + 1e-5)
    dx = np.zeros_like(x)
    dweight, dbias = (np.zeros((groups, columns), np.float32) for _ in range(2))
    locks, used = np.zeros(groups, np.int32), np.zeros(groups, np.int32)
    report = launch(
        kernels.layer_norm_backward, arch, rows,
        (dx, dout, dweight, dbias, x, weight, mean.astype(np.float32), scale.astype(np.float32),
         locks, used, columns),
        schedule=schedule, known=() if ordered else ["race"],
        GROUPS=groups, BLOCK=128, ORDERED=ordered,
    )  # fmt: skip
    unit = (v - mean[:, None]) * scale[:, None]
    scaled = dout * weight.astype(np.float64)
    level = scaled.mean(1, keepdims=True)
    along = (scaled * unit).mean(1, keepdims=True)
    right = (
        (scaled - level - unit * along) * scale[:, None],
        (dout * unit).sum(0),
        dout.sum(0, dtype=np.float64),
    )
    return report, (dx, dweight.sum(0), dbias.sum(0)), right


@pytest.mark.parametrize("schedule", ["uniform", "starve"])
def test_layer_norm_backward(arch, rng, schedule) -> None:
    _, results, right = normalise_back(arch, rng, schedule, True)
    for result, exact in zip(results, right, strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-5)


def test_a_race_in_triton_is_found(arch, rng) -> None:
    """All threads read a flag, one sets it: without a barrier others may read what it set."""
    report, _, _ = normalise_back(arch, rng, "uniform", False)
    (where,) = {finding.where.split(":")[0] for finding in report.findings}
    assert {finding.kind for finding in report.findings} == {"race"}
    assert where == "kernels.py"
