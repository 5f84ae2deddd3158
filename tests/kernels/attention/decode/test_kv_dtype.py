# ruff: noqa: E501 (a mutant is on the line of its name)
"""Decode with fp8 keys and values: mutants of scales, conversions and orders of columns."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from tests.kernels.attention.launches import ShownMutant, failures, output_of
from tests.kernels.source_mutation import Change, kernel_of

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

KEYS: dict[str, Any] = {
    "arch": "sm_90a",
    "mask": "causal",
    "pack_heads": True,
    "kv_dtype": "fp8_e4m3",
}
# Two sequences of two key heads; pieces of some tiles are combined.
SCALED = Case("test/scaled", 2, 6, 2, 3, 300)


@cache
def original(
    depth: int = 64, dtype: str = "bf16", arch: str = "sm_90a", page_size: int = 0
) -> Kernel:
    pages = {"keys": "paged", "page_size": page_size} if page_size else {}
    return kernel_of({**KEYS, "depth": depth, "dtype": dtype, "arch": arch, **pages})


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("depth", "dtype", "page_size"),
    [
        (64, "bf16", 0),
        (128, "fp16", 64),
        pytest.param(96, "bf16", 16, marks=pytest.mark.seeds),
        pytest.param(192, "fp16", 0, marks=pytest.mark.seeds),
        pytest.param(256, "bf16", 16, marks=pytest.mark.seeds),
    ],
)
def test_two_launches_on_a_workspace_are_right(depth: int, dtype: str, page_size: int) -> None:
    assert failures(original(depth, dtype, page_size=page_size), SCALED) == []


MUTANTS = {
    "scales of another head": Change(r"tile\.within / line\.problem\.tiles_per_head;", "(tile.within / line.problem.tiles_per_head ^ 1);"),
    "scales of another sequence": Change(r"static_cast<int64>\(tile\.sequence\) \* line\.problem\.key_heads", "static_cast<int64>(tile.sequence ^ 1) * line.problem.key_heads"),
    "scale of the keys for values": Change(r"value_descale = descales\.of_values\(head\)", "value_descale = descales.of_keys(head)"),
    "scale of the values for keys": Change(r"descale = descales\.of_keys\(head\)", "descale = descales.of_values(head)"),
    "values without their scale": Change(r"\n *result\.scale\(value_descale\);", ""),
    "wrong half of a word": Change(r"cvt\.rn\.f16x2\.e4m3x2 %1, h;", "cvt.rn.f16x2.e4m3x2 %1, l;"),
    "halves of keys exchanged": Change(r"unpack_e4m3\(packed\[1\], even\[1\], even\[3\]\)", "unpack_e4m3(packed[1], even[3], even[1])"),
    "keys of two pieces exchanged": Change(r"unpack_e4m3\(packed\[2\], odd\[0\], odd\[2\]\)", "unpack_e4m3(packed[3], odd[0], odd[2])"),
    "bytes of values in the order of keys": Change(r"0x3120", "0x3210"),
    "columns of values exchanged": Change(r"0x3120", "0x2031"),
    "query in the order of 16 bits": Change(r"from \+ 16 \* k \+ 2 \* i", "from + 16 * k + 8 * i"),
    "output in the order of 16 bits": Change(r"columns\[k\]\[n\]\[i\], columns\[k\]\[n\]\[2 \+ i\]", "columns[k][n][2 + i], columns[k][n][i]"),
    "query beyond fp16": Change(r"127 \+ 127 \+ 14 - exponent", "127 + 127 + 24 - exponent"),
    "power of two not taken back": Change(r"\(exponent - 14\) << 23", "127u << 23"),
    "power of two of a lane": Change(r"largest = fmaxf\(largest, shuffle_xor\(largest, lanes\)\);", "largest = fmaxf(largest, 0.f);"),
}  # fmt: skip
QUICK = ("scales of another head", "scale of the keys for values", "wrong half of a word")

SHOWN = {
    name: ShownMutant({**KEYS, "depth": 64, "dtype": "bf16"}, change, SCALED)
    for name, change in MUTANTS.items()
}


@pytest.mark.emulate
@pytest.mark.parametrize("bits", [0x7F80, 0x7FC0], ids=["infinite", "nan"])
def test_a_query_that_is_no_number_leaves_other_heads_alone(bits: int) -> None:
    """Heads share a tile, and the power of two that brings its queries into the range of fp16."""
    kernel = original()
    problem = AttentionFamily(kernel.plan).draw(replace(SCALED, query_rows=1, key_rows=40), 3)
    before = output_of(problem, kernel)
    view = problem.memory.views["query"]
    query = view.bits(problem.memory.buffers[view.buffer])
    small = np.abs(problem.inputs.query[0, 0, 1]).argmin()
    query[0, 0, 1, small] = bits
    after = output_of(problem, kernel)
    np.testing.assert_array_equal(np.delete(after, 1, axis=2)[0], np.delete(before, 1, axis=2)[0])
    assert (after[0, 0, 1] != before[0, 0, 1]).all()
