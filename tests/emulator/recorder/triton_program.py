"""A host program that drives Triton's own launcher: its C code, descriptors, machine code.

Nothing of Triton is replaced but where its driver class asks PyTorch for the device at hand.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.nvidia import driver
from triton.tools.tensor_descriptor import TensorDescriptor

cuda = ctypes.CDLL("libcuda.so.1")


def check(result: int) -> None:
    assert result == 0, result


class Driver(driver.CudaDriver):
    def __init__(self) -> None:
        self.utils = driver.CudaUtils()
        self.launcher_cls = driver.CudaLauncher
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None
        self.get_current_stream = lambda device=0: 0
        self.get_device_capability = lambda device=0: (9, 0)


class Tensor:
    """An array on the device, as much of one as Triton asks for."""

    def __init__(self, values: np.ndarray[Any, Any], dtype: Any) -> None:
        self.host, self.dtype, self.shape = values, dtype, values.shape
        address = ctypes.c_uint64()
        size = ctypes.c_size_t(values.nbytes)
        check(cuda.cuMemAlloc_v2(ctypes.byref(address), size))
        check(cuda.cuMemcpyHtoD_v2(address, values.ctypes.data_as(ctypes.c_void_p), size))
        self.address = address.value

    def data_ptr(self) -> int:
        return self.address

    def get(self) -> np.ndarray[Any, Any]:
        out = np.empty_like(self.host)
        size = ctypes.c_size_t(out.nbytes)
        to, of = out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(self.address)
        check(cuda.cuMemcpyDtoH_v2(to, of, size))
        return out

    def blocks(self, *shape: int) -> TensorDescriptor:
        return TensorDescriptor(self, list(self.shape), [self.shape[1], 1], list(shape))


@triton.jit
def add(x, y, out, n, B: tl.constexpr):  # noqa: N803
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # noqa: N803
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
    c.store([row, column], total.to(tl.float16))


def main() -> None:
    context = ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    triton.runtime.driver.set_active(Driver())
    random = np.random.default_rng(0)
    x, y = (random.normal(size=300).astype(np.float32) for _ in range(2))
    out = Tensor(np.zeros_like(x), tl.float32)
    add[(3,)](Tensor(x, tl.float32), Tensor(y, tl.float32), out, 300, B=128)
    np.testing.assert_array_equal(out.get(), x + y)
    a, b = (random.normal(size=(128, 128)).astype(np.float16) for _ in range(2))
    product = Tensor(np.zeros((128, 128), np.float16), tl.float16)
    matmul[(2, 1)](
        Tensor(a, tl.float16).blocks(64, 64), Tensor(b, tl.float16).blocks(128, 64),
        product.blocks(64, 128), 128, BM=64, BN=128, BK=64,
    )  # fmt: skip
    right = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(product.get().astype(np.float64), right, atol=0.03)


if __name__ == "__main__":
    main()
