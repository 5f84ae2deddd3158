# ruff: noqa: E501 (a mutant is on the line of its name)
"""Decode at depth 512, whose query is in shared memory: right, and mutants of the kernel are not."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.verify.cases import Case
from tests.kernels.attention.launches import ShownMutant, failures
from tests.kernels.source_mutation import Change, kernel_of

KEYS: dict[str, Any] = {"arch": "sm_90a", "depth": 512, "mask": "causal", "pack_heads": True}
PAGES: dict[str, Any] = {"keys": "paged", "page_size": 16}

# Six tiles of two blocks for four CTAs, so that a CTA takes a query after another one.
SPLIT = Case("test/split", 1, 4, 2, 3, 129)
LENGTHS = Case("test/lengths", 4, 2, 1, 2, 200, lengths=((2, 200), (2, 0), (2, 33), (2, 64)))
# One CTA with a tile after another.
TILES = Case("test/tiles", 3, 8, 1, 1, 70, multiprocessors=1)

MUTANTS = {
    "query read early": (Change(r"\n *named_barrier_sync[^\n]*;  // the query is there", ""), SPLIT),
    "query not swizzled": (Change(r"\(chunk \^ swizzle\) << 4\) \+ lane", "chunk << 4) + lane"), SPLIT),
    "columns of the other step": (Change(r"pair\[k % 2 \* 2\]", "pair[(k + 1) % 2 * 2]"), SPLIT),
    "line of the row beside": (Change(r"lane % 8 \* kPanelRowBytes", "(lane + 1) % 8 * kPanelRowBytes"), SPLIT),
    "panel of the query before": (Change(r"steps / kPanelPairs \* kBM", "max(0, steps / kPanelPairs - 1) * kBM"), SPLIT),
    "rows of the first warp": (Change(r"part \* kWarpRows \+ i;", "i;"), SPLIT),
    "query of a tile before": (Change(r"tensors\.query \+ __shfl_sync\(0xffffffffu, place_of_own, i\)", "tensors.query"), TILES),
}  # fmt: skip
SHOWN = {name: ShownMutant(KEYS, change, case) for name, (change, case) in MUTANTS.items()}
QUICK = ()


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("case", "paged"),
    [
        pytest.param(SPLIT, False, id="split"),
        pytest.param(LENGTHS, True, id="paged", marks=pytest.mark.seeds),
        pytest.param(TILES, False, id="tiles", marks=pytest.mark.seeds),
    ],
)
def test_two_launches_on_a_workspace_are_right(case: Case, paged: bool) -> None:
    assert failures(kernel_of({**KEYS, **(PAGES if paged else {})}), case) == []
