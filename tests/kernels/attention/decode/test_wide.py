# ruff: noqa: E501 (a mutant is on the line of its name)
"""Decode in tiles of 64 rows: right over shares, pages and masks, and mutants of the kernel are not."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel
from tests.kernels.attention.launches import (
    KeptWorkspace,
    ShownMutant,
    assert_same_bits,
    failures,
)
from tests.kernels.source_mutation import Change, kernel_of

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

pytestmark = pytest.mark.usefixtures("each_product_alone")
KEYS: dict[str, Any] = {"arch": "sm_90a", "mask": "causal", "pack_heads": True, "packed_rows": 64}
# Five units of keys for three CTAs; 30 of the 64 rows are there.
SPLIT = Case("test/split", 1, 20, 2, 3, 300)
LENGTHS = Case("test/lengths", 4, 12, 1, 2, 200, lengths=((2, 200), (2, 0), (2, 33), (2, 64)))
# More packed rows than a tile has.
# Rows eight apart see one key and two, two and three, and so on: their sums differ.
FEW = Case("test/few", 1, 8, 1, 8, 8)
TILES = Case("test/tiles", 1, 33, 1, 2, 200)
# One CTA, and more blocks than its ring has slots.
RING = Case("test/ring", 1, 2, 1, 1, 9 * 128, multiprocessors=1)
# Pieces whose last block has no keys for the second warpgroup, with others after them.
SKIPPED = Case("test/skipped", 2, 6, 3, 65, 168)
WINDOW: dict[str, Any] = {"mask": {"sliding_window": 70}}
PAGES: dict[str, Any] = {"keys": "paged", "page_size": 16}

MUTANTS = {
    "query that wgmma does not see": (Change(r"\n *fence_proxy_async_shared\(\);  // the query, for wgmma", ""), SPLIT),
    "query not swizzled": (Change(r"chunk % kPanelChunks \^ row % 8", "chunk % kPanelChunks"), SPLIT),
    "query not waited for": (Change(r"\n *wait_async_copies\(\);", ""), SPLIT),
    "rows of the other half": (Change(r"lane / 4 \+ 8 \* i", "lane / 4 + 8 * (1 - i)"), SPLIT),
    "key of the other register": (Change(r"return i / 4 \* 8 \+ i % 2;", "return i / 4 * 8 + (i + 1) % 2;"), SPLIT),
    "keys of the first warpgroup": (Change(r"part / kUnitParts \* kUnitBytes\)", "0 * part * kUnitBytes)"), SPLIT),
    "unit that was not loaded": (Change(r"part / kUnitParts >= end - unit", "part / kUnitParts > end - unit"), SPLIT),
    "exchange read early": (Change(r"(?<=away\);\n    \}\n) *named_barrier_sync\(kConsumerBarrier, kConsumerThreads\);", ""), SPLIT),
    "row of the lane beside": (Change(r"kept\[i \+ 2 \* row\], kept\[i \+ 2 \* row \+ 1\]", "kept[i + 2 - 2 * row], kept[i + 3 - 2 * row]"), SPLIT),
    "columns of the other warpgroup": (Change(r"part \* 2 \* kKept \+ lane", "(1 - part) * 2 * kKept + lane"), SPLIT),
    "output read before it is staged": (Change(r"__syncwarp\(\);  // all lanes have written", ""), RING),
    "factor of the other row": (Change(r"kept\[i \+ 2\] \* factor\[1\]", "kept[i + 2] * factor[0]"), FEW),
    "weight of the other warpgroup": (Change(r"(?<=theirs\[i\] = exp2_approx\()other\[0\]", "row_max[i]"), SPLIT),
    "slot released while it is read": (Change(r"wgmma_wait<0>\(\);\n *pin\(scores\);\n *release\(\);", "release();\n    wgmma_wait<0>();\n    pin(scores);"), RING),
}  # fmt: skip
SHOWN = {
    name: ShownMutant({**KEYS, "depth": 64}, change, case)
    for name, (change, case) in MUTANTS.items()
}
QUICK = ()


@cache
def original(depth: int, source: str) -> Kernel:
    more = {"pages": PAGES, "window": WINDOW}.get(source, {})
    return kernel_of({**KEYS, "depth": depth, **more})


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("depth", "source", "case"),
    [
        (64, "pages", LENGTHS),
        pytest.param(64, "dense", SPLIT, marks=pytest.mark.seeds),
        pytest.param(64, "window", SPLIT, marks=pytest.mark.seeds),
        pytest.param(128, "dense", TILES, marks=pytest.mark.seeds),
        pytest.param(192, "dense", SPLIT, marks=pytest.mark.seeds),
        pytest.param(256, "pages", LENGTHS, marks=pytest.mark.seeds),
    ],
)
def test_two_launches_on_a_workspace_are_right(depth: int, source: str, case: Case) -> None:
    assert failures(original(depth, source), case) == []


@pytest.mark.emulate
def test_no_lane_misses_the_phase_of_a_block_that_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fa4gen.emulator.SCHEDULES", ("starve_warp",))
    kernel = original(64, "dense")
    problem = AttentionFamily(kernel.plan).draw(SKIPPED, 7)
    program: Any = KeptWorkspace(kernel)
    assert EmulatedKernel(kernel.plan, program).run(problem.memory)


@pytest.mark.emulate
@pytest.mark.parametrize(
    "depth", [64, *(pytest.param(depth, marks=pytest.mark.seeds) for depth in (128, 256))]
)
def test_no_schedule_changes_a_bit(depth: int) -> None:
    kernel = original(depth, "dense")
    assert_same_bits(kernel, SPLIT)
