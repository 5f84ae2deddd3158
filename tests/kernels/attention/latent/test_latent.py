# ruff: noqa: E501 (a mutant is on the line of its name)
"""Latent attention: right over shares, pages and masks, and mutants of the kernel are not."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
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
KEYS: dict[str, Any] = {
    "arch": "sm_90a", "depth": 576, "value_depth": 512, "mask": "causal", "pack_heads": True
}  # fmt: skip
SOURCES: dict[str, dict[str, Any]] = {
    "dense": {},
    "pages": {"keys": "paged", "page_size": 64},
    "lengths": {"key_lengths": True},
    "window": {"mask": {"sliding_window": 70}},
    "splits": {"split_keys": {"keys": 128}},
}
# Six blocks in three shares, of which the second has the end of one tile and the begin of the next.
SPLIT = Case("test/split", 1, 40, 2, 1, 190, data="rising", multiprocessors=4)
LENGTHS = Case("test/lengths", 4, 12, 1, 2, 200, lengths=((2, 200), (2, 0), (2, 33), (2, 64)))
# More packed rows than a tile has: a pair of CTAs, and three tiles, which are not paired.
TILES = Case("test/tiles", 1, 33, 1, 2, 200)
THREE = Case("test/three", 1, 65, 1, 2, 130, data="rising", multiprocessors=4)
# Two pairs, of which the first one has a whole sequence and the begin of the second.
PAIRS = Case("test/pairs", 3, 66, 1, 1, 190, data="rising", multiprocessors=4)
# One pair, and blocks that pass through each slot several times.
RING = Case("test/ring", 1, 66, 1, 1, 7 * 64, data="rising", multiprocessors=2)

MUTANTS = {
    "values read after the slot's release": (Change(r"(wgmma_wait<kHalfParts - 1 - kNumber>\(\);\n *if \(kNumber == kHalfParts - 1\) pin\(output\);)\n( *hand_back\(base \+ kLeftEmpty[^;]*;)", r"\2\n    \1"), RING),
    "part of the values handed back early": (Change(r"kHalfParts - 1 - kNumber", "kHalfParts - kNumber"), RING),
    "both parts of the values in one place": (Change(r"kSlot \* kHalfParts \+ kNumber\)\);", "kSlot * kHalfParts));"), RING),
    "tail read after its release": (Change(r"wgmma_wait<0>\(\);\n *pin\(scores\);\n *(if \(kPart == 0\) hand_back_tail<kPart>\(\);)", r"\1\n    wgmma_wait<0>();\n    pin(scores);"), RING),
    "probabilities that the peer overwrites": (Change(r"load_columns<kTailPanels, 0, false>", "load_columns<kTailPanels, 0, true>"), RING),
    "probabilities written while they are read": (Change(r"kPart == 0 \? kExchangeOffset : [^)]*\)", "kExchangeOffset)"), RING),
    "probabilities that wgmma does not see": (Change(r"\n *fence_proxy_async_shared\(\);  // the probabilities, for wgmma", ""), RING),
    "probabilities read early": (Change(r"\n *mbarrier_wait\(base \+ kProbabilitiesFull[^\n]*", ""), RING),
    "maxima of the other half ignored": (Change(r"(?<=kProbabilitiesFull \+ 8 \* \(1 - kPart\), phase_of\(blocks\)\);)\n *take_maxima<1 - kPart>\(\);", ""), RING),
    "output not rescaled": (Change(r"if \(grows\) rescale\(factor\);", ""), PAIRS),
    "output of warpgroup 0 not rescaled": (Change(r"if \(!kWithOther && grows\) rescale\(factor\);", ""), RING),
    "values of the other half": (Change(r"kPart \* kHalfBytes", "(1 - kPart) * kHalfBytes"), RING),
    "columns of the other half": (Change(r"part \* 2 \* kKept \+\s+chunk", "(1 - part) * 2 * kKept + chunk"), RING),
    "sum of one part": (Change(r"row_sum\[i\] \+= __uint_as_float[^\n]*", "continue;"), RING),
    "keys of the other slot": (Change(r"key_low<kPart>\(\)", "key_low<1 - kPart>()", times=2), RING),
    "tail not waited for": (Change(r"\n *mbarrier_wait\(base \+ kTailFull[^\n]*", ""), RING),
    "columns not waited for": (Change(r"\n *wait_columns<kPart>\(block, kHalf, kNumber\);", ""), RING),
    "columns of the other half not waited for": (Change(r"(?<=wait_columns<kPart>\()block, kHalf", "block, kPart"), RING),
    "columns in the other half's place": (Change(r"other \* kHalfPanels \+ kPartPanels", "own * kHalfPanels + kPartPanels"), RING),
    "last block left out": (Change(r"if \(unit == end\) process_other", "if (unit < end) process_other"), RING),
    "last block of the other left out": (Change(r"if \(unit \+ 1 < end\) process_other<0>", "if (unit + 2 < end) process_other<0>"), PAIRS),
    "blocks of both warpgroups": (Change(r"blocks % kNumParts != 0(?=\) \{\n *process_other)", "blocks % kNumParts == 0"), RING),
    "query that wgmma does not see": (Change(r"\n *fence_proxy_async_shared\(\);  // the query, for wgmma", ""), RING),
    "query multiplied before all have written it": (Change(r"(fence_proxy_async_shared\(\);  // the query, for wgmma)\n *named_barrier_sync[^\n]*", r"\1"), RING),
    "sum of the other part read early": (Change(r"\n *named_barrier_sync\(kConsumerBarrier, kConsumerThreads\);(?=\n#pragma unroll)", ""), RING),
    "query not swizzled": (Change(r"\(chunk \^ row % 8\)", "chunk"), RING),
    "query not waited for": (Change(r"\n *wait_async_copies\(\);", ""), RING),
    "output read before it is staged": (Change(r"__syncwarp\(\);  // all lanes have written", ""), RING),
    "slot of the peer overwritten": (Change(r"paired \? lane : blockIdx\.x % 2", "blockIdx.x % 2"), RING),
    "panels of both loaded by each": (Change(r"\(panel \^ problem\.rank\(\)\) & problem\.paired", "panel & problem.paired"), RING),
    "keys of a tile that is not paired sent to the peer": (Change(r"kForBoth && problem\.paired \? 0b11 : 1 << blockIdx\.x % 2", "0b11"), THREE),
    "share taken for a tile": (Change(r" && tile\.end == share_begin\(problem\.cta\(\) \+ 1\)", ""), SPLIT),
    "factor of another row": (Change(r"own_factor, lane / 4 \+ 8\)", "own_factor, lane / 4)"), RING),
    "partial results of the peer": (Change(r"problem\.rank\(\) \* \(gridDim\.x / 2\)", "0"), PAIRS),
    "rows of the peer": (Change(r"\+ problem\.rank\(\)\) \* kBM", ") * kBM"), RING),
    "slices read before they are written": (Change(r"named_barrier_sync(?=\(kLineBarrier, kNumThreads - 32\);)", "named_barrier_arrive"), SPLIT),
    "combined early": (Change(r"\(counter\) < slice\.pieces\)", "(counter) < slice.pieces - 1)"), SPLIT),
    "combined before it is written": (Change(r"\n *named_barrier_sync\(kConsumerBarrier, kConsumerThreads\);  // partial results are written", ""), SPLIT),
}  # fmt: skip
LINE_MUTANTS = {
    "query over the line": Change(r"\n *named_barrier_sync\(kLineBarrier, kNumThreads\);", "\n    named_barrier_arrive(kLineBarrier, kNumThreads);"),
    "row of another sequence": Change(r"page_table_of\(problem, tile\.sequence\)", "page_table_of(problem, tile.sequence ^ 1)"),
    "tile of the line, begun again": Change(r"fill\(tile, tile\.end\);", "fill(tile, tile.begin);"),
}  # fmt: skip
QUICK = ("probabilities written while they are read", "sum of one part")


@cache
def original(source: str) -> Kernel:
    return kernel_of({**KEYS, **SOURCES[source]})


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("source", "case"),
    [
        ("pages", LENGTHS),
        pytest.param("dense", SPLIT, marks=pytest.mark.seeds),
        ("dense", PAIRS),
        pytest.param("dense", TILES, marks=pytest.mark.seeds),
        pytest.param("dense", THREE, marks=pytest.mark.seeds),
        pytest.param("pages", PAIRS, marks=pytest.mark.seeds),
        pytest.param("lengths", LENGTHS, marks=pytest.mark.seeds),
        pytest.param("window", SPLIT, marks=pytest.mark.seeds),
    ],
)
def test_two_launches_on_a_workspace_are_right(source: str, case: Case) -> None:
    assert failures(original(source), case) == []


@pytest.mark.seeds
@pytest.mark.parametrize("case", [SPLIT, RING])
def test_splits_of_a_fixed_number_of_keys_are_right(case: Case) -> None:
    kernel = original("splits")
    problem = AttentionFamily(kernel.plan).draw(case, 7)
    emulated = EmulatedKernel(kernel.plan, KeptWorkspace(kernel))  # type: ignore[arg-type]
    reference = problem.reference(np)
    _, wrong = reference.compare(problem.memory, emulated.run(problem.memory), np)
    assert wrong == ()


@pytest.mark.seeds
def test_no_schedule_changes_a_bit() -> None:
    kernel = original("dense")
    assert_same_bits(kernel, SPLIT)


SHOWN = {
    **{
        name: ShownMutant({**KEYS, **SOURCES["dense"]}, change, case)
        for name, (change, case) in MUTANTS.items()
    },
    **{
        name: ShownMutant({**KEYS, **SOURCES["pages"]}, change, LENGTHS)
        for name, change in LINE_MUTANTS.items()
    },
}
