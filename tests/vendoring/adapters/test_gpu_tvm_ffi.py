"""The functions of TVM-FFI on a GPU, on torch tensors: their stream, and what they refuse."""

from __future__ import annotations

import pytest

import fa4gen
from tests.vendoring.adapters.gpu_folder import RESIDUAL, load_tvm_ffi, torch_with_cuda

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def torch():
    return torch_with_cuda()


@pytest.fixture(scope="module")
def vend(torch, gpu_folder):
    return load_tvm_ffi(gpu_folder)


def random(torch, *shape):
    return torch.randn(shape, device="cuda").bfloat16()


def test_a_product_on_the_current_stream(torch, vend) -> None:
    a, weight, c = random(torch, 300, 200), random(torch, 264, 200), random(torch, 300, 264)
    expected = fa4gen.load(RESIDUAL)(a, weight.t(), c, alpha=0.5)
    out = torch.zeros_like(c)
    stream = torch.cuda.Stream()
    vend.gemm_bf16_residual_sm90(a, weight.t(), c, out, 0.5, 1.0)  # loading may wait for the GPU
    torch.cuda.synchronize()
    out.zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        vend.gemm_bf16_residual_sm90(a, weight.t(), c, out, 0.5, 1.0)
        assert not stream.query()
    stream.synchronize()
    assert torch.equal(out, expected)


def test_what_is_refused_is_a_value_error(torch, vend) -> None:
    query, lse = random(torch, 2, 100, 8, 128), torch.zeros(2, 8, 100, device="cuda")
    out = torch.zeros_like(query)
    with pytest.raises(ValueError, match="value: expected shape"):
        vend.d128_causal_bf16(query, query, query[:, :7], out, lse, None)
    packed, offsets = query[0], torch.zeros(3, dtype=torch.int32, device="cuda")
    with pytest.raises(ValueError, match="key_offsets: expected"):
        vend.d128_ragged_causal_bf16(
            packed, packed, packed, out[0], lse[0], offsets, offsets[:2], None
        )
