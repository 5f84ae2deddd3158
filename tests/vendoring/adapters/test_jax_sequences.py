"""The functions of JAX for kernels with sinks, sequences and tensors that mask or score read."""

from __future__ import annotations

import pytest

from tests.vendoring.adapters.folders import import_file, write_folder

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

RAGGED, PAGED = "d128_ragged_causal_bf16", "d64_paged64_window_sinks_bf16"
DECODE, ALIBI, SCALES = "decode_d128_bf16", "d128_alibi_causal_bf16", "fa4_d128_paged64_causal_fp8"
OF_PAGES = "decode_d128_paged64_kv_fp8_page_bf16"
NAMES = (RAGGED, PAGED, DECODE, ALIBI, SCALES, OF_PAGES)


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    folder = write_folder(tmp_path_factory.mktemp("sequences"), NAMES, ("jax",))
    module = import_file(folder / "adapters/jax/acme_jax.py", "acme_jax_of_sequences")
    module._target = lambda name: f"acme_jax_{name}"  # the library would be opened here
    return module


def array(*shape, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype)


def integers(*shape):
    return array(*shape, dtype=jnp.int32)


def traced(function, *inputs, **more):
    """The custom call of the function's program for a GPU, and the shapes of its results."""
    checks = [jax.export.DisabledSafetyCheck.custom_call(f"acme_jax_{name}") for name in NAMES]
    exported = jax.export.export(
        jax.jit(function), platforms=["cuda"], disabled_checks=checks
    )(*inputs, **more)  # fmt: skip
    (call,) = [row for row in exported.mlir_module().splitlines() if "custom_call" in row]
    return call, [tuple(aval.shape) for aval in exported.out_avals]


def operands(call: str) -> list[str]:
    """The types of what the call is given."""
    words = call.rpartition(" : (")[2].partition(") -> ")[0]
    return [word.strip().removeprefix("tensor<").removesuffix(">") for word in words.split(",")]


def test_a_ragged_batch(acme) -> None:
    inputs = array(300, 8, 128), array(420, 2, 128), array(420, 2, 128)
    tables = {"query_offsets": integers(8), "key_offsets": integers(8)}
    call, results = traced(getattr(acme, RAGGED), *inputs, **tables)
    assert results[0] == (300, 8, 128)
    assert results[1:] in ([], [(8, 300)])
    assert operands(call)[3:] == ["8xi32", "8xi32"]
    assert "xui8" not in call  # the handler takes the workspace itself


def test_pages_with_sinks(acme) -> None:
    inputs = array(30, 8, 64), array(11, 64, 2, 64), array(11, 64, 2, 64)
    tables = {
        "sinks": array(8, dtype=jnp.float32),
        "query_offsets": integers(4),
        "key_lengths": integers(3),
        "page_table": integers(3, 5),
    }
    call, results = traced(getattr(acme, PAGED), *inputs, **tables)
    assert results[0] == (30, 8, 64)
    assert operands(call)[3:] == ["8xf32", "4xi32", "3xi32", "3x5xi32"]


def test_scales_of_sequences(acme) -> None:
    fp8 = [array(*shape, dtype=jnp.float8_e4m3fn) for shape in ((30, 8, 128), (11, 64, 2, 128))]
    tables = {
        "query_offsets": integers(4), "key_lengths": integers(3), "page_table": integers(3, 5),
    }  # fmt: skip
    call, _ = traced(getattr(acme, SCALES), fp8[0], fp8[1], fp8[1], **tables)
    assert operands(call)[3:] == ["3x2xf32"] * 3 + ["4xi32", "3xi32", "3x5xi32"]


def test_scales_of_pages(acme) -> None:
    inputs = array(3, 1, 8, 128), *[array(11, 64, 2, 128, dtype=jnp.float8_e4m3fn)] * 2
    tables = {"key_lengths": integers(3), "page_table": integers(3, 5)}
    scales = {"key_descale": array(11, 2, dtype=jnp.float32)}
    call, results = traced(getattr(acme, OF_PAGES), *inputs, **scales, **tables)
    assert operands(call)[3:] == ["11x2xf32"] * 2 + ["3xi32", "3x5xi32"]
    assert results == [(3, 1, 8, 128), (3, 8, 1)]
    scales["key_descale"] = array(3, 2, dtype=jnp.float32)
    with pytest.raises(ValueError, match=r"key_descale: expected shape \(11, 2\), got \(3, 2\)"):
        jax.eval_shape(getattr(acme, OF_PAGES), *inputs, **scales, **tables)


def test_decode_has_a_workspace_of_its_own(acme) -> None:
    inputs = array(3, 1, 16, 128), array(3, 900, 2, 128), array(3, 900, 2, 128)
    call, results = traced(getattr(acme, DECODE), *inputs)
    assert results[0] == (3, 1, 16, 128)
    assert "xui8" not in call


def test_tensors_that_a_score_reads(acme) -> None:
    inputs = array(2, 100, 8, 128), array(2, 90, 2, 128), array(2, 90, 2, 128)
    call, _ = traced(getattr(acme, ALIBI), *inputs, slope=array(8, dtype=jnp.float32))
    assert operands(call)[3:] == ["8xf32"]
    with pytest.raises(ValueError, match=r"slope: expected shape \(8\), got \(7,\)"):
        jax.eval_shape(getattr(acme, ALIBI), *inputs, slope=array(7, dtype=jnp.float32))
    with pytest.raises(ValueError, match="slope: expected float32, got int32"):
        jax.eval_shape(getattr(acme, ALIBI), *inputs, slope=integers(8))


@pytest.mark.parametrize("name", ["sinks", "query_offsets", "key_lengths", "page_table"])
def test_what_has_another_type_is_named(acme, name) -> None:
    inputs = array(30, 8, 64), array(11, 64, 2, 64), array(11, 64, 2, 64)
    tables = {
        "sinks": array(8, dtype=jnp.float32),
        "query_offsets": integers(4),
        "key_lengths": integers(3),
        "page_table": integers(3, 5),
    }
    tables[name] = array(*tables[name].shape)
    with pytest.raises(ValueError, match=f"^{name}: expected (int32|float32), got bfloat16"):
        jax.eval_shape(getattr(acme, PAGED), *inputs, **tables)
