"""The compilers of this machine, and small kernels, most of them with one defect each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain.compile import find_compiler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.toolchain.model import Compiler

_WGMMA = """\
__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_and_wait() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
__device__ __forceinline__ void multiply(float (&d)[4], unsigned long long a) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
               "{%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a) : "memory");
}
extern "C" __global__ __launch_bounds__(128) void wgmma_kernel(float* out, unsigned long long a) {
  float d[4] = {@FIRST@, 0, 0, 0};
  fence();
  multiply(d, a);
@TOUCH@
  multiply(d, a + 2);
  commit_and_wait();
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}
"""

SOURCES: Mapping[str, str] = {
    "clean": _WGMMA.replace("@TOUCH@\n", "").replace("@FIRST@", "0"),
    # An accumulator is used before wgmma is waited for: line 15.
    "serialized": _WGMMA.replace("@TOUCH@", "  d[0] += 1.f;").replace("@FIRST@", "0"),
    # ptxas has to add the fence after the load of an accumulator.
    "unfenced": _WGMMA.replace("@TOUCH@\n", "")
    .replace("@FIRST@", "out[0]")
    .replace("  fence();\n", ""),
    # No __launch_bounds__: the registers at launch are not known.
    "setmaxnreg": """\
extern "C" __global__ void setmaxnreg_kernel(float* out) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  out[threadIdx.x] = 1.f;
}
""",
    # 96 values at 32 registers; the loads are in line 4, an inlined function.
    "spill": """\
__device__ __forceinline__ void load(float (&a)[96], const float* in) {
#pragma unroll
  for (int i = 0; i < 96; ++i) {
    a[i] = in[threadIdx.x + i * 1024];
  }
}
extern "C" __global__ __launch_bounds__(1024, 2) void spill_kernel(float* out, const float* in) {
  float a[96];
  load(a, in);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) {
    out[threadIdx.x + i * 1024] = a[i] * a[(i * 7 + 3) % 96];
  }
}
""",
    # An array indexed by data cannot be in registers.
    "array": """\
extern "C" __global__ __launch_bounds__(128) void array_kernel(float* out, const int* in) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = in[i];
  for (int i = 0; i < 64; ++i) a[in[i] & 63] += i;
  out[threadIdx.x] = a[in[threadIdx.x] & 63];
}
""",
    "shared": """\
extern "C" __global__ __launch_bounds__(128) void shared_kernel(float* out) {
  __shared__ float a[300];
  a[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = a[threadIdx.x ^ 1];
}
""",
    "warning": """\
extern "C" __global__ void warning_kernel(float* out) {
  int never_used;
  out[0] = 1.f;
}
""",
    "undefined": """\
extern "C" __global__ void undefined_kernel(float* out) {
  out[0] = wrong_name;
}
""",
    # The compiler accepts it, ptxas does not: line 2, inlined at line 5.
    "bad_ptx": """\
__device__ __forceinline__ void inner() {
  asm volatile("no.such_instruction;");
}
extern "C" __global__ void bad_ptx_kernel() {
  inner();
}
""",
}


@pytest.fixture(scope="session")
def sources() -> Mapping[str, str]:
    """Kernels by what is wrong with them; each has one entry point, ``<name>_kernel``."""
    return SOURCES


@pytest.fixture(scope="session", params=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest) -> Compiler:
    """Return each compiler of this machine in turn."""
    return _compiler(request.param)


@pytest.fixture(scope="session")
def nvrtc() -> Compiler:
    return _compiler("nvrtc")


@pytest.fixture(scope="session")
def nvcc() -> Compiler:
    return _compiler("nvcc")


def _compiler(name: str) -> Compiler:
    try:
        return find_compiler(name)
    except MissingCapabilityError as error:
        pytest.skip(error.problems[0].message)
