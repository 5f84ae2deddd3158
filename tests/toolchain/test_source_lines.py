from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.toolchain.model import Unit
from fa4gen.toolchain.source_lines import Frame, describe, plain_name, ptx_line_chain

if TYPE_CHECKING:
    from fa4gen.toolchain.model import Built, Compiler

# Three calls deep; the atomic add of line 4 is in the kernel twice.
NESTED = """\
namespace nested {
struct Counter {
  __device__ __forceinline__ static void add(int* where, int value) {
    asm volatile("red.global.add.s32 [%0], %1;" ::"l"(where), "r"(value) : "memory");
  }
};
template <int kTimes>
__device__ __forceinline__ void outer(int* where) {
  Counter::add(where, kTimes);
}
extern "C" __global__ void kernel(int* where) {
  outer<7>(where);
  outer<9>(where + 1);
}
}
"""


def lines_of(ptx: str, text: str) -> list[int]:
    return [number for number, line in enumerate(ptx.splitlines(), 1) if text in line]


@pytest.fixture(scope="module")
def nested(compiler: Compiler) -> Built:
    return compiler.build(Unit("nested", NESTED, {}, "sm_90a", line_info=True))


def chain(call: int) -> tuple[Frame, ...]:
    file = "nested.cu"
    return (Frame("Counter::add", file, 4), Frame("outer", file, 9), Frame("", file, call))


@pytest.mark.compile
def test_lines_of_ptx_through_inlined_calls(nested: Built) -> None:
    first, second = lines_of(nested.ptx, "red.global.add.s32")
    assert ptx_line_chain(nested.ptx, first) == chain(12)
    assert ptx_line_chain(nested.ptx, second) == chain(13)


@pytest.mark.compile
def test_without_line_information(nested: Built, compiler: Compiler) -> None:
    plain = compiler.build(Unit("nested", NESTED, {}, "sm_90a"))
    assert ptx_line_chain(plain.ptx, 30) == ()


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        ("_Z4loadRA96_fPKf", "load"),
        ("_ZN6kernel12store_outputILi4EEEvi", "store_output"),
        ("_ZN6kernel8Consumer3runEv", "Consumer::run"),
        ("_ZN6kernel8ConsumerILi4ELb1EE3runEv", "Consumer::run"),
        ("_ZNK6kernel8Consumer3runEv", "Consumer::run"),
        ("_Z3abc", "abc"),
        ("kernel", "kernel"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_plain_names(mangled: str, plain: str) -> None:
    assert plain_name(mangled) == plain


def test_places_in_words() -> None:
    frames = (Frame("inner", "k.cu", 4), Frame("outer", "k.cu", 9), Frame("", "k.cu", 12))
    assert describe(frames) == "k.cu:4 (inner < outer)"
    assert describe(frames[2:]) == "k.cu:12"
    assert describe(()) == "an unknown line"
