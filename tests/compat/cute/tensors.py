"""Host tensors that pretend to be on a GPU: their addresses are the arrays' on the host."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
import tvm_ffi
from torch.overrides import TorchFunctionMode

_CUDA = 2  # kDLCUDA
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class DeviceTensor(torch.Tensor):
    """A CPU tensor whose device reads ``cuda:0``, also through DLPack."""

    @property
    def is_cuda(self) -> bool:
        return True

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 0)

    @property
    def __dlpack_c_exchange_api__(self) -> Any:
        raise AttributeError("the faster way would name the CPU")

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, 0

    def __dlpack__(self, **options: Any) -> Any:
        capsule = torch.Tensor.__dlpack__(self.as_subclass(torch.Tensor))
        at = _pointer(capsule, b"dltensor")
        # DLTensor: the data's address, then the device's type and number
        ctypes.cast(at + 8, ctypes.POINTER(ctypes.c_int32))[0] = _CUDA
        return capsule

    def __tvm_ffi_object__(self) -> Any:
        return tvm_ffi.from_dlpack(self.__dlpack__())


def on_device(tensor: torch.Tensor) -> DeviceTensor:
    return tensor.as_subclass(DeviceTensor)


class Allocations(TorchFunctionMode):
    """Tensors that host code creates on the GPU, which are as those of on_device, full of NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[torch.Tensor] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func not in (torch.empty, torch.zeros) or str(kwargs.get("device")) != "cuda:0":
            return func(*args, **kwargs)
        made = func(*args, **kwargs | {"device": "cpu"})
        if func is torch.empty and made.is_floating_point():
            made.fill_(torch.nan)
        self.made.append(made)
        return on_device(made)
