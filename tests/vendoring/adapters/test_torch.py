"""The operators of PyTorch without a GPU: schemas, fake tensors, torch.compile, refusals."""

from __future__ import annotations

import pytest

from tests.vendoring.adapters.calls_of_kinds import (
    ALIBI,
    CALLS,
    CAUSAL,
    LARGEST,
    MERGE,
    PAGED,
    QUANTISED,
    RAGGED,
    SCATTERED,
    Spec,
)
from tests.vendoring.adapters.folders import import_file, write_folder

torch = pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")

BF16 = torch.bfloat16
SCALED = "gemm_fp8_scaled_ue8m0_residual_sm90"
DEVICES = ("cpu", "cuda")
"""Fake tensors need no GPU."""


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    names = (*CALLS, SCALED)
    folder = write_folder(tmp_path_factory.mktemp("torch"), names, ("torch",))
    return import_file(folder / "adapters/torch/acme_torch.py")


@pytest.fixture
def fake_mode():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        yield mode


def tensors(*shapes, device="cpu", dtype=BF16):
    return [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]


def made(name, device):
    """The tensors of a sound call."""
    return {
        word: torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=device)
        for word, spec in CALLS[name].arrays.items()
    }


def spec_of(tensor):
    return Spec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


ATTENTION = ((2, 100, 8, 128), (2, 90, 2, 128), (2, 90, 2, 128))
PRODUCT = ((3, 70, 64), (101, 64), (3, 70, 101))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.usefixtures("fake_mode")
class TestFakes:
    @pytest.mark.parametrize("name", CALLS)
    def test_results(self, acme, device, name) -> None:
        result = getattr(acme, name)(**made(name, device))
        results = result if isinstance(result, tuple) else (result,)
        assert tuple(map(spec_of, results)) == CALLS[name].results
        assert {one.device.type for one in results} == {device}
        assert results[0].is_contiguous()

    @pytest.mark.parametrize("name", [CAUSAL, RAGGED])
    def test_heads_first(self, acme, device, name) -> None:
        arrays = made(name, device)
        for word in ("query", "key", "value"):
            shape = arrays[word].transpose(-3, -2).shape
            arrays[word] = torch.empty(shape, dtype=BF16, device=device)
        out, lse = getattr(acme, name)(**arrays, layout="bhsd")
        assert out.shape == arrays["query"].shape
        assert spec_of(lse) == CALLS[name].results[1]

    def test_rows_of_a_new_product_are_padded(self, acme, device) -> None:
        if device == "cuda" and not torch.backends.cuda.is_built():
            pytest.skip("a PyTorch built without CUDA slices no fake tensors of its devices")
        a, weight, c = tensors(*PRODUCT, device=device)
        out = acme.gemm_bf16_residual_sm90(a, weight.t(), c)
        assert (out.shape, out.stride()) == ((3, 70, 101), (70 * 104, 104, 1))

    def test_outputs_that_are_given_are_returned(self, acme, device) -> None:
        for name in (CAUSAL, PAGED):
            arrays = made(name, device)
            given = torch.empty_like(arrays["query"])
            out, lse = getattr(acme, name)(**arrays, out=given)
            assert out is given
            assert spec_of(lse) == CALLS[name].results[1]
        a, weight, c = tensors(*PRODUCT, device=device)
        assert acme.gemm_bf16_residual_sm90(a, weight.t(), c, out=c) is c
        with pytest.raises(ValueError, match="out: expected bfloat16, got float32"):
            acme.d128_causal_bf16(**made(CAUSAL, device), out=torch.empty(2, device=device))


def scaled_call(device, **changed):
    """A product of (3, 72, 304) and (304, 104), of which all share the latter."""
    fp8, bytes_of_scales = torch.float8_e4m3fn, torch.float8_e8m0fnu
    call = {
        "a": torch.empty(3, 72, 304, dtype=fp8, device=device),
        "b": torch.empty(104, 304, dtype=fp8, device=device).t(),
        "c": torch.empty(3, 72, 104, dtype=BF16, device=device),
        "scale_a": torch.empty(3, 3, 72, dtype=bytes_of_scales, device=device).transpose(1, 2),
        "scale_b": torch.empty(3, 1, dtype=torch.uint8, device=device),
    }
    return call | changed


