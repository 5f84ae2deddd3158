"""The host's time for one launch: by ``fa4gen.load``, and by the vendored C launcher.

The problem is so small, and a sample so short, that the stream's queue never fills; calls of the C
launcher are looped in C.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from fa4gen.bench.family import family_of
from fa4gen.bench.gpu_arrays import zeros
from fa4gen.bench.results import HostTimes
from fa4gen.designs import registry
from fa4gen.runtime.device import load_cupy, require_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.bench.vendored import PreparedCall, VendoredLibrary
    from fa4gen.designs.common.plans import Plan
    from fa4gen.runtime.kernel import Launch
    from fa4gen.toolchain.model import CompiledKernel

CALLS = 64
"""In one sample: far fewer than a stream's queue takes."""
SAMPLES = 200
WARMUP = 20


def host_times(plan: Plan, compiled: CompiledKernel, library: VendoredLibrary) -> HostTimes:
    """Measure on the GPU of ``plan``, with a problem of a single tile."""
    cupy = load_cupy()
    cupy.cuda.Device(require_device(plan.arch).ordinal).use()
    tensors = family_of(plan).small_tensors(plan, zeros)
    kernel = registry.family_of(plan).launcher.load()(plan, compiled.cubin)
    prepared: Launch = kernel.prepare(**tensors)
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

    def in_c(made: PreparedCall, *, is_prepared: bool) -> Callable[[], float]:
        return lambda: library.host_seconds(made, prepared=is_prepared, stream=handle, count=CALLS)

    with call.by_graph() as graph:
        by_graph = median(in_c(graph, is_prepared=True))
    return HostTimes(
        python=median(_in_python(lambda: kernel(**tensors))),
        python_prepared=median(_in_python(prepared)),
        vendored=median(in_c(call, is_prepared=False)),
        vendored_prepared=median(in_c(call, is_prepared=True)),
        vendored_graph=by_graph,
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
