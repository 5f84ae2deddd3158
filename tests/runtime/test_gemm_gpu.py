"""Matrix products on a GPU through the launcher: layouts, libraries, streams, graphs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import fa4gen
from fa4gen.errors import ArgumentError
from tests.runtime.gpu_arrays import random, to_gpu

pytestmark = pytest.mark.gpu

CONFIG = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16"}
BF16 = ml_dtypes.bfloat16
TOLERANCE = 0.01
"""A share of the largest element: more than the rounding of bf16, far less than a wrong one."""


@pytest.fixture(scope="module")
def residual():
    """D = alpha A . B + beta C."""
    return fa4gen.load({**CONFIG, "name": "gpu_residual", "residual": "matrix"})


@pytest.fixture(scope="module")
def bias():
    """D = relu(A . B + a row), float32, A and B with m and n contiguous."""
    return fa4gen.load(
        {
            **CONFIG, "name": "gpu_bias", "residual": "row", "activation": "relu(x)",
            "out_dtype": "fp32", "a_major": "m", "b_major": "n",
        }
    )  # fmt: skip


def k_major(b):
    """B (k, n) on the GPU with k contiguous: a transposed view of the weights (n, k)."""
    return to_gpu(np.ascontiguousarray(b.swapaxes(-1, -2))).swapaxes(-1, -2)


def exact(a, b, c, alpha=1.0, beta=1.0):
    """The product with its residual in float64."""
    a, b, c = (x.astype(np.float64) for x in (a, b, c))
    return alpha * (a @ b) + beta * c


def close(got, expected):
    got = got.get().astype(np.float64)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, atol=TOLERANCE * abs(expected).max())


def operands(m=300, n=264, k=200, batch=()):
    shapes = ((*batch, m, k), (*batch, k, n), (*batch, m, n))
    return [random(*shape, seed=i) for i, shape in enumerate(shapes)]


def on_gpu(host):
    a, b, c = host
    return to_gpu(a), k_major(b), to_gpu(c)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (-0.5, 2.0), (0.0, 1.0), (1.5, 0.0)])
def test_a_product_with_its_residual(residual, batch, alpha, beta):
    host = operands(batch=batch)
    out = residual(*on_gpu(host), alpha=alpha, beta=beta)
    close(out, exact(*host, alpha, beta))


def test_a_bias_an_activation_and_the_other_majors(bias):
    a, b, row = random(304, 200), random(200, 264, seed=1), random(264, seed=2, dtype=np.float32)
    a_on_gpu = to_gpu(np.ascontiguousarray(a.T)).T
    out = bias(a_on_gpu, to_gpu(b), to_gpu(row))
    assert out.dtype == np.float32
    close(out, np.maximum(exact(a, b, row), 0))


def test_an_output_of_any_width_is_made(residual):
    a, b, c = operands(n=101)
    padded = np.zeros((300, 104), BF16)
    padded[:, :101] = c
    out = residual(to_gpu(a), k_major(b), to_gpu(padded)[:, :101])
    close(out, exact(a, b, c))


def test_b_and_c_are_shared_by_a_batch(residual):
    a, b, c = random(3, 100, 64), random(64, 72, seed=1), random(100, 72, seed=2)
    close(residual(to_gpu(a), k_major(b), to_gpu(c)), exact(a, b, c))


def test_in_place(residual):
    host = operands()
    a, b, c = on_gpu(host)
    assert residual(a, b, c, out=c, beta=0.5) is c
    close(c, exact(*host, 1.0, 0.5))


def test_nan_in_c_does_not_count_where_beta_is_0(residual):
    host = operands()
    a, b, c = on_gpu(host)
    c.data.memset_async(0xFF, c.nbytes)
    close(residual(a, b, c, beta=0.0), exact(*host, 1.0, 0.0))


def test_nan_in_a_and_b_does_not_count_where_alpha_is_0(residual):
    host = operands()
    a, b, c = on_gpu(host)
    for array in (a, b):
        array.data.memset_async(0xFF, array.nbytes)
    close(residual(a, b, c, alpha=0.0, beta=0.5), 0.5 * host[2].astype(np.float64))


@pytest.mark.parametrize("sizes", [{"m": 0}, {"n": 0}, {"batch": (0,)}])
def test_without_an_output_nothing_happens(residual, sizes):
    host = operands(**sizes)
    assert residual(*on_gpu(host)).shape == host[2].shape


def test_without_k_the_residual_is_left(residual):
    host = operands(k=0)
    close(residual(*on_gpu(host), beta=0.5), 0.5 * host[2].astype(np.float64))


def test_wrong_arguments_launch_nothing(residual):
    a, b, c = on_gpu(operands(k=264))
    out = c.copy()
    with pytest.raises(ArgumentError, match=r"b: expected a stride along k of 2 bytes"):
        residual(a, b.copy(order="C"), c, out=out)
    with pytest.raises(ArgumentError, match=r"c: expected an array of the output's shape"):
        residual(a, b, out=out)
    with pytest.raises(ArgumentError, match=r"out: expected memory of its own"):
        residual(a, b, c, out=a)
    np.testing.assert_array_equal(out.get().view(np.uint16), c.get().view(np.uint16))


def test_the_same_bits_every_time(residual):
    arrays = on_gpu(operands(2000, 1000, 504))
    first = residual(*arrays).get().view(np.uint16)
    for _ in range(10):
        np.testing.assert_array_equal(residual(*arrays).get().view(np.uint16), first)


def test_a_prepared_call_in_a_graph(residual):
    import cupy

    host = operands()
    launch = residual.prepare(*on_gpu(host))
    launch()
    launch.out.data.memset_async(0xFF, launch.out.nbytes)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        launch()
        graph = stream.end_capture()
    cupy.cuda.Device().synchronize()
    assert np.isnan(launch.out.get().astype(np.float32)).all()
    graph.launch(stream)
    stream.synchronize()
    close(launch.out, exact(*host))


class TestTorch:
    def test_a_linear_layer(self, residual, torch):
        x, weight, c = (
            torch.randn(shape, device="cuda", dtype=torch.bfloat16)
            for shape in ((300, 200), (264, 200), (300, 264))
        )
        out = residual(x, weight.t(), c, beta=0.5)
        assert isinstance(out, torch.Tensor)
        expected = torch.addmm(c.double(), x.double(), weight.double().t(), beta=0.5)
        torch.testing.assert_close(out.double(), expected, atol=0.3, rtol=0.02)

    def test_torchs_stream_is_used(self, residual, torch):
        tensors = [torch.randn(256, 256, device="cuda").bfloat16() for _ in range(3)]
        launch = residual.prepare(tensors[0], tensors[1].t(), tensors[2])
        launch()
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            launch()
            assert not stream.query()
        stream.synchronize()
