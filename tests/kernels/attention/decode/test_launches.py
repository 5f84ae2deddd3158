# ruff: noqa: E501 (a mutant is on the line of its name)
"""Decode: two launches on one workspace are right, and mutants of the kernel are not."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.verify.cases import Case
from tests.kernels.attention.launches import ShownMutant, failures
from tests.kernels.source_mutation import Change, kernel_of

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

KEYS: dict[str, Any] = {"arch": "sm_90a", "depth": 192, "mask": "causal", "pack_heads": True}
PAGED: dict[str, Any] = {**KEYS, "keys": "paged", "page_size": 16}
FIXED: dict[str, Any] = {**KEYS, "split_keys": {"keys": 64}}
HOPPER, BLACKWELL = "sm_90a", "sm_100a"

# Four CTAs with shares of 2, 2, 1 and 1 blocks; the first rows see nothing of the last block.
SPLIT = Case("test/split", 1, 4, 2, 3, 129)
# One sequence is longer than a share; two are without keys: the last one is in no CTA's way.
LENGTHS = Case(
    "test/lengths", 5, 2, 1, 2, 200, lengths=((2, 200), (2, 0), (2, 33), (2, 64), (2, 0))
)
# One CTA, and more blocks than its ring has slots.
RING = Case("test/ring", 1, 1, 1, 1, 9 * 64, multiprocessors=1)


@cache
def original(paged: bool, arch: str = HOPPER) -> Kernel:
    return kernel_of({**(PAGED if paged else KEYS), "arch": arch})


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("case", "paged", "arch"),
    [
        pytest.param(SPLIT, False, HOPPER, id="split-hopper"),
        pytest.param(LENGTHS, True, HOPPER, id="paged-hopper"),
        pytest.param(SPLIT, False, BLACKWELL, id="split-blackwell"),
        # The text is that of Hopper: tests/designs/attention_decode/test_blackwell.py.
        pytest.param(LENGTHS, True, BLACKWELL, id="paged-blackwell", marks=pytest.mark.seeds),
    ],
)
def test_two_launches_on_a_workspace_are_right(case: Case, paged: bool, arch: str) -> None:
    assert failures(original(paged, arch), case) == []


@pytest.mark.emulate
@pytest.mark.parametrize("arch", [HOPPER, pytest.param(BLACKWELL, marks=pytest.mark.seeds)])
def test_splits_of_a_fixed_size_leave_their_tickets_as_they_were(arch: str) -> None:
    kernel = kernel_of({**FIXED, "arch": arch})
    assert failures(kernel, SPLIT) == []
    change = Change(r"\n *\*ticket = 0;[^\n]*", "")
    assert failures(kernel.with_code(change.apply(kernel.code)), SPLIT)


MUTANTS = {
    "partial result read early": Change(r"\(counter\) < slice\.pieces\)", "(counter) < slice.pieces - 1)"),
    "counter not reset": Change(r"\n *count_up\(counter, last_count\(slice\)\);", ""),
    "counter without order": Change(r"red\.release\.gpu", "red.relaxed.gpu"),
    "counter for its CTA": Change(r"red\.release\.gpu", "red.release.cta"),
    "wait without order": Change(r"ld\.acquire\.gpu", "ld.relaxed.gpu"),
    "wait for its CTA": Change(r"ld\.acquire\.gpu", "ld.acquire.cta"),
    "slices that overlap": Change(r"quads \* own / all;", "max(0, quads * own / all - 1);"),
    "slice short": Change(r"quads \* \(own \+ 1\) / all", "max(begin, quads * (own + 1) / all - 1)"),
    "rehearsal that counts": Change(r"if \(real\) \{(?=\n *if \(threadIdx\.x == 0\) \{\n *count_piece)", "{"),
    "boundary of shares off by one": Change(r"min\(cta, longer\)", "min(cta + 1, longer)"),
    "partial result of the launch before": Change(r"part == 0 \? kPieceOfLastTile : kPieceOfFirstTile", "kPieceOfFirstTile"),
    "weight of no key": Change(r"return max == negative_infinity\(\) \? 0\.f : max;", "return max;"),
    "slot released while it is read": Change(r"\n *fence_proxy_async_shared\(\);(?=\n *__syncwarp\(\);\n *if \(lane)", ""),
    "unit that was not loaded": Change(r"part / kUnitParts >= end - unit", "part / kUnitParts > end - unit"),
    "unit short": Change(r"const int32 units = min\(kBlockUnits, end_unit - unit\);", "const int32 units = min(kBlockUnits, max(1, end_unit - unit - 1));"),
    "rows of the next head": Change(r"packed - position \* problem\.heads_per_key_head;", "packed + 1 - position * problem.heads_per_key_head;"),
}  # fmt: skip
PAGE_MUTANTS = {
    "page of the block before": Change(r"\n *rows\.page = next_page;", ""),
    "row of another sequence": Change(r"page_table_of\(problem, tile\.sequence\)", "page_table_of(problem, tile.sequence ^ 1)"),
    "empty sequence left out": Change(r"return max\(1, units\.count\(\)\);", "return units.count();"),
}  # fmt: skip
QUICK = (
    "partial result read early",
    "counter not reset",
    "wait without order",
    "weight of no key",
)


def check_it_is_reported(name: str, arch: str = HOPPER) -> None:
    paged = name in PAGE_MUTANTS
    kernel = original(paged, arch)
    change = (PAGE_MUTANTS if paged else MUTANTS)[name]
    case = LENGTHS if paged else RING if name.startswith("slot") else SPLIT
    assert failures(kernel.with_code(change.apply(kernel.code)), case)


SHOWN = {
    **{
        name: ShownMutant(KEYS, change, RING if name.startswith("slot") else SPLIT)
        for name, change in MUTANTS.items()
    },
    **{name: ShownMutant(PAGED, change, LENGTHS) for name, change in PAGE_MUTANTS.items()},
}
