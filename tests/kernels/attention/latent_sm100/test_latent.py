# ruff: noqa: E501 (a mutant is on the line of its name)
"""Latent attention over a pair of CTAs: right over shares, pages and masks, and mutants are not."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel, FindingsError
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
    "arch": "sm_100a", "depth": 576, "value_depth": 512, "mask": "causal", "pack_heads": True,
    "cta_group": 2,
}  # fmt: skip
SOURCES: dict[str, dict[str, Any]] = {
    "dense": {},
    "pages": {"keys": "paged", "page_size": 64},
    "lengths": {"key_lengths": True},
    "window": {"mask": {"sliding_window": 70}},
    "larger of two ends": {"mask": "key <= query or key < 159"},
    "all": {
        "keys": "paged",
        "page_size": 128,
        "mask": {"sliding_window": 70},
        "sinks": True,
        "softcap": 9.0,
        "dtype": "fp16",
    },
    "splits": {"split_keys": {"keys": 128}},
    "pages in splits": {"keys": "paged", "page_size": 64, "split_keys": {"keys": 64}},
}
# Six blocks in four shares, of which the second has the end of one tile and the begin of the next.
SPLIT = Case("test/split", 1, 140, 2, 1, 190, data="rising", multiprocessors=8)
LENGTHS = Case("test/lengths", 4, 12, 1, 2, 200, lengths=((2, 200), (2, 0), (2, 33), (2, 64)))
# More packed rows than a tile has, and rows of both CTAs.
TILES = Case("test/tiles", 1, 70, 1, 2, 200)
# One pair, and blocks that pass through each slot several times; rows of both CTAs in the second.
RING = Case("test/ring", 1, 2, 1, 1, 7 * 64, data="rising", multiprocessors=2)
ROWS = Case("test/rows", 1, 128, 1, 1, 7 * 64, data="rising", multiprocessors=2)

MUTANTS = {
    "scores read early": (Change(r"\n *scores_in\.wait\(\);"), RING),
    "scores overwritten": (Change(r"(?<=kScoresStep \* )scores\.state\.index(?=;)", "0"), RING),
    "probabilities written while they are read": (Change(r"wait_products\(\);\n *products\.step\(\);", "products.step();"), RING),
    "output rescaled while it is added to": (Change(r"\n *wait_products\(\);(?=\n *tcgen05_fence_after\(\);[^\n]*\n *rescale)"), RING),
    "output not rescaled": (Change(r"\n *rescale_output<kLaneColumns>[^\n]*"), RING),
    "probabilities that the products do not see": (Change(r"\n *fence_proxy_async_shared\(\);  // this thread's part of P[^\n]*"), RING),
    "query that the products do not see": (Change(r"\n *fence_proxy_async_shared\(\);  // this thread's part of the query[^\n]*"), RING),
    "handed over without a release": (Change(r"mbarrier_arrive_release_cluster\(leader_address<kCtaGroup>\(barrier\)\);", "mbarrier_arrive_leader<kCtaGroup>(barrier);"), ROWS),
    "keys not waited for": (Change(r"\n *keys\.consumer_wait<part>\(\);"), RING),
    "values not waited for": (Change(r"\n *values\.consumer_wait\(\);"), RING),
    "probabilities read early": (Change(r"\n *mbarrier_wait_acquire_cluster\(output\.free\(\)[^\n]*"), RING),
    "query read early": (Change(r"\n *mbarrier_wait_acquire_cluster\(base \+ kQueryFull[^\n]*"), RING),
    "slots filled early": (Change(r"\n *ring\.template producer_acquire<part>\(\);"), RING),
    "keys of the other CTA": (Change(r"rank \* kKeyRows", "(1 - rank) * kKeyRows"), RING),
    "values of the other CTA": (Change(r"rank \* kValuePanels", "(1 - rank) * kValuePanels"), RING),
    "keys of the other slot": (Change(r"key_slot \+ kKeyBytes \* keys\.state\.index", "key_slot + kKeyBytes * (1 - keys.state.index)"), RING),
    "maximum of half a row": (Change(r"fmaxf\(own, exchange\.partner\(own\)\)", "own"), RING),
    "sum of half a row": (Change(r"sum \+ exchange\.partner\(sum\)", "exchange.partner(sum)"), RING),
    "columns of the other half": (Change(r"half \* kLaneColumns \+ column", "(1 - half) * kLaneColumns + column"), RING),
    "query not swizzled": (Change(r"chunk % kPanelChunks \^ row % 8", "chunk % kPanelChunks"), RING),
    "output read early": (Change(r"\n *wait_products\(\);(?=\n *tcgen05_fence_after\(\);  // orders the loads after the last)"), RING),
    "query over the output on its way": (Change(r"\n *named_barrier_sync\(kConsumerBarrier, kConsumerThreads\);  // the next query may take the place"), SPLIT),
    "values released after the output": (Change(r"(\n *values\.consumer_release\(e\);)(\n *output\.commit_mma\(e\);)", r"\2\1"), RING),
    "combined early": (Change(r"\(counter\) < kCtaGroup \* slice\.pieces\)", "(counter) < slice.pieces)"), SPLIT),
    "combined before it is written": (Change(r"\n *named_barrier_sync\(kConsumerBarrier, kConsumerThreads\);  // partial results are written"), SPLIT),
    "counter not reset": (Change(r"return 2 \* kCtaGroup \* slice\.pieces - 1;", "return 2 * kCtaGroup * slice.pieces;"), SPLIT),
    "slices of half the CTAs": (Change(r"all = max\(1, kCtaGroup \* pieces\)", "all = max(1, pieces)"), SPLIT),
    "share off by one": (Change(r"return cta \* share \+ min\(cta, longer\);", "return cta * share + min(cta, longer - 1);"), SPLIT),
}  # fmt: skip
LINE_MUTANTS = {
    "query over the line": Change(r"\n *named_barrier_sync\(kLineBarrier, kNumThreads\);", "\n    named_barrier_arrive(kLineBarrier, kNumThreads);"),
    "row of another sequence": Change(r"page_table_of\(problem, tile\.sequence\)", "page_table_of(problem, tile.sequence ^ 1)"),
    "page of the unit before": Change(r"rows\.look_up\(unit \+ 1\) : 0", "rows.look_up(unit) : 0"),
    "tile of the line, begun again": Change(r"fill\(tile, tile\.end\);", "fill(tile, tile.begin);"),
    "a query of a tile without keys": Change(r"\n *if \(tile\.units\.count\(\) == 0\) return;[^\n]*"),
}  # fmt: skip
SPLIT_MUTANTS = {
    "a ticket for both CTAs": Change(r"kTileRows \* cluster_rank\(\)(?=, |\) \+)", "0"),
    "rows of the other CTA": Change(r"item / kQuads \+ first_row", "item / kQuads"),
}  # fmt: skip
QUICK = ("handed over without a release", "sum of half a row")


@cache
def original(source: str) -> Kernel:
    return kernel_of({**KEYS, **SOURCES[source]})


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("source", "case"),
    [
        ("pages", LENGTHS),
        ("larger of two ends", TILES),
        pytest.param("dense", SPLIT, marks=pytest.mark.seeds),
        pytest.param("dense", TILES, marks=pytest.mark.seeds),
        pytest.param("dense", ROWS, marks=pytest.mark.seeds),
        pytest.param("lengths", LENGTHS, marks=pytest.mark.seeds),
        pytest.param("window", SPLIT, marks=pytest.mark.seeds),
        pytest.param("all", LENGTHS, marks=pytest.mark.seeds),
        pytest.param("all", SPLIT, marks=pytest.mark.seeds),
    ],
)
def test_two_launches_on_a_workspace_are_right(source: str, case: Case) -> None:
    assert failures(original(source), case) == []


def wrong_splits(kernel: Kernel, case: Case) -> list[str]:
    """Return the errors of two launches on one workspace; tickets are in its partial results."""
    problem = AttentionFamily(kernel.plan).draw(case, 7)
    emulated = EmulatedKernel(kernel.plan, KeptWorkspace(kernel))  # type: ignore[arg-type]
    reference = problem.reference(np)
    found: list[str] = []
    for _ in range(2):
        try:
            _, wrong = reference.compare(problem.memory, emulated.run(problem.memory), np)
        except FindingsError as error:
            return [str(error)]
        found += [failure.message for failure in wrong]
    return found


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("source", "case"),
    [
        ("pages in splits", LENGTHS),
        pytest.param("splits", SPLIT, marks=pytest.mark.seeds),
        pytest.param("splits", RING, marks=pytest.mark.seeds),
        pytest.param("splits", ROWS, marks=pytest.mark.seeds),
    ],
)
def test_splits_of_a_fixed_number_of_keys_are_right(source: str, case: Case) -> None:
    assert wrong_splits(original(source), case) == []


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
    **{
        name: ShownMutant({**KEYS, **SOURCES["splits"]}, change, SPLIT, wrong_splits)
        for name, change in SPLIT_MUTANTS.items()
    },
}
