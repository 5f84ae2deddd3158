"""The functions of JAX on a GPU, under jit: the outputs of fa4gen.load to the bit."""

from __future__ import annotations

import os

import numpy as np
import pytest

import fa4gen
from tests.vendoring.adapters.gpu_folder import (
    ALIBI,
    BIAS,
    CAUSAL,
    DECODE,
    MAJORS,
    PAGED,
    RAGGED,
    RESIDUAL,
    SMALL,
    build_cpp,
    import_once,
)

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def jax():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    found = pytest.importorskip("jax", reason="JAX is not installed")
    try:
        found.devices("gpu")
    except RuntimeError as error:
        pytest.skip(f"this JAX has no GPU: {error}")
    return found


@pytest.fixture(scope="module")
def vend(jax, gpu_folder):
    build_cpp(gpu_folder, "jax/vend_jax.cc", "jax", ["-isystem", jax.ffi.include_dir()])
    return import_once(gpu_folder / "adapters/jax/vend_jax.py")


@pytest.fixture
def random(jax):
    def make(*shape, seed=0, dtype="bfloat16"):
        values = jax.random.normal(jax.random.key(seed), shape).astype(dtype)
        return jax.block_until_ready(jax.device_put(values, jax.devices("gpu")[0]))

    return make


def to_cupy(array):
    import cupy

    return cupy.asarray(np.asarray(array))


def bits(array):
    host = array.get() if hasattr(array, "get") else np.asarray(array)
    return np.ascontiguousarray(host).view(np.uint8)


def same(got, expected):
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(bits(one), bits(other))


@pytest.mark.parametrize("scale", [None, 0.2])
def test_attention_under_jit(jax, vend, random, scale) -> None:
    inputs = random(2, 1000, 8, 128), random(2, 1200, 2, 128, seed=1), random(2, 1200, 2, 128)
    expected = fa4gen.load(CAUSAL)(*map(to_cupy, inputs), softmax_scale=scale)
    attend = jax.jit(lambda *a: vend.d128_causal_bf16(*a, softmax_scale=scale))
    for _ in range(20):
        same(attend(*inputs), expected)
    same(vend.d128_causal_bf16(*inputs, softmax_scale=scale), expected)


def test_attention_without_lse(jax, vend, random) -> None:
    inputs = random(2, 500, 4, 64), random(2, 300, 4, 64, seed=1), random(2, 300, 4, 64, seed=2)
    expected = fa4gen.load(SMALL)(*map(to_cupy, inputs))
    same([jax.jit(vend.d64_dense_small_bf16)(*inputs)], [expected])


def test_products_under_jit(jax, vend, random) -> None:
    a, weight, c = random(300, 200), random(264, 200, seed=1), random(300, 264, seed=2)
    multiply = jax.jit(lambda a, w, c: vend.gemm_bf16_residual_sm90(a, w.T, c, alpha=0.5, beta=-2))
    same(
        [multiply(a, weight, c)],
        [fa4gen.load(RESIDUAL)(a, to_cupy(weight).T, c, alpha=0.5, beta=-2)],
    )
    row = random(264, seed=3)
    got = jax.jit(lambda a, w, c: vend.gemm_bf16_bias_gelu_sm90(a, w.T, c))(a, weight, row)
    same([got], [fa4gen.load(BIAS)(to_cupy(a), to_cupy(weight).T, to_cupy(row))])


def test_a_batch_with_the_other_majors(jax, vend, random) -> None:
    a, b = random(3, 200, 304), random(200, 264, seed=1)
    c = random(304, 264, seed=2, dtype="float32")
    got = jax.jit(lambda a, b, c: vend.gemm_bf16_mn_major_sm90(a.swapaxes(1, 2), b, c))(a, b, c)
    same([got], [fa4gen.load(MAJORS)(to_cupy(a).swapaxes(1, 2), to_cupy(b), to_cupy(c))])


def test_b_that_lies_the_other_way_round(jax, vend, random) -> None:
    """XLA lays it out as the kernel reads it."""
    a, b, c = random(300, 200), random(200, 264, seed=1), random(300, 264, seed=2)
    got = jax.jit(vend.gemm_bf16_residual_sm90)(a, b, c)
    import cupy

    k_major = cupy.ascontiguousarray(to_cupy(b).T).T
    same([got], [fa4gen.load(RESIDUAL)(to_cupy(a), k_major, to_cupy(c))])


