"""The functions of JAX on a GPU, under jit: the outputs of fa4gen.load to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import fa4gen
from tests.vendoring.adapters.gpu_folder import (
    BIAS,
    CAUSAL,
    DECODE,
    MAJORS,
    RESIDUAL,
    load_jax,
    same,
)

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def loaded(gpu_folder):
    return load_jax(gpu_folder)


@pytest.fixture(scope="module")
def jax(loaded):
    return loaded[0]


@pytest.fixture(scope="module")
def vend(loaded):
    return loaded[1]


@pytest.fixture
def random(jax):
    def make(*shape, seed=0, dtype="bfloat16"):
        values = jax.random.normal(jax.random.key(seed), shape).astype(dtype)
        return jax.block_until_ready(jax.device_put(values, jax.devices("gpu")[0]))

    return make


def to_cupy(array):
    import cupy

    return cupy.asarray(np.asarray(array))


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


def test_what_shows_at_the_launch_is_an_error(jax, vend, random) -> None:
    query, key = random(1, 64, 6, 128), random(1, 64, 4, 128)
    with pytest.raises(Exception, match="key: expected"):
        jax.block_until_ready(jax.jit(vend.d128_causal_bf16)(query, key, key))
