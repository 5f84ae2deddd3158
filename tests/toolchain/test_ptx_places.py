"""Places of lines of PTX that was built without line information."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit
from fa4gen.toolchain.ptx_places import ptx_places

HEADER = """\
__device__ __forceinline__ void meet(int n) {
  asm volatile("barrier.sync 5, %0;" :: "r"(n));
}
"""
SOURCE = """\
#include "k.h"
extern "C" __global__ void k(float* out) {
  if (threadIdx.x < 64) {
    meet(64);
  }
  out[threadIdx.x] = 3.0f;
}
"""
UNIT = Unit("k", SOURCE, {"k.h": HEADER}, "sm_90a")

pytestmark = pytest.mark.compile


def test_lines_of_ptx_have_their_source_text() -> None:
    tool = find_compiler("nvrtc")
    ptx = tool.build_ptx(UNIT)
    assert ".loc" not in ptx
    numbers = {
        word: next(n for n, line in enumerate(ptx.splitlines(), 1) if word in line)
        for word in ("setp", "barrier.sync", "st.global")
    }
    places = ptx_places(UNIT, ptx, [*numbers.values(), 1], tool)
    assert str(places[numbers["setp"]]) == "k.cu:3: if (threadIdx.x < 64) {"
    assert str(places[numbers["barrier.sync"]]).startswith("k.h:2 (meet): asm volatile(")
    assert str(places[numbers["st.global"]]) == "k.cu:6: out[threadIdx.x] = 3.0f;"
    assert places[numbers["barrier.sync"]].lines[1] == ("", "meet(64);")
    assert len(places) == 3  # line 1 is a comment


def test_nothing_is_said_of_another_kernels_ptx() -> None:
    tool = find_compiler("nvrtc")
    other = replace(UNIT, source=SOURCE.replace("3.0f", "threadIdx.x"))
    assert not ptx_places(UNIT, tool.build_ptx(other), range(1, 60), tool)