@pytest.mark.usefixtures("fake_mode")
class TestScales:
    def test_a_product(self, acme) -> None:
        out = getattr(acme, SCALED)(**scaled_call("cuda"))
        assert (out.shape, out.dtype) == ((3, 72, 104), BF16)
        given = torch.empty_like(out)
        assert getattr(acme, SCALED)(**scaled_call("cuda"), out=given) is given

    def test_wrong_scales_are_named(self, acme) -> None:
        wrong = torch.empty(72, 2, dtype=torch.uint8, device="cuda")
        with pytest.raises(ValueError, match=r"scale_a: expected shape \(72, 3\)"):
            getattr(acme, SCALED)(**scaled_call("cuda", scale_a=wrong))
        with pytest.raises(ValueError, match="scale_b: expected float8_e8m0fnu, got float32"):
            getattr(acme, SCALED)(**scaled_call("cuda", scale_b=wrong.float()))


@pytest.mark.usefixtures("fake_mode")
class TestWritten:
    """Outputs that only some products have."""

    def test_either_output_of_a_quantised_product_may_be_given(self, acme) -> None:
        arrays = made(QUANTISED, "cuda")
        out = torch.empty(3, 72, 256, dtype=torch.float8_e4m3fn, device="cuda")
        scales = torch.empty(3, 2, 72, device="cuda").transpose(1, 2)
        found, new = getattr(acme, QUANTISED)(**arrays, out=out)
        assert found is out
        assert spec_of(new) == CALLS[QUANTISED].results[1]
        found, given = getattr(acme, QUANTISED)(**arrays, out_scales=scales)
        assert given is scales
        assert spec_of(found) == CALLS[QUANTISED].results[0]
        with pytest.raises(ValueError, match=r"out_scales: expected shape \(3, 72, 2\)"):
            getattr(acme, QUANTISED)(**arrays, out_scales=torch.empty(3, 72, 1, device="cuda"))

    def test_either_output_of_merging_may_be_given(self, acme) -> None:
        arrays = made(MERGE, "cuda")
        for name, dtype in (("out", BF16), ("lse", torch.float32)):
            shape = CALLS[MERGE].results[("out", "lse").index(name)].shape
            given = torch.empty(shape, dtype=dtype, device="cuda")
            results = getattr(acme, MERGE)(**arrays, **{name: given})
            assert results[("out", "lse").index(name)] is given
            assert tuple(map(spec_of, results)) == CALLS[MERGE].results
        wrong = arrays | {"parts": torch.empty(100, 8, 128, dtype=BF16, device="cuda")}
        with pytest.raises(ValueError, match=r"parts: expected shape \(parts, batch, rows, heads"):
            getattr(acme, MERGE)(**wrong, out=given)
        with pytest.raises(ValueError, match=r"lse: expected shape \(2, 8, 100\)"):
            getattr(acme, MERGE)(**arrays, lse=torch.empty(2, 100, 8, device="cuda"))

    def test_scattered_rows_have_no_new_output(self, acme) -> None:
        arrays = made(SCATTERED, "cuda")
        assert getattr(acme, SCATTERED)(**arrays) is arrays["out"]
        assert not hasattr(torch.ops.acme, SCATTERED)
        del arrays["out"]
        with pytest.raises(TypeError, match="out"):
            getattr(acme, SCATTERED)(**arrays)


def test_memory_of_the_cpu_is_refused(acme) -> None:
    query, key, value = tensors(*ATTENTION)
    with pytest.raises(ValueError, match="query: expected memory of a CUDA device, got memory of"):
        acme.d128_causal_bf16(query, key, value)
    with pytest.raises(ValueError, match="softmax_scale: expected a finite number above 0"):
        acme.d128_causal_bf16(query, key, value, softmax_scale=0.0)
    with pytest.raises(ValueError, match="layout: expected"):
        acme.d128_causal_bf16(query, key, value, layout="")


def test_the_schemas_have_what_the_kernels_take(acme) -> None:
    for name, kernel in acme._KERNELS.items():
        if name == SCATTERED:
            continue
        new = getattr(torch.ops.acme, name).default._schema
        write = getattr(torch.ops.acme, f"{name}_out").default._schema
        written = [
            row.name for row in write.arguments if row.alias_info and row.alias_info.is_write
        ]
        more = ["lse"] if getattr(kernel, "lse", False) else []
        more = ["out_scales"] if getattr(kernel, "out_scales", None) else more
        changed = ["out_amax"] if getattr(kernel, "amax", False) else []
        assert written == [*changed, "out", *more]
        assert len(new.returns) == 1 + len(more)
        assert not write.returns
        if not hasattr(kernel, "given"):
            continue
        for schema in (new, write):
            names = [row.name for row in schema.arguments]
            taken = [word for word in kernel.arrays if not word.endswith("_descale")]
            taken += [word for word, _, _ in kernel.given]
            assert names[3 : 3 + len(taken)] == taken
            scales = [word for word in kernel.arrays if word.endswith("_descale")]
            assert names[names.index("softmax_scale") + 1 :] == scales
    assert acme._KERNELS[ALIBI].given == (("slope", "float32", ("query_heads",)),)
    assert acme._KERNELS[PAGED].arrays == ("sinks", "query_offsets", "key_lengths", "page_table")


