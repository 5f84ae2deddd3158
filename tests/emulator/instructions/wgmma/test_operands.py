"""The parts of a wgmma's operands that each warp of a warpgroup reads."""

from __future__ import annotations

from fa4gen.emulator.instructions.mma.descriptors import decode
from fa4gen.emulator.instructions.wgmma.operands import Operands, joined

# 16 columns of bf16, core matrices without swizzle: 128 bytes between the halves of K.
BETWEEN_HALVES, BETWEEN_GROUPS = 128 >> 4 << 16, 256 >> 4 << 32


def tile(address: int, rows: int, k_major: bool = True):
    descriptor = decode(address >> 4 | BETWEEN_HALVES | BETWEEN_GROUPS, 90)
    return descriptor, k_major, rows, 16, 2


def test_a_warp_reads_its_rows_of_a_and_all_of_b() -> None:
    operands = Operands((tile(2048, 64),), (tile(8192, 8),))
    assert operands.ranges() == ((2048, 4096), (8192, 8448))
    assert operands.of_warp(0) == ((2048, 2560), (8192, 8448))
    assert operands.of_warp(3) == ((3584, 4096), (8192, 8448))


def test_rows_of_an_a_that_is_not_k_major() -> None:
    # groups of eight rows are 256 bytes from each other, halves of K 128
    operands = Operands((tile(2048, 64, k_major=False),), ())
    assert operands.of_warp(1) == ((2560, 3072),)


def test_products_together() -> None:
    first, second = Operands((tile(2048, 64),), ()), Operands((), (tile(4096, 8),))
    assert joined([first]) is first
    assert joined([first, second]).ranges() == ((2048, 4352),)
