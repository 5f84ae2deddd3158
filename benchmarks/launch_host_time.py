"""Times a launch on the host, and what of it is the driver's: all ways in turn in one program.

    python benchmarks/launch_host_time.py CONFIG... [--rounds 300] [--json FILE.json]

A problem of one tile, so that the stream's queue never fills. What a launch takes the GPU, prepared
with and without a graph, is measured behind a kernel that keeps it busy until all are enqueued,
also on a problem of many tiles. The floor is cuLaunchKernelEx of a
kernel that does nothing and has the same parameters, CTAs, threads and shared memory. Needs an
H100 or H200, gcc and nvcc.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cupy

from fa4gen.bench.family import family_of
from fa4gen.bench.host_time import CALLS, WARMUP, _zeros
from fa4gen.bench.vendored import VendoredLibrary
from fa4gen.config.find import find_configs
from fa4gen.config.paths import shown_path
from fa4gen.designs import registry
from fa4gen.vendoring.host_build import LIBRARY_FLAGS, compile_c, find_c_compiler
from fa4gen.verify.build import build_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.bench.vendored import PreparedCall

FEW_CALLS = 8
"""Of a problem of many tiles."""
SPIN_CYCLES = 2_000_000
"""About a millisecond, in which Python enqueues the calls of a sample."""
MAX_DYNAMIC_SHARED = 8
"""CUfunction_attribute."""
SIZES = {"TensorMap": "Map", "*": "long long", "int64": "long long", "int32": "int", "float": "int"}


def empty_source(plan: Any) -> str:
    """Return CUDA of a kernel that takes what the plan's takes, and returns."""
    rows = []
    for i, row in enumerate(plan.parameters):
        words = row.c_type.replace("*", " * ").split()
        kind = next(kind for word, kind in SIZES.items() if word in words)
        rows.append(f"const __grid_constant__ {kind} p{i}")
    cluster = plan.launch.cluster
    bounds = f"__cluster_dims__({cluster}, 1, 1) " if cluster > 1 else ""
    bounds += f"__launch_bounds__({plan.launch.threads}, 1)"
    return (
        "struct alignas(64) Map { char bytes[128]; };\n"
        f'extern "C" __global__ void {bounds} nothing({", ".join(rows)}) {{}}\n'
    )


class Driver:
    """Kernels of cubins, and the time of their launches."""

    def __init__(self, scratch: Path) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        target = scratch / "launch_host_time.so"
        flags = [*LIBRARY_FLAGS, "-D_POSIX_C_SOURCE=200809L"]
        compile_c(find_c_compiler(), flags, [Path(__file__).with_suffix(".c")], target)
        self.timer = ctypes.CDLL(str(target)).launch_seconds
        self.timer.restype = ctypes.c_double

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver, which has to succeed."""
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise SystemExit(f"{name}: {status}")

    def load(self, cubin: bytes, name: str, shared: int) -> dict[str, ctypes.c_void_p]:
        """Return the kernel's two handles."""
        library, kernel, function = (ctypes.c_void_p() for _ in range(3))
        self.call("cuLibraryLoadData", ctypes.byref(library), cubin, None, None, 0, None, None, 0)
        self.call("cuLibraryGetKernel", ctypes.byref(kernel), library, name.encode())
        self.call("cuKernelSetAttribute", MAX_DYNAMIC_SHARED, shared, kernel, 0)
        self.call("cuKernelGetFunction", ctypes.byref(function), kernel)
        return {"CUkernel": kernel, "CUfunction": function}

    def seconds(self, function: Any, plan: Any, call: Any, stream: int) -> float:
        """Return the mean time of a launch with the arguments of ``call``."""
        taken: float = self.timer(
            ctypes.cast(self.cuda.cuLaunchKernelEx, ctypes.c_void_p),
            function,
            ctypes.c_uint(call.grid),
            ctypes.c_uint(plan.launch.threads),
            ctypes.c_uint(plan.launch.dynamic_shared_bytes),
            ctypes.c_void_p(stream),
            ctypes.c_void_p(call.parameters.address),
            ctypes.c_int(CALLS),
        )
        return taken


def grown(shape: tuple[int, ...], dtype: str) -> Any:
    """Return zeros of a problem of many tiles in the place of the extents of one tile."""
    extents = {2: lambda *_: (4096, 4096), 3: lambda *_: (4, 16, 4096)}
    return _zeros(extents.get(len(shape), lambda *of: (4, 4096, 16, of[3]))(*shape), dtype)