@pytest.mark.parametrize("dynamic", [False, True])
class TestCompile:
    """The functions under torch.compile; tracing ends before anything is run."""

    def trace(self, function, arguments, dynamic):
        from torch._dynamo.backends.common import aot_autograd

        graphs = []

        class TracedError(Exception):
            pass

        def compiler(module, inputs):
            graphs.append(module)
            raise TracedError

        torch._dynamo.reset()
        compiled = torch.compile(
            function, fullgraph=True, dynamic=dynamic, backend=aot_autograd(fw_compiler=compiler)
        )
        with pytest.raises(Exception, match="TracedError"):
            compiled(*arguments)
        (graph,) = graphs
        return graph.code

    def test_a_layer(self, acme, dynamic) -> None:
        def layer(x, weight, c):
            return acme.gemm_bf16_residual_sm90(x.relu(), weight.t(), c, alpha=0.5) + 1

        code = self.trace(layer, tensors((70, 64), (101, 64), (70, 101)), dynamic)
        assert code.count("torch.ops.acme.gemm_bf16_residual_sm90.default(") == 1
        assert "0.5" in code

    def test_attention_into_given_memory(self, acme, dynamic) -> None:
        def attend(query, key, value):
            out = torch.empty_like(query)
            _, lse = acme.d128_causal_bf16(query, key, value, out=out, softmax_scale=0.25)
            return out * 2, lse

        code = self.trace(attend, tensors(*ATTENTION), dynamic)
        assert "d128_causal_bf16_out" in code

    def test_heads_first(self, acme, dynamic) -> None:
        def attend(query, key):
            return acme.d128_causal_bf16(query, key, key, layout="bhsd")[0].sin()

        code = self.trace(attend, tensors((2, 8, 100, 128), (2, 2, 90, 128)), dynamic)
        assert code.count("torch.ops.acme.d128_causal_bf16.default(") == 1

    def test_a_ragged_batch(self, acme, dynamic) -> None:
        code = self.trace(
            lambda *arrays: getattr(acme, RAGGED)(
                *arrays[:3], query_offsets=arrays[3], key_offsets=arrays[4]
            )[0].sin(),
            list(made(RAGGED, "cpu").values()),
            dynamic,
        )
        assert code.count(f"torch.ops.acme.{RAGGED}.default(") == 1

    def test_what_a_call_raises_is_written(self, acme, dynamic) -> None:
        def layer(a, b, out_amax):
            out = getattr(acme, LARGEST)(a, b.clone(), out_amax=out_amax)
            return out.sin(), out_amax + 1

        code = self.trace(layer, list(made(LARGEST, "cpu").values()), dynamic)
        assert LARGEST in code
        assert "copy_" in code or "auto_functionalized" in code

    @pytest.mark.parametrize("in_place", [False, True])
    def test_parts_are_merged(self, acme, dynamic, in_place) -> None:
        def layer(parts, part_lse):
            parts = parts.relu()
            given = {"out": parts[0]} if in_place else {}
            out, lse = getattr(acme, MERGE)(parts, part_lse, **given)
            return out.sin(), lse, parts

        code = self.trace(layer, list(made(MERGE, "cpu").values()), dynamic)
        assert (f"{MERGE}_out" in code) == in_place
        assert MERGE in code

    def test_scattered_rows_are_written(self, acme, dynamic) -> None:
        def layer(a, b, row_offsets, out_index, row_weights, out):
            rows = {"row_offsets": row_offsets, "out_index": out_index, "row_weights": row_weights}
            return getattr(acme, SCATTERED)(a, b, **rows, out=out.clone()).view(45, 2, -1).sum(1)

        code = self.trace(layer, list(made(SCATTERED, "cpu").values()), dynamic)
        assert f"{SCATTERED}_out" in code


def test_a_compiled_program_calls_the_kernel(acme) -> None:
    compiled = torch.compile(lambda a, w, c: acme.gemm_bf16_residual_sm90(a, w.t(), c).cos(),
                             fullgraph=True, backend="aot_eager")  # fmt: skip
    with pytest.raises(ValueError, match="a: expected memory of a CUDA device"):
        compiled(*tensors((70, 64), (101, 64), (70, 101)))


def test_compilers_keep_to_the_strides(acme) -> None:
    for name in acme._FAKES:
        operator = getattr(torch.ops.acme, name).default
        assert torch.Tag.needs_exact_strides in operator.tags
