from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain.disassembly import (
    Instruction,
    disassemble,
    find_nvdisasm,
    read_disassembly,
)
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.toolchain.model import Compiler

SHOWN = """\
\t.section\t.text.kernel,"ax",@progbits
kernel:
\t//## File "/there/k.cu", line 20
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/there/k_device.cuh", line 3 inlined at "/there/k.cu", line 7
\t//## File "/there/k.cu", line 7 inlined at "/there/k.cu", line 21
\t//## File "/there/k.cu", line 21
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        /*0020*/                   NOP ;
\t//## File "/elsewhere/other.cuh", line 9
.L_x_1:
.L_x_2:
        /*1f30*/                   BRA `(.L_x_2) ;
"""


def test_the_innermost_line_of_the_source_and_targets_as_addresses() -> None:
    assert read_disassembly(SHOWN, "k.cu") == [
        Instruction(0, "LDC R1, c[0x0][0x28]", 20),
        Instruction(0x10, "@!P0 BRA 0x01f30", 7),
        Instruction(0x20, "NOP", 7),
        Instruction(0x1F30, "BRA 0x01f30", 0),
    ]


@pytest.fixture
def nvdisasm() -> Path:
    try:
        return find_nvdisasm()
    except MissingCapabilityError as error:
        pytest.skip(str(error))


ADD = """\
__device__ __forceinline__ void add(int* where, int value) {
  asm volatile("red.global.add.s32 [%0], %1;" ::"l"(where), "r"(value) : "memory");
}
extern "C" __global__ void kernel(int* where) {
  add(where, 7);
  add(where + 1, 9);
}
"""


@pytest.mark.compile
def test_a_cubin_by_its_lines(compiler: Compiler, nvdisasm: Path) -> None:
    built = compiler.build(Unit("add", ADD, {}, "sm_90a", line_info=True))
    code = disassemble(nvdisasm, built.cubin, "add.cu")
    assert [i.address for i in code] == list(range(0, 16 * len(code), 16))
    assert [i.line for i in code if "RED" in i.text] == [2, 2]
    plain = compiler.build(Unit("add", ADD, {}, "sm_90a"))
    without = disassemble(nvdisasm, plain.cubin, "add.cu")
    assert [i.text for i in without] == [i.text for i in code]
    assert {i.line for i in without} == {0}


def test_what_is_no_cubin(nvdisasm: Path) -> None:
    with pytest.raises(MissingCapabilityError, match="cannot read the kernel"):
        disassemble(nvdisasm, b"no ELF", "k.cu")