SPIN = cupy.RawKernel(
    'extern "C" __global__ void spin(long long cycles) {'
    "  const long long begin = clock64();"
    "  while (clock64() - begin < cycles) {}"
    "}",
    "spin",
)


def gpu_seconds(call: PreparedCall, count: int, stream: Any) -> float:
    """Return what one of so many launches in a row takes the GPU, from end to end."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    with stream:
        SPIN((1,), (1,), (SPIN_CYCLES,))
        begin.record()
        for _ in range(count):
            call()
        end.record()
    end.synchronize()
    return 1e-3 * float(cupy.cuda.get_elapsed_time(begin, end)) / count


def samples_of(
    path: str, driver: Driver, library: VendoredLibrary, scratch: Path, keep: ExitStack
) -> Any:
    """Return the plan, and by its name each way to launch its kernel."""
    built = build_kernel(path)
    plan, compiled = built.plan, built.compiled
    if plan is None or compiled is None:
        raise SystemExit(f"{path}: {built.problems}")
    tensors = family_of(plan).small_tensors(plan, _zeros)
    kernel = registry.family_of(plan).launcher.load()(plan, compiled.cubin)
    launch = kernel.prepare(**tensors)
    call, vendored = launch.driver_call(), library.prepare(plan, tensors)
    source, cubin = scratch / "nothing.cu", scratch / "nothing.cubin"
    source.write_text(empty_source(plan))
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    subprocess.run([nvcc, f"-arch={plan.arch}", "-cubin", "-o", cubin, source], check=True)
    shared = plan.launch.dynamic_shared_bytes
    stream = cupy.cuda.Stream(non_blocking=True)
    ways: dict[str, Callable[[], float]] = {}
    handles = {
        "a kernel that does nothing": driver.load(cubin.read_bytes(), "nothing", shared),
        "our kernel": driver.load(compiled.cubin, plan.entry_point, shared),
    }
    for what, both in handles.items():
        for kind, handle in both.items():
            ways[f"{what}, cuLaunchKernelEx, {kind}"] = lambda handle=handle: driver.seconds(
                handle, plan, call, stream.ptr
            )
    graph = keep.enter_context(vendored.by_graph())
    for what, of, prepared in (
        ("prepared, graph", graph, True),
        ("prepared", vendored, True),
        ("unprepared", vendored, False),
    ):
        ways[f"our kernel, C launcher, {what}"] = lambda of=of, prepared=prepared: (
            library.host_seconds(of, prepared=prepared, stream=stream.ptr, count=CALLS)
        )
    large = library.prepare(plan, family_of(plan).small_tensors(plan, grown))
    large_graph = keep.enter_context(large.by_graph())
    for what, of, count in (
        ("one tile, prepared, graph", graph, CALLS),
        ("one tile, prepared", vendored, CALLS),
        ("many tiles, prepared, graph", large_graph, FEW_CALLS),
        ("many tiles, prepared", large, FEW_CALLS),
    ):
        ways[f"GPU time, {what}"] = lambda of=of, count=count: gpu_seconds(of, count, stream)
    keep.callback(lambda: (launch, stream))
    return plan, ways


def main() -> None:
    """Time what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("configs", nargs="+")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        paths = [str(path) for path in find_configs(tuple(options.configs))]
        driver = Driver(scratch)
        (scratch / "vendored").mkdir()
        library = VendoredLibrary(paths, scratch / "vendored")
        for path in paths:
            keep = ExitStack()
            plan, ways = samples_of(path, driver, library, scratch, keep)
            taken: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(WARMUP + options.rounds):
                for name, sample in ways.items():
                    seconds = sample()
                    driver.call("cuCtxSynchronize")
                    if seconds < 0:
                        raise SystemExit(f"{name}: a launch failed")
                    taken[name].append(1e6 * seconds)
            print(plan.name)
            for name, values in taken.items():
                median = statistics.median(values[WARMUP:])
                print(f"  {name:50s} {median:.3f} us", flush=True)
                results.append(
                    {"config": shown_path(Path(path)), "way": name, "us": round(median, 3)}
                )
            keep.close()
            if options.json:  # of what was measured so far
                device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
                facts = {"device": device, "rounds": options.rounds, "calls": CALLS}
                text = json.dumps({**facts, "results": results}, indent=1)
                options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
