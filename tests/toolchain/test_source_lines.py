from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.toolchain.elf import Cubin, NotACubinError
from fa4gen.toolchain.line_table import read_line_table
from fa4gen.toolchain.locate import local_accesses
from fa4gen.toolchain.model import Unit
from fa4gen.toolchain.source_lines import (
    AddressLines,
    Frame,
    describe,
    plain_name,
    ptx_line_chain,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

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
def test_lines_of_machine_code_through_inlined_calls(nested: Built) -> None:
    cubin = Cubin(nested.cubin)
    (kernel,) = cubin.entries
    lines = AddressLines(cubin)
    found = {lines.chain("kernel", address) for address in range(0, len(kernel.code), 16)}
    assert {chain(12), chain(13)} <= found
    assert lines.chain("no_such_function", 0) == ()


@pytest.mark.compile
def test_without_line_information(nested: Built, compiler: Compiler) -> None:
    plain = compiler.build(Unit("nested", NESTED, {}, "sm_90a"))
    assert AddressLines(Cubin(plain.cubin)).chain("kernel", 0) == ()
    assert ptx_line_chain(plain.ptx, 30) == ()


@pytest.mark.compile
def test_line_information_does_not_change_the_code(
    compiler: Compiler, sources: Mapping[str, str]
) -> None:
    codes = [
        Cubin(compiler.build(Unit("k", sources["spill"], {}, "sm_90a", info)).cubin).entries[0].code
        for info in (False, True)
    ]
    assert codes[0] == codes[1]


@pytest.mark.compile
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_local_accesses(arch: str, compiler: Compiler, sources: Mapping[str, str]) -> None:
    def kinds(name: str) -> set[str]:
        (kernel,) = Cubin(compiler.build(Unit("k", sources[name], {}, arch)).cubin).entries
        return {kind for _, kind in local_accesses(kernel)}

    assert kinds("shared") == set()
    assert kinds("array") == {"load", "store"}


@pytest.mark.compile
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_damaged_line_table_is_an_error_or_survived(nested: Built, data: st.DataObject) -> None:
    start = nested.cubin.index(b"nested.cu\0") - 40
    damaged = bytearray(nested.cubin)
    for _ in range(3):
        place = data.draw(st.integers(start, start + 200))
        damaged[place] = data.draw(st.integers(0, 255))
    try:
        tables = read_line_table(Cubin(bytes(damaged)))
    except NotACubinError:
        return
    assert isinstance(tables, dict)


@pytest.mark.compile
def test_no_byte_of_a_line_table_may_break_its_reader(nested: Built) -> None:
    start = nested.cubin.index(b"nested.cu\0") - 40
    for place in range(start, start + 60):  # the header, all of it
        for value in (0, 255):
            damaged = bytearray(nested.cubin)
            damaged[place] = value
            try:
                tables = read_line_table(Cubin(bytes(damaged)))
            except NotACubinError:
                continue
            assert isinstance(tables, dict)


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
