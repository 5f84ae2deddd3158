"""Launchers of sequences of different lengths with one mistake each are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.verify.cases import Case
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.test_mutants import LAUNCHER, Mutant

if TYPE_CHECKING:
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

RAGGED = Case("ragged", 3, 2, 1, 40, 60, lengths=((5, 20), (40, 60), (3, 33)))
ROWS = Case("rows", 2, 1, 1, 140, 20, lengths=((140, 20), (140, 20)))
PAGED = Case("paged", 2, 2, 1, 5, 33, lengths=((5, 33), (5, 20)))

LISTED = "    TRY_DRIVER(driver.cuLaunchKernelEx(&before, packed->list_function, of_list, NULL));\n"
LAUNCHED = "    TRY_DRIVER(driver.cuLaunchKernelEx(&config, packed->function, parameters, NULL));\n"


def ragged(name: str, old: str, new: str, refused: str, case: Case = RAGGED) -> Mutant:
    return Mutant(name, "ragged", Edit(LAUNCHER, old, new), case, refused)


def paged(name: str, old: str, new: str, refused: str) -> Mutant:
    return Mutant(name, "paged", Edit(LAUNCHER, old, new), PAGED, refused)


def launch(name: str, old: str, new: str, refused: str) -> Mutant:
    return ragged(name, old, new, refused)


MUTANTS = (
    paged("sinks of no head", "values->sinks = args->sinks;", "values->sinks = args->lse;", "race"),
    paged(
        "pages one row further apart",
        "values->key_page_rows = (int32_t)rows_between(&tensors[1]);",
        "values->key_page_rows = (int32_t)rows_between(&tensors[1]) + 1;",
        "numbers",
    ),
    paged(
        "a row of the page table one entry short",
        "values->page_table_stride = (int32_t)args->page_table_stride;",
        "values->page_table_stride = (int32_t)args->page_table_stride - 1;",
        "",
    ),
    paged(
        "lengths of the next sequence",
        "values->key_lengths = args->key_lengths;",
        "values->key_lengths = args->key_lengths + 1;",
        "",
    ),
    paged(
        "keys of a page for those of a sequence",
        "size.key_rows = args->most_pages * kernel->traits.page_size;",
        "size.key_rows = args->key_rows;",
        "numbers",
    ),
    paged(
        "a map of as many places as a page has rows",
        "is_one ? 2 : (of->extents[0] - 1) * rows_between(of) + of->extents[1] + 1;",
        "of->extents[1] + 1;",
        "numbers",
    ),
    ragged(
        "offsets of the keys for those of the queries",
        "values->query_offsets = args->query_offsets;",
        "values->query_offsets = args->key_offsets;",
        "",
    ),
    ragged(
        "the second sequence's offset first",
        "values->key_offsets = args->key_offsets;",
        "values->key_offsets = args->key_offsets + 1;",
        "",
    ),
    ragged("rows are not taken back", "WRAP - step;", "WRAP;", "out-of-bounds"),
    ragged(
        "rows end where the tensor does",
        "extents->extent[DIM_ROW] = END_ROW;",
        "extents->extent[DIM_ROW] = of->extents[1];",
        "numbers",
    ),
    ragged(
        "a list for half of the tiles",
        "values->max_tiles = (int32_t)schedule->tiles_per_head;",
        "values->max_tiles = (int32_t)schedule->tiles_per_head / 4;",
        "unwritten",
        ROWS,
    ),
    ragged(
        "the list over the counter",
        "(uintptr_t)args->workspace + (uintptr_t)kernel->workspace_bytes",
        "(uintptr_t)args->workspace + 0 * (uintptr_t)kernel->workspace_bytes",
        "",
    ),
    ragged(
        "a workspace without the list",
        "if (kernel->list_rows > 0 && is_extent(args->batch)",
        "if (kernel->list_rows < 0 && is_extent(args->batch)",
        "out-of-bounds",
    ),
    ragged(
        "a batch for each sequence's output",
        "const int packed = of_queries ? traits->query_offsets : traits->key_offsets;",
        "const int packed = of_queries ? 0 : traits->key_offsets;",
        "refused the call",
    ),
    launch(
        "the list after the kernel",
        LISTED,
        LAUNCHED + LISTED + "    return ACME_OK;\n",
        "unwritten",
    ),
    launch("no list", "if (kernel->list_entry != NULL) { /*", "if (0) { /*", "expected 2"),
    launch(
        "the list on another stream",
        "before.grid_x = 1;",
        "before.grid_x = 1;\n    before.stream = NULL;",
        "on the streams 0x0",
    ),
    launch(
        "a warp for the list", "before.block_x = kernel->list_threads;", "before.block_x = 31;", ""
    ),
)


@pytest.mark.parametrize(
    ("kernel", "case"), [("ragged", RAGGED), ("ragged", ROWS), ("paged", PAGED)]
)
def test_the_launcher_as_it_is_passes(sequences: Builds, kernel: str, case: Case) -> None:
    assert sequences.refusals(kernel, case) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.kernel}-{mutant.name}")
def test_a_wrong_launcher_is_refused(sequences: Builds, mutant: Mutant) -> None:
    found = sequences.refusals(mutant.kernel, mutant.case, mutant.edit)
    assert found, "it passes"
    assert mutant.refused in "\n".join(found)
