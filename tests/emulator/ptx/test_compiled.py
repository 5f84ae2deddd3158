"""PTX as the compilers write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.emulator.ptx.inline import flatten
from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.ptx.syntax import LabelTable
from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

GENERATED = Path(__file__).parents[3] / "generated" / "sm_90a"
SCALAR = r"""
extern "C" __device__ int printf(const char*, ...);
__constant__ float table[2][2] = {{1.f, 2.f}, {3.f}};
__device__ const char* message = "text";
__device__ __noinline__ float helper(float x, int n) { return n > 3 ? x * n : sinf(x); }
extern "C" __global__ void scalar(float* out, int n) {
  __shared__ float shared[32];
  float local[16];
  for (int i = 0; i < 16; ++i) local[i] = out[i];
  shared[threadIdx.x] = out[n];
  __syncthreads();
  switch (n) {
    case 0: out[0] = helper(out[1], n); break;
    case 1: out[1] = __expf(out[2]); break;
    case 2: out[7] = local[n + 1] * out[n]; break;
    case 3: printf("%d\n", n); break;
    case 4: out[3] = shared[n] / out[4]; break;
    case 5: atomicAdd(out, table[n & 1][n & 1]); break;
    case 6: out[9] = message[n]; break;
  }
}
"""


def ptx_of(unit: Unit, compiler: str) -> str:
    try:
        return find_compiler(compiler).build_ptx(unit)
    except MissingCapabilityError as error:
        pytest.skip(error.problems[0].message)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["d128_causal_bf16", "d64_dense_small_bf16"])
def test_generated_kernels(name: str) -> None:
    folder = GENERATED / name
    headers = {
        path.name: path.read_text() for path in folder.iterdir() if path.suffix in (".h", ".cuh")
    }
    source = (folder / f"{name}.cu").read_text()
    ptx = ptx_of(Unit(name, source, headers, "sm_90a", line_info=True), "nvrtc")
    entry = flatten(parse_module(ptx), f"fa4gen_{name}")
    opcodes = {each.opcode for each in entry.instructions}
    assert {"wgmma", "mbarrier", "cp", "bra", "setmaxnreg"} <= opcodes
    assert f"{name}.cu" in {each.source.file for each in entry.instructions if each.source}
    assert entry.directives["maxntid"][1:] == (1, 1)


@pytest.mark.compile
@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_scalar_code_of_both_front_ends(arch: str, compiler: str) -> None:
    entry = flatten(parse_module(ptx_of(Unit("scalar", SCALAR, {}, arch), compiler)), "scalar")
    assert all(each.opcode != "call" for each in entry.instructions)
    assert {"shared", "local"} <= {each.space for each in entry.variables}
    for each in entry.instructions:
        for operand in each.operands:
            if isinstance(operand, LabelTable):
                assert max(operand.targets) < len(entry.instructions)
