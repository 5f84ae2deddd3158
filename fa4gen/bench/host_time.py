"""How long one launch occupies the host: by ``fa4gen.load``, and by the vendored C launcher.

The problem is so small, and a sample so short, that the stream's queue never fills; calls of the C
launcher are looped in C.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from fa4gen.bench.results import HostTimes
from fa4gen.designs.shared.gemm_model import GemmPlan
from fa4gen.runtime.arguments import BITS_ACCEPTED
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.verify.rounding import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.bench.vendored import VendoredLibrary
    from fa4gen.designs.shared.plans import Plan
    from fa4gen.runtime.kernel import Launch
    from fa4gen.toolchain.model import CompiledKernel

CALLS = 64
"""In one sample: far fewer than a stream's queue takes."""
SAMPLES = 200
WARMUP = 20
ROWS = 64


def host_times(plan: Plan, compiled: CompiledKernel, library: VendoredLibrary) -> HostTimes:
    """Measure on the GPU of ``plan``, with a problem of a single tile."""
    cupy = load_cupy()
    cupy.cuda.Device(require_device(plan.arch).ordinal).use()
    if isinstance(plan, GemmPlan):
        tensors = _small_gemm(plan)
        launch, prepared = _gemm_calls(plan, compiled, tensors)
    else:
        tensors = _small_attention(plan)
        launch, prepared = _attention_calls(plan, compiled, tensors)
    call = library.prepare(plan, tensors)
    driver_call = prepared.driver_call()
    stream = cupy.cuda.get_current_stream()
    handle = int(stream.ptr)

    def median(sample: Callable[[], float]) -> float:
        taken = []
        for _ in range(WARMUP + SAMPLES):
            taken.append(sample())
            stream.synchronize()
        return 1e6 * statistics.median(taken[WARMUP:])

    def in_c(*, is_prepared: bool) -> Callable[[], float]:
        return lambda: library.host_seconds(call, prepared=is_prepared, stream=handle, count=CALLS)

    return HostTimes(
        python=median(_in_python(launch)),
        python_prepared=median(_in_python(prepared)),
        vendored=median(in_c(is_prepared=False)),
        vendored_prepared=median(in_c(is_prepared=True)),
        driver=median(
            lambda: library.driver_seconds(plan, driver_call, stream=handle, count=CALLS)
        ),
    )


def _in_python(function: Callable[[], Any]) -> Callable[[], float]:
    def sample() -> float:
        begin = time.perf_counter()
        for _ in range(CALLS):
            function()
        return (time.perf_counter() - begin) / CALLS

    return sample


def _zeros(shape: tuple[int, ...], dtype: str) -> Any:
    return load_cupy().zeros(shape, BITS_ACCEPTED.get(dtype) or numpy_dtype(dtype))


def _small_attention(plan: Any) -> dict[str, Any]:
    return {
        "query": _zeros((1, ROWS, 1, plan.depth), plan.dtype),
        "key": _zeros((1, ROWS, 1, plan.depth), plan.dtype),
        "value": _zeros((1, ROWS, 1, plan.value_depth), plan.dtype),
        "out": _zeros((1, ROWS, 1, plan.value_depth), plan.out_dtype),
        "lse": _zeros((1, 1, ROWS), "fp32") if plan.lse else None,
    }


def _attention_calls(
    plan: Any, compiled: CompiledKernel, tensors: dict[str, Any]
) -> tuple[Callable[[], Any], Launch]:
    from fa4gen.runtime.attention import AttentionKernel

    kernel = AttentionKernel(plan, compiled.cubin)
    return lambda: kernel(**tensors), kernel.prepare(**tensors)


def _small_gemm(plan: GemmPlan) -> dict[str, Any]:
    a, b = (_zeros((ROWS, ROWS), plan.dtype) for _ in range(2))
    shapes = {"matrix": (ROWS, ROWS), "row": (ROWS,)}
    c = _zeros(shapes[plan.residual], plan.out_dtype) if plan.residual != "none" else None
    return {
        "a": a if plan.a_major == "k" else a.T,
        "b": b.T if plan.b_major == "k" else b,
        "c": c,
        "out": _zeros((ROWS, ROWS), plan.out_dtype),
    }


def _gemm_calls(
    plan: Any, compiled: CompiledKernel, tensors: dict[str, Any]
) -> tuple[Callable[[], Any], Launch]:
    from fa4gen.runtime.gemm import GemmKernel

    kernel = GemmKernel(plan, compiled.cubin)
    return lambda: kernel(**tensors), kernel.prepare(**tensors)
