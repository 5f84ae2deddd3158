"""The caller's arrays: CuPy, torch, and anything with DLPack or __cuda_array_interface__.

Their memory is used in place; nothing is copied. torch is never imported here: where a torch tensor
is passed, the caller has imported it.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from fa4gen.errors import ArgumentError, MissingCapabilityError, Problem
from fa4gen.runtime.device import device_count, load_cupy, why_no_device
from fa4gen.runtime.tensor_view import TensorView

DLPACK_CPU = 1
LAST_DEFAULT_STREAM = 2
"""Handles 0 to 2 are the default streams: the legacy one, twice, and the one per thread."""


def is_torch(array: object) -> bool:
    """Whether ``array`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def view(name: str, array: Any) -> tuple[TensorView, Any]:
    """Return the view of ``array``, and an object that keeps its memory alive.

    Raises ArgumentError, naming the argument, for anything but an array.
    """
    if is_torch(array):
        return _view_torch(name, array), array
    cupy = load_cupy()
    if not isinstance(array, cupy.ndarray):
        on_cpu = _view_cpu(array)
        if on_cpu is not None:
            return on_cpu, array
        array = _import_array(name, array)
    return (
        TensorView(
            array.data.ptr,
            array.shape,
            array.strides,
            _dtype_name(array.dtype),
            array.data.device_id,
        ),
        array,
    )


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Make a contiguous array on the GPU of ``like``, a torch tensor or CuPy array as ``like`` is.

    ``dtype`` is NumPy's name: "bfloat16", "float16" or "float32"; a CuPy array for elements of 8
    bits has their patterns, uint8.
    """
    if is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    cupy = load_cupy()
    runtime = cupy.cuda.runtime
    previous = runtime.getDevice()
    device = like.data.device_id
    if previous != device:
        runtime.setDevice(device)
    try:
        return cupy.empty(shape, dtype=_numpy_dtype(dtype))
    finally:
        if previous != device:
            runtime.setDevice(previous)


def current_stream(query: Any, device: int) -> int:
    """Return the handle of the stream that a call with this query runs on.

    CuPy's current stream of the query's GPU. Where that is a default stream and the query is a
    torch tensor, torch's current stream: the caller chose no other for CuPy, and torch's allocator
    orders memory by torch's stream.
    """
    stream = int(load_cupy().cuda.get_current_stream(device).ptr)
    if stream <= LAST_DEFAULT_STREAM and is_torch(query):
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
    return stream


def _view_torch(name: str, tensor: Any) -> TensorView:
    torch = sys.modules["torch"]
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArgumentError(
            Problem(
                f"{name}: expected a tensor without gradient, got one with requires_grad: this "
                "kernel has no backward pass, the gradient would be lost",
                remedy=f"call under torch.no_grad(), or pass {name}.detach()",
                key=name,
            )
        )
    if tensor.layout != torch.strided:
        raise ArgumentError(
            Problem(f"{name}: expected a dense tensor, got layout {tensor.layout}", key=name)
        )
    return TensorView(
        tensor.data_ptr(),
        tuple(tensor.shape),
        _in_bytes(tensor.stride(), tensor.element_size()),
        _dtype_name(tensor.dtype),
        tensor.get_device(),
    )


def _view_cpu(array: Any) -> TensorView | None:
    """View an array on the CPU, so that the checks report all other problems too."""
    try:
        on_cpu = array.__dlpack_device__()[0] == DLPACK_CPU
        if not on_cpu:
            return None
        shape = tuple(int(extent) for extent in array.shape)
        return TensorView(0, shape, (0,) * len(shape), _dtype_name(array.dtype), -1)
    except (AttributeError, TypeError):
        return None


def _import_array(name: str, array: Any) -> Any:
    """Wrap the memory in a CuPy array."""
    speaks_dlpack = hasattr(array, "__dlpack__")
    if not speaks_dlpack and not hasattr(array, "__cuda_array_interface__"):
        raise ArgumentError(
            Problem(
                f"{name}: expected an array on the GPU (CuPy, torch, or with __dlpack__ or "
                f"__cuda_array_interface__), got {type(array).__name__}",
                key=name,
            )
        )
    if not device_count():
        raise MissingCapabilityError(
            Problem(
                f"no GPU to run on: {why_no_device()}",
                remedy="run this on a machine with an NVIDIA GPU and its driver",
            )
        )
    cupy = load_cupy()
    try:
        return cupy.from_dlpack(array) if speaks_dlpack else cupy.asarray(array)
    except (TypeError, ValueError, BufferError, NotImplementedError, RuntimeError) as error:
        raise ArgumentError(
            Problem(
                f"{name}: expected an array that CuPy can take in without a copy, "
                f"got {type(array).__name__}: {error}",
                key=name,
            )
        ) from error


@lru_cache(maxsize=256)
def _in_bytes(strides: tuple[int, ...], element_bytes: int) -> tuple[int, ...]:
    return tuple(stride * element_bytes for stride in strides)


@lru_cache(maxsize=8)
def _numpy_dtype(name: str) -> Any:
    import numpy as np

    if name.startswith(("float8", "float4")):
        return np.dtype(np.uint8)
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


@lru_cache(maxsize=64)
def _dtype_name(dtype: Any) -> str:
    """NumPy's name of a NumPy or torch dtype."""
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")
