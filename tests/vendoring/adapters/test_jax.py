"""The functions of JAX without a GPU: what they refuse, and the calls that they trace to."""

from __future__ import annotations

import pytest

from tests.vendoring.adapters.folders import import_file

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


@pytest.fixture
def acme(folder, monkeypatch):
    module = import_file(folder / "adapters/jax/acme_jax.py")
    # The library would be opened here; what is traced does not depend on it.
    monkeypatch.setattr(module, "_target", lambda name: f"acme_jax_{name}")
    return module


def arrays(*shapes, dtype=jnp.bfloat16):
    return [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]


def traced(function, *arguments):
    """The custom call of the function's program for a GPU, and its results."""
    checks = [jax.export.DisabledSafetyCheck.custom_call(f"acme_jax_{name}") for name in NAMES]
    exported = jax.export.export(
        jax.jit(function), platforms=["cuda"], disabled_checks=checks
    )(*arguments)  # fmt: skip
    (call,) = [row for row in exported.mlir_module().splitlines() if "custom_call" in row]
    return call, [(tuple(aval.shape), aval.dtype.name) for aval in exported.out_avals]


NAMES = (
    "d128_causal_bf16", "d64_dense_small_bf16", "depth512_dense_fp8", "gemm_bf16_residual_sm90",
    "gemm_bf16_mn_major_sm90", "gemm_fp8_sm90",
)  # fmt: skip


def test_attention_with_lse(acme) -> None:
    inputs = arrays((2, 100, 8, 128), (2, 90, 2, 128), (2, 90, 2, 128))
    call, results = traced(lambda *a: acme.d128_causal_bf16(*a, softmax_scale=0.25), *inputs)
    assert results == [((2, 100, 8, 128), "bfloat16"), ((2, 8, 100), "float32")]
    assert "@acme_jax_d128_causal_bf16(" in call
    assert "softmax_scale = 2.500000e-01 : f64" in call
    assert "tensor<128xui8>" in call  # the workspace


def test_attention_of_the_default_scale_without_lse(acme) -> None:
    inputs = arrays((2, 100, 8, 64), (2, 90, 2, 64), (2, 90, 2, 64))
    call, results = traced(acme.d64_dense_small_bf16, *inputs)
    assert results == [((2, 100, 8, 64), "bfloat16")]
    assert "softmax_scale = 0.000000e+00 : f64" in call


def test_scales_of_fp8_that_are_not_given_are_ones(acme) -> None:
    inputs = arrays(*[(1, 64, 2, 512)] * 3, dtype=jnp.float8_e4m3fn)
    call, _ = traced(lambda *a: acme.depth512_dense_fp8(*a), *inputs)
    assert call.count("tensor<1x2xf32>") == 3


def test_b_is_laid_out_with_k_contiguous(acme) -> None:
    a, weight, c = arrays((3, 70, 64), (104, 64), (3, 70, 104))
    call, results = traced(
        lambda a, w, c: acme.gemm_bf16_residual_sm90(a, w.T, c, alpha=2), a, weight, c
    )
    assert results == [((3, 70, 104), "bfloat16")]
    assert "operand_layouts = [dense<[2, 1, 0]> : tensor<3xindex>, dense<[0, 1]>" in call
    assert "alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64" in call


def test_a_is_laid_out_with_m_contiguous(acme) -> None:
    a, b, c = arrays((3, 72, 64), (3, 64, 104), (3, 72, 104))
    c = jax.ShapeDtypeStruct(c.shape, jnp.float32)
    call, _ = traced(acme.gemm_bf16_mn_major_sm90, a, b, c)
    assert "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[2, 1, 0]>" in call


def test_an_output_of_any_width(acme) -> None:
    a, weight = arrays((70, 64), (101, 64), dtype=jnp.float8_e4m3fn)
    call, results = traced(lambda a, w: acme.gemm_fp8_sm90(a, w.T), a, weight)
    assert results == [((70, 101), "bfloat16")]
    assert "tensor<70x104xbf16>" in call


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((70, 60), (104, 60), (70, 104)), "a: expected an extent k that is a multiple of 8"),
        (((70, 64), (101, 64), (70, 101)), "c: expected an extent n that is a multiple of 8"),
        (((70, 64), (104, 72), (70, 104)), r"b: expected shape \(64, n\)"),
        (((70, 64), (104, 64), (71, 104)), r"c: expected shape \(70, 104\)"),
    ],
)
def test_a_product_names_what_is_wrong(acme, shapes, words) -> None:
    a, weight, c = arrays(*shapes)
    with pytest.raises(ValueError, match=words):
        jax.eval_shape(lambda a, w, c: acme.gemm_bf16_residual_sm90(a, w.T, c), a, weight, c)


def test_attention_names_what_is_wrong(acme) -> None:
    (query,) = arrays((2, 100, 8, 128))
    key = jax.ShapeDtypeStruct(query.shape, jnp.float32)
    with pytest.raises(ValueError, match="key: expected bfloat16, got float32"):
        jax.eval_shape(acme.d128_causal_bf16, query, key, query)
    with pytest.raises(ValueError, match="softmax_scale: expected a finite number, got JitTracer"):
        jax.eval_shape(
            lambda q, s: acme.d128_causal_bf16(q, q, q, softmax_scale=s), query, jnp.float32(1)
        )


def test_the_library_is_not_built_but_named(folder, monkeypatch) -> None:
    module = import_file(folder / "adapters/jax/acme_jax.py")
    monkeypatch.delenv("ACME_JAX_LIBRARY", raising=False)
    (query,) = arrays((2, 100, 8, 128))
    with pytest.raises(OSError, match=r"libacme_jax.so is neither in"):
        jax.eval_shape(module.d128_causal_bf16, query, query, query)
