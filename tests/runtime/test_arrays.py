"""Arrays of any library are viewed without a copy; anything but a GPU array is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fa4gen.errors import ArgumentError, MissingCapabilityError
from fa4gen.runtime.arrays import is_torch, view
from fa4gen.runtime.device import device_count

without_gpu = pytest.mark.skipif(device_count() > 0, reason="there is a GPU here")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_an_array_of_the_cpu_is_seen_as_such(dtype):
    array = np.zeros((2, 3, 4, 64), dtype)
    seen, kept = view("query", array)
    assert seen.device == -1
    assert seen.shape == (2, 3, 4, 64)
    assert seen.dtype == np.dtype(dtype).name
    assert kept is array


def test_bfloat16_of_the_cpu_is_seen_as_such():
    seen, _ = view("query", np.zeros((1, 1, 1, 64), ml_dtypes.bfloat16))
    assert (seen.device, seen.dtype) == (-1, "bfloat16")


@pytest.mark.parametrize("thing", [[1.0], None, 3, "query", object()])
def test_what_is_no_array_is_refused(thing):
    with pytest.raises(ArgumentError, match=r"^key: expected an array on the GPU .*, got "):
        view("key", thing)


class OnSomeGpu:
    """Exposes memory of a GPU in one of two ways."""

    def __init__(self, *, dlpack: bool) -> None:
        if dlpack:
            self.__dlpack__ = lambda **_: None
        else:
            self.__cuda_array_interface__ = {}


@without_gpu
@pytest.mark.parametrize("dlpack", [True, False])
def test_gpu_arrays_without_a_gpu_are_a_missing_capability(dlpack):
    with pytest.raises(MissingCapabilityError, match="no GPU to run on"):
        view("query", OnSomeGpu(dlpack=dlpack))


def test_only_torch_tensors_are_torch():
    assert not is_torch(np.zeros(3))
    assert not is_torch(None)


class TestTorch:
    """Tensors on the CPU show how torch's are viewed."""

    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch", reason="torch is not installed")

    def test_strides_come_in_bytes(self, torch):
        tensor = torch.zeros(2, 3, 4, 64, dtype=torch.bfloat16).transpose(1, 2)
        seen, kept = view("query", tensor)
        assert seen.pointer == tensor.data_ptr()
        assert seen.shape == (2, 4, 3, 64)
        assert seen.strides == (3 * 4 * 128, 128, 4 * 128, 2)
        assert seen.dtype == "bfloat16"
        assert seen.device == -1
        assert kept is tensor
        assert is_torch(tensor)

    def test_a_gradient_would_be_lost(self, torch):
        tensor = torch.zeros(1, 1, 1, 64, requires_grad=True)
        with pytest.raises(ArgumentError, match=r"query: .*requires_grad"):
            view("query", tensor)
        with torch.no_grad():
            view("query", tensor)

    def test_sparse_tensors_are_refused(self, torch):
        with pytest.raises(ArgumentError, match="query: expected a dense tensor"):
            view("query", torch.zeros(4, 4).to_sparse())