def test_an_output_of_any_width(jax, vend, random) -> None:
    a, weight, row = random(300, 200), random(101, 200, seed=1), random(101, seed=2)
    got = jax.jit(lambda a, w, r: vend.gemm_bf16_bias_gelu_sm90(a, w.T, r))(a, weight, row)
    same([got], [fa4gen.load(BIAS)(to_cupy(a), to_cupy(weight).T, to_cupy(row))])


def test_many_calls_in_one_program(jax, vend, random) -> None:
    """XLA makes a CUDA graph of such a chain; the workspace is zero before each launch."""
    query, key = random(2, 1000, 8, 128), random(2, 1000, 8, 128, seed=1)

    def chain(query, key):
        results = []
        for _ in range(8):
            out, lse = vend.d128_causal_bf16(query, key, key)
            results.append((out, lse))
            query = out
        return results

    kernel = fa4gen.load(CAUSAL)
    expected = []
    current = to_cupy(query)
    for _ in range(8):
        expected.append(kernel(current, to_cupy(key), to_cupy(key)))
        current = expected[-1][0]
    compiled = jax.jit(chain)
    for _ in range(5):
        for got, wanted in zip(compiled(query, key), expected, strict=True):
            same(got, wanted)


def integers(jax, *numbers):
    return jax.device_put(np.array(numbers, np.int32), jax.devices("gpu")[0])


def same_as_loaded(jax, vend, name, inputs, arrays) -> None:
    """The kernel of the folder under jit against fa4gen.load's, called again and again."""
    loaded = {key: to_cupy(array) for key, array in arrays.items()}
    expected = fa4gen.load(name)(*map(to_cupy, inputs), **loaded)
    expected = expected if isinstance(expected, tuple) else (expected,)
    attend = jax.jit(getattr(vend, name))
    for _ in range(10):
        got = attend(*inputs, **arrays)
        same(got if isinstance(got, tuple | list) else (got,), expected)


def test_a_ragged_batch(jax, vend, random) -> None:
    inputs = random(700, 8, 128), random(900, 2, 128, seed=1), random(900, 2, 128, seed=2)
    arrays = {
        "query_offsets": integers(jax, 0, 1, 301, 301, 700),
        "key_offsets": integers(jax, 0, 5, 400, 600, 900),
    }
    same_as_loaded(jax, vend, RAGGED, inputs, arrays)


def test_pages_with_sinks(jax, vend, random) -> None:
    inputs = random(30, 8, 64), random(11, 64, 2, 64, seed=1), random(11, 64, 2, 64, seed=2)
    arrays = {
        "sinks": random(8, seed=3, dtype="float32"),
        "query_offsets": integers(jax, 0, 10, 11, 30),
        "key_lengths": integers(jax, 300, 64, 100),
        "page_table": integers(jax, [4, 0, 2, 9, 10], [1, 1, 1, 1, 1], [7, 3, 0, 0, 0]),
    }
    same_as_loaded(jax, vend, PAGED, inputs, arrays)


def test_a_step_of_decoding(jax, vend, random) -> None:
    inputs = random(3, 1, 16, 128), random(3, 4900, 2, 128, seed=1), random(3, 4900, 2, 128, seed=2)
    same_as_loaded(jax, vend, DECODE, inputs, {})


def test_decoding_step_after_step_in_one_program(jax, vend, random) -> None:
    """XLA makes a CUDA graph of such a chain; a decode kernel's workspace is its own."""
    query, key = random(2, 1, 16, 128), random(2, 3000, 2, 128, seed=1)
    kernel = fa4gen.load(DECODE)

    def chain(query, key):
        for _ in range(6):
            query, *_ = vend.decode_d128_bf16(query, key, key)
        return query

    expected = to_cupy(query)
    for _ in range(6):
        expected, *_ = kernel(expected, to_cupy(key), to_cupy(key))
    compiled = jax.jit(chain)
    for _ in range(5):
        same([compiled(query, key)], [expected])


def test_a_tensor_that_the_score_reads(jax, vend, random) -> None:
    inputs = random(2, 300, 8, 128), random(2, 290, 2, 128, seed=1), random(2, 290, 2, 128, seed=2)
    slope = random(8, seed=3, dtype="float32")
    same_as_loaded(jax, vend, ALIBI, inputs, {"slope": slope})


def test_what_shows_at_the_launch_is_an_error(jax, vend, random) -> None:
    query, key = random(1, 64, 6, 128), random(1, 64, 4, 128)
    with pytest.raises(Exception, match="key: expected"):
        jax.block_until_ready(jax.jit(vend.d128_causal_bf16)(query, key, key))
