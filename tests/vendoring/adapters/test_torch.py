"""The operators of PyTorch without a GPU: schemas, fake tensors, torch.compile, refusals."""

from __future__ import annotations

import pytest

from tests.vendoring.adapters.folders import import_file

torch = pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")

BF16 = torch.bfloat16
DEVICES = ("cpu", "cuda")
"""Fake tensors need no GPU."""


@pytest.fixture(scope="module")
def acme(folder):
    return import_file(folder / "adapters/torch/acme_torch.py")


@pytest.fixture
def fake_mode():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        yield mode


def tensors(*shapes, device="cpu", dtype=BF16):
    return [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]


ATTENTION = ((2, 100, 8, 128), (2, 90, 2, 128), (2, 90, 2, 128))
PRODUCT = ((3, 70, 64), (101, 64), (3, 70, 101))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.usefixtures("fake_mode")
class TestFakes:
    def test_attention_with_lse(self, acme, device) -> None:
        query, key, value = tensors(*ATTENTION, device=device)
        out, lse = acme.d128_causal_bf16(query, key, value)
        assert (out.shape, out.dtype, out.stride()) == (query.shape, BF16, query.stride())
        assert (lse.shape, lse.dtype) == ((2, 8, 100), torch.float32)
        assert out.device == lse.device == query.device

    def test_heads_first(self, acme, device) -> None:
        query, key = tensors((2, 8, 100, 128), (2, 2, 90, 128), device=device)
        out, lse = acme.d128_causal_bf16(query, key, key, layout="bhsd")
        assert (out.shape, lse.shape) == ((2, 8, 100, 128), (2, 8, 100))

    def test_attention_without_lse(self, acme, device) -> None:
        query, key = tensors((2, 100, 8, 64), (2, 90, 2, 64), device=device)
        assert acme.d64_dense_small_bf16(query, key, key).shape == query.shape

    def test_rows_of_a_new_product_are_padded(self, acme, device) -> None:
        a, weight, c = tensors(*PRODUCT, device=device)
        out = acme.gemm_bf16_residual_sm90(a, weight.t(), c)
        assert (out.shape, out.stride()) == ((3, 70, 101), (70 * 104, 104, 1))

    def test_outputs_that_are_given_are_returned(self, acme, device) -> None:
        query, key, value = tensors(*ATTENTION, device=device)
        given = torch.empty_like(query)
        out, lse = acme.d128_causal_bf16(query, key, value, out=given)
        assert out is given
        assert lse.shape == (2, 8, 100)
        a, weight, c = tensors(*PRODUCT, device=device)
        assert acme.gemm_bf16_residual_sm90(a, weight.t(), c, out=c) is c

    def test_wrong_shapes_are_refused_while_tracing(self, acme, device) -> None:
        query, key, short = tensors(*ATTENTION[:2], (2, 5, 2, 128), device=device)
        value = key
        with pytest.raises(ValueError, match="value: expected shape"):
            acme.d128_causal_bf16(query, key, short)
        with pytest.raises(ValueError, match="out: expected bfloat16, got float32"):
            acme.d128_causal_bf16(query, key, value, out=torch.empty(query.shape, device=device))


def test_memory_of_the_cpu_is_refused(acme) -> None:
    query, key, value = tensors(*ATTENTION)
    with pytest.raises(ValueError, match="query: expected memory of a CUDA device, got memory of"):
        acme.d128_causal_bf16(query, key, value)
    with pytest.raises(ValueError, match="softmax_scale: expected a finite number above 0"):
        acme.d128_causal_bf16(query, key, value, softmax_scale=0.0)
    with pytest.raises(ValueError, match="layout: expected"):
        acme.d128_causal_bf16(query, key, value, layout="")


def test_every_kernel_has_its_operators(acme) -> None:
    for name, kernel in acme._KERNELS.items():
        new = getattr(torch.ops.acme, name).default._schema
        write = getattr(torch.ops.acme, f"{name}_out").default._schema
        written = [
            row.name for row in write.arguments if row.alias_info and row.alias_info.is_write
        ]
        has_lse = getattr(kernel, "lse", False)
        assert written == (["out", "lse"] if has_lse else ["out"])
        assert len(new.returns) == 1 + has_lse
        assert not write.returns


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


def test_a_compiled_program_calls_the_kernel(acme) -> None:
    compiled = torch.compile(lambda a, w, c: acme.gemm_bf16_residual_sm90(a, w.t(), c).cos(),
                             fullgraph=True, backend="aot_eager")  # fmt: skip
    with pytest.raises(ValueError, match="a: expected memory of a CUDA device"):
        compiled(*tensors((70, 64), (101, 64), (70, 101)))


def test_compilers_keep_to_the_strides(acme) -> None:
    for name in acme._FAKES:
        operator = getattr(torch.ops.acme, name).default
        assert torch.Tag.needs_exact_strides in operator.tags
