"""Tiles with rows of several query heads: the kernels, and mutants of their arithmetic."""

from __future__ import annotations

import pytest

from tests.kernels.source_mutation import Change, Kernel, kernel_of, verify

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
KEYS = {"arch": "sm_90a", "dtype": "fp16", "depth": 64, "tile_heads": 4}
KERNELS = {
    "causal": {"mask": "causal"},
    "dense": {"tile_heads": 8},
    "window": {"mask": {"sliding_window": 100}, "sinks": True, "tile_heads": 2},
    "stored": {"mask": "causal", "epilogue": "tma_store", "scheduler": "static"},
    "capped": {"mask": {"chunked": 64}, "softcap": 20.0, "BM": 128},
}
CASES = ("tiles/many", "more_queries/*", "empty/*")
CHANGES = {
    "a row's query": Change(
        r"static_cast<uint32>\(row\) / kTileHeads", "static_cast<uint32>(row) % kTileHeads"
    ),
    "a row's head": Change(
        r"tile\.head \+ static_cast<uint32>\(row\) % kTileHeads",
        "tile.head + static_cast<uint32>(row) / kTileHeads % kTileHeads",
    ),
    "which queries are loaded": Change(
        r"query_of\(tile\.first_row \+ w \* kWarpgroupRows\), 0, tile\.batch,\s+ring",
        "tile.first_row + w * kWarpgroupRows, 0, tile.batch, ring",
    ),
    "which keys a row sees": Change(r"query_of\(thread_row\) \+ diagonal", "thread_row + diagonal"),
    "which keys the second row sees": Change(
        r"query_of\(thread_row \+ 8\) \+ diagonal", "query_of(thread_row) + 8 + diagonal"
    ),
    "where the second row is": Change(
        r"row \+ 8 / kTileHeads \* r \* out\.row_stride", "row + 8 * r * out.row_stride"
    ),
    "which rows are there": Change(r"inside = query_of\(thread_row\) \+", "inside = thread_row +"),
    "the second row's logarithm": Change(r"query \+ 8 / kTileHeads;", "query + 8;"),
    "whose logarithm": Change(
        r"problem\.query_heads \+\s+head_of\(tile, thread_row\)", "problem.query_heads + tile.head"
    ),
    "heads of a batch": Change(r"tile\.head = kTileHeads \* head -", "tile.head = head -"),
}
OF_SEVERAL_TILES = {
    "which blocks are masked": Change(
        r"> query_of\(first_row\) \+ diagonal", "> first_row + diagonal"
    ),
    "which blocks are loaded": Change(r"query_of\(first_row \+ num_rows\)", "query_of(num_rows)"),
}


def made(**keys: object) -> Kernel:
    return kernel_of({**KEYS, **keys})


@pytest.mark.parametrize("keys", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_the_kernel_is_right(keys: dict[str, object], case: str) -> None:
    verdict, _ = verify(made(**keys), case, 3)
    assert verdict.passed, verdict


@pytest.mark.parametrize("about", [*CHANGES, *OF_SEVERAL_TILES])
def test_a_mistake_is_found_in_the_numbers(about: str) -> None:
    kernel = made(mask="causal")
    change, case = CHANGES.get(about), "tiles/many"
    if change is None:
        change, case = OF_SEVERAL_TILES[about], "tiles/square"
    verdict, _ = verify(kernel.with_code(change.apply(kernel.code)), case, 3)
    assert not verdict.passed
    assert {failure.check for case in verdict.cases for failure in case.failures}
