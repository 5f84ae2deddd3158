"""The functions of TVM-FFI on a GPU, on torch tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

import fa4gen
from tests.vendor.adapters.gpu_folder import CAUSAL, RESIDUAL, build_cpp

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def vend(torch, gpu_folder):
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    root = Path(tvm_ffi.__file__).parent
    options = ["-isystem", str(root / "include"), f"-L{root / 'lib'}", "-ltvm_ffi"]
    library = build_cpp(gpu_folder, "tvm_ffi/vend_tvm_ffi.cc", "tvm_ffi", options)
    return tvm_ffi.load_module(str(library))


def random(torch, *shape):
    return torch.randn(shape, device="cuda").bfloat16()


def test_attention(torch, vend) -> None:
    query, key = random(torch, 2, 1000, 8, 128), random(torch, 2, 1200, 2, 128)
    expected, expected_lse = fa4gen.load(CAUSAL)(query, key, key, softmax_scale=0.2)
    out, lse = torch.zeros_like(expected), torch.zeros_like(expected_lse)
    for _ in range(20):
        vend.d128_causal_bf16(query, key, key, out, lse, 0.2)
        assert torch.equal(out, expected)
        assert torch.equal(lse, expected_lse)
    with pytest.raises(ValueError, match="value: expected shape"):
        vend.d128_causal_bf16(query, key, key[:, :7], out, lse, None)


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
