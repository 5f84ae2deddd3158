"""The functions of JAX without a GPU: the calls that they trace to, and what they alone refuse."""

from __future__ import annotations

import re

import pytest

from tests.vendoring.adapters.calls_of_kinds import CALLS as ALL_CALLS
from tests.vendoring.adapters.calls_of_kinds import (
    CAUSAL,
    DECODE,
    FP8,
    IN_PLACE,
    MAJORS,
    MERGE,
    RAGGED,
    RESIDUAL,
    SCALED_PAGES,
    Spec,
)
from tests.vendoring.adapters.folders import import_file, write_folder

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

CALLS = {name: call for name, call in ALL_CALLS.items() if name not in IN_PLACE}
OWN_WORKSPACE = (RAGGED, DECODE, *(name for name in CALLS if "paged" in name or "decode" in name))
"""Kernels whose handlers take the workspace themselves."""
WORDS = {"bfloat16": "bf16", "float32": "f32", "int32": "i32", "float8_e4m3fn": "f8E4M3FN"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("jax"), (*CALLS, "gemm_fp8_sm90"), ("jax",))


@pytest.fixture
def acme(folder, monkeypatch):
    module = import_file(folder / "adapters/jax/acme_jax.py")
    # The library would be opened here; what is traced does not depend on it.
    monkeypatch.setattr(module, "_target", lambda name: f"acme_jax_{name}")
    return module


def made(spec: Spec):
    return jax.ShapeDtypeStruct(spec.shape, spec.dtype)


def traced(function, *arguments, **more):
    """The custom call of the function's program for a GPU, and its results."""
    names = (*CALLS, "gemm_fp8_sm90")
    checks = [jax.export.DisabledSafetyCheck.custom_call(f"acme_jax_{name}") for name in names]
    exported = jax.export.export(
        jax.jit(function), platforms=["cuda"], disabled_checks=checks
    )(*arguments, **more)  # fmt: skip
    (call,) = [row for row in exported.mlir_module().splitlines() if "custom_call" in row]
    return call, [Spec(tuple(aval.shape), aval.dtype.name) for aval in exported.out_avals]


def operands(call: str) -> list[str]:
    """The types of what the call is given."""
    words = call.rpartition(" : (")[2].partition(") -> ")[0]
    return re.findall(r"tensor<([^>]*)>", words)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_the_arrays_of_the_kernel(acme, name) -> None:
    arrays = {key: made(spec) for key, spec in CALLS[name].arrays.items()}
    call, results = traced(getattr(acme, name), **arrays)
    assert results == list(CALLS[name].results)
    assert f"@acme_jax_{name}(" in call
    given = [spec for key, spec in CALLS[name].arrays.items() if not key.endswith("_descale")]
    found = operands(call)
    for spec in given:
        found.remove("x".join([*map(str, spec.shape), WORDS[spec.dtype]]))
    scales = len(acme._KERNELS[name].arrays) if hasattr(acme._KERNELS[name], "arrays") else 0
    assert all(one.endswith("xf32") for one in found)  # scales that are not given are ones
    assert len(found) <= scales
    assert ("xui8" in call) == (name not in (*OWN_WORKSPACE, MERGE))


def test_numbers_are_fixed(acme) -> None:
    query, *others = (made(spec) for spec in CALLS[CAUSAL].arrays.values())
    call, _ = traced(lambda *a: acme.d128_causal_bf16(*a, softmax_scale=0.25), query, *others)
    assert "softmax_scale = 2.500000e-01 : f64" in call
    call, _ = traced(acme.d128_causal_bf16, query, *others)
    assert "softmax_scale = 0.000000e+00 : f64" in call
    with pytest.raises(ValueError, match="softmax_scale: expected a finite number, got JitTracer"):
        jax.eval_shape(
            lambda q, s: acme.d128_causal_bf16(q, q, q, softmax_scale=s), query, jnp.float32(1)
        )


def test_scales_that_are_not_given_are_ones(acme) -> None:
    call, _ = traced(acme.depth512_dense_fp8, *map(made, CALLS[FP8].arrays.values()))
    assert operands(call)[3:] == ["1x2xf32"] * 3
    arrays = {key: made(spec) for key, spec in CALLS[SCALED_PAGES].arrays.items()}
    call, _ = traced(getattr(acme, SCALED_PAGES), **arrays)
    assert operands(call)[3:] == ["11x2xf32"] * 2 + ["3xi32", "3x5xi32"]


def test_matrices_are_laid_out_as_the_kernel_reads_them(acme) -> None:
    a, b, c = map(made, CALLS[RESIDUAL].arrays.values())
    call, _ = traced(lambda *m: acme.gemm_bf16_residual_sm90(*m, alpha=2), a, b, c)
    assert "operand_layouts = [dense<[2, 1, 0]> : tensor<3xindex>, dense<[0, 1]>" in call
    assert "alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64" in call
    call, _ = traced(acme.gemm_bf16_mn_major_sm90, *map(made, CALLS[MAJORS].arrays.values()))
    assert "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[2, 1, 0]>" in call


def test_an_output_of_any_width(acme) -> None:
    a, weight = made(Spec((70, 64), "float8_e4m3fn")), made(Spec((101, 64), "float8_e4m3fn"))
    call, results = traced(lambda a, w: acme.gemm_fp8_sm90(a, w.T), a, weight)
    assert results == [Spec((70, 101))]
    assert "tensor<70x104xbf16>" in call


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((70, 60), (60, 104), (70, 104)), "a: expected an extent k that is a multiple of 8"),
        (((70, 64), (64, 101), (70, 101)), "c: expected an extent n that is a multiple of 8"),
    ],
)
def test_rows_are_multiples_of_16_bytes(acme, shapes, words) -> None:
    with pytest.raises(ValueError, match=words):
        jax.eval_shape(acme.gemm_bf16_residual_sm90, *(made(Spec(shape)) for shape in shapes))


def test_the_library_is_not_built_but_named(folder, monkeypatch) -> None:
    module = import_file(folder / "adapters/jax/acme_jax.py")
    monkeypatch.delenv("ACME_JAX_LIBRARY", raising=False)
    query = made(Spec((2, 100, 8, 128)))
    with pytest.raises(OSError, match=r"libacme_jax.so is neither in"):
        jax.eval_shape(module.d128_causal_bf16, query, query, query)
