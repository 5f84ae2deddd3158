"""The adapter for Python on a GPU: the outputs of fa4gen.load to the bit."""

from __future__ import annotations

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import fa4gen
from tests.vendoring.adapters.gpu_folder import CAUSAL, RESIDUAL, bits, import_once, same

pytestmark = pytest.mark.gpu

BF16 = ml_dtypes.bfloat16
FIRST_LAUNCH = """
import sys
sys.path.insert(0, sys.argv[1])
import cupy
import ml_dtypes
import numpy as np
import vend

bf16 = ml_dtypes.bfloat16
rng = np.random.default_rng(0)
query = cupy.asarray(rng.standard_normal((1, 300, 2, 128)).astype(bf16))
out = cupy.zeros((1, 300, 2, 128), bf16)
lse = cupy.zeros((1, 2, 300), cupy.float32)
cupy.cuda.Device().synchronize()
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture()
    vend.d128_causal_bf16(query, query, query, out=out, lse=lse)
    graph = stream.end_capture()
assert not out.get().view(np.uint16).any()
graph.launch(stream)
stream.synchronize()
first = out.get().view(np.uint16)
assert first.any()
vend.d128_causal_bf16(query, query, query, out=out, lse=lse)
np.testing.assert_array_equal(out.get().view(np.uint16), first)
"""


@pytest.fixture(scope="module")
def vend(gpu_folder):
    return import_once(gpu_folder / "adapters/python/vend.py")


def random(*shape, seed=0, dtype=BF16):
    import cupy

    return cupy.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def attention_inputs(rows=1000, keys=1200, depth=128):
    return (
        random(2, rows, 8, depth),
        random(2, keys, 2, depth, seed=1),
        random(2, keys, 2, depth, seed=2),
    )


def test_heads_first_with_the_default_scale(vend) -> None:
    inputs = tuple(array.swapaxes(1, 2) for array in attention_inputs())
    options = {"layout": "bhsd"}
    same(vend.d128_causal_bf16(*inputs, **options), fa4gen.load(CAUSAL)(*inputs, **options))


def test_the_current_stream_of_cupy(vend) -> None:
    import cupy

    inputs = attention_inputs()
    expected = vend.d128_causal_bf16(*inputs)
    out, lse = (cupy.zeros_like(array) for array in expected)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        vend.d128_causal_bf16(*inputs, out=out, lse=lse)
        graph = stream.end_capture()
    assert not bits(out).any()
    for _ in range(1000):
        graph.launch(stream)
    stream.synchronize()
    same((out, lse), expected)


def test_the_first_launch_may_be_captured(gpu_folder) -> None:
    """In a process of its own, in which no kernel was loaded before."""
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_LAUNCH, str(gpu_folder / "adapters/python")],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert ran.returncode == 0, ran.stderr


class Dlpack:
    """An array that has nothing but __dlpack__."""

    def __init__(self, array) -> None:
        self.array = array

    def __dlpack__(self, **keys):
        return self.array.__dlpack__(**keys)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Interface:
    """An array that has nothing but __cuda_array_interface__."""

    def __init__(self, array) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_the_array_interface(vend) -> None:
    a, weight, c = random(300, 200), random(264, 200, seed=1), random(300, 264, seed=2)
    expected = vend.gemm_bf16_residual_sm90(a, weight.T, c)
    out = random(300, 264)
    arrays = [Interface(array) for array in (a, weight.T, c, out)]
    assert vend.gemm_bf16_residual_sm90(*arrays[:3], out=arrays[3]) is arrays[3]
    same([out], [expected])
    same([vend.gemm_bf16_residual_sm90(*arrays[:3])], [expected])


@pytest.mark.filterwarnings("default")
def test_torch_tensors(vend) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    shapes = ((300, 200), (264, 200), (300, 264))
    a, weight, c = (torch.randn(shape, device="cuda").bfloat16() for shape in shapes)
    got = vend.gemm_bf16_residual_sm90(a, weight.t(), c)
    expected = fa4gen.load(RESIDUAL)(a, weight.t(), c)
    assert isinstance(got, torch.Tensor)
    assert torch.equal(got, expected)
    out = torch.zeros_like(got)
    torch.cuda.synchronize()
    vend.gemm_bf16_residual_sm90(Dlpack(a), Dlpack(weight.t()), Dlpack(c), out=Dlpack(out))
    torch.cuda.synchronize()
    assert torch.equal(out, got)
    with pytest.raises(ValueError, match="a: requires_grad is set"):
        vend.gemm_bf16_residual_sm90(a.requires_grad_(), weight.t(), c)


def test_wrong_arguments_launch_nothing(vend) -> None:
    a, weight, rows = random(300, 200), random(264, 200, seed=1), random(301, 264, seed=2)
    c = rows[:300]
    out = c.copy()
    with pytest.raises(ValueError, match=r"^out: expected memory"):
        vend.gemm_bf16_residual_sm90(a, weight.T, c, out=rows[1:])
    with pytest.raises(ValueError, match=r"^a: expected"):
        vend.gemm_bf16_residual_sm90(random(300, 201)[:, :200], weight.T, c, out=out)
    same([out], [c])
