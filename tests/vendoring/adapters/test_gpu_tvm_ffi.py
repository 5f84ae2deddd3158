"""The functions of TVM-FFI on a GPU, on torch tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

import fa4gen
from tests.vendoring.adapters.gpu_folder import (
    ALIBI,
    CAUSAL,
    DECODE,
    PAGED,
    RAGGED,
    RESIDUAL,
    build_cpp,
)

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


def integers(torch, *numbers):
    return torch.tensor(numbers, dtype=torch.int32, device="cuda")


def same_as_loaded(torch, vend, name, inputs, arrays) -> None:
    """The kernel of the folder against fa4gen.load's; ``arrays`` in the order of the C struct."""
    expected = fa4gen.load(name)(*inputs, **arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for _ in range(10):
        outputs = [torch.full_like(one, float("nan")) for one in expected]
        getattr(vend, name)(*inputs, *outputs, *arrays.values(), None)
        for got, wanted in zip(outputs, expected, strict=True):
            assert torch.equal(got.view(torch.uint8), wanted.view(torch.uint8))


def test_a_ragged_batch(torch, vend) -> None:
    inputs = (random(torch, 700, 8, 128), *(random(torch, 900, 2, 128) for _ in range(2)))
    offsets = integers(torch, 0, 1, 301, 301, 700), integers(torch, 0, 5, 400, 600, 900)
    arrays = dict(zip(("query_offsets", "key_offsets"), offsets, strict=True))
    same_as_loaded(torch, vend, RAGGED, inputs, arrays)
    with pytest.raises(ValueError, match="key_offsets: expected"):
        vend.d128_ragged_causal_bf16(
            *inputs, *(torch.empty_like(x) for x in fa4gen.load(RAGGED)(*inputs, **arrays)),
            offsets[0], offsets[1][:3], None,
        )  # fmt: skip


def test_pages_with_sinks(torch, vend) -> None:
    inputs = (random(torch, 30, 8, 64), *(random(torch, 11, 64, 2, 64) for _ in range(2)))
    arrays = {
        "sinks": torch.randn(8, device="cuda"),
        "query_offsets": integers(torch, 0, 10, 11, 30),
        "key_lengths": integers(torch, 300, 64, 100),
        "page_table": torch.arange(15, dtype=torch.int32, device="cuda").reshape(3, 5) % 11,
    }
    same_as_loaded(torch, vend, PAGED, inputs, arrays)


def test_a_step_of_decoding(torch, vend) -> None:
    inputs = (random(torch, 3, 1, 16, 128), *(random(torch, 3, 4900, 2, 128) for _ in range(2)))
    same_as_loaded(torch, vend, DECODE, inputs, {})


def test_a_tensor_that_the_score_reads(torch, vend) -> None:
    inputs = (random(torch, 2, 300, 8, 128), *(random(torch, 2, 290, 2, 128) for _ in range(2)))
    same_as_loaded(torch, vend, ALIBI, inputs, {"slope": torch.rand(8, device="cuda")})
