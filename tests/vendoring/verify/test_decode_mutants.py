"""Launchers of decode kernels with one mistake each are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.verify.cases import Case
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.test_mutants import LAUNCHER, Mutant, attention

if TYPE_CHECKING:
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

PIECES = Case("pieces", 1, 2, 1, 1, 1000, multiprocessors=4)
LONG = Case("long", 1, 2, 1, 1, 5000, multiprocessors=4)
HEADS = Case("heads", 2, 4, 2, 3, 300, "padded", multiprocessors=3)
SPLITS = Case("splits", 2, 2, 1, 1, 700, lengths=((1, 700), (1, 300)), multiprocessors=3)

INIT = "driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 0, bytes, stream)"


def decode(name: str, old: str, new: str, refused: str, case: Case = PIECES) -> Mutant:
    return attention(name, old, new, case, refused, "decode")


def splits(name: str, old: str, new: str, refused: str) -> Mutant:
    return attention(name, old, new, SPLITS, refused, "splits")


MUTANTS = (
    Mutant(
        "workspace not zeroed",
        "decode",
        Edit(LAUNCHER, INIT, f"0 * {INIT}".replace("bytes, stream", "0, stream")),
        PIECES,
        "",
    ),
    Mutant(
        "workspace of splits not zeroed",
        "splits",
        Edit(LAUNCHER, INIT, f"0 * {INIT}".replace("bytes, stream", "0, stream")),
        SPLITS,
        "",
    ),
    Mutant(
        "a launch that is not cooperative",
        "decode",
        Edit(LAUNCHER, "config.attribute_count = 1;", "config.attribute_count = 0;"),
        PIECES,
        "no cooperative one",
    ),
    decode(
        "partial results over the tickets",
        "(char *)args->workspace + kernel->workspace_bytes",
        "(char *)args->workspace + 0 * kernel->workspace_bytes",
        "",
    ),
    decode(
        "room for partial results of one CTA",
        "(shares > 1 ? shares : 1) * kernel->share_bytes;",
        "1 * kernel->share_bytes;",
        "out-of-bounds",
    ),
    splits(
        "room for partial results of one split",
        "schedule->num_tiles * kernel->share_bytes;",
        "1 * kernel->share_bytes;",
        "out-of-bounds",
    ),
    decode(
        "one tile of a key head too few",
        "values->tiles_per_head = (int32_t)schedule->tiles_per_head;",
        "values->tiles_per_head = (int32_t)schedule->tiles_per_head - 1;",
        "",
        HEADS,
    ),
    decode(
        "query heads for key heads",
        "values->key_heads = (int32_t)args->key_heads;",
        "values->key_heads = (int32_t)args->query_heads;",
        "",
        HEADS,
    ),
    decode(
        "the query's head stride as its row stride",
        "values->query_row_stride = args->query.row_stride;",
        "values->query_row_stride = args->query.head_stride;",
        "",
        HEADS,
    ),
    decode(
        "the output for the query",
        "values->query = args->query.data;",
        "values->query = args->out.data;",
        "",
    ),
    Mutant(
        "more CTAs than have room",
        "decode",
        Edit(
            LAUNCHER,
            "packed->grid = (uint32_t)schedule.grid;",
            "packed->grid = (uint32_t)schedule.grid + 1;",
            "/* ---- A call of an attention kernel",
        ),
        LONG,
        "out-of-bounds",
    ),
    splits(
        "lengths of the next sequence",
        "values->key_lengths = args->key_lengths;",
        "values->key_lengths = args->key_lengths + 1;",
        "",
    ),
)


@pytest.mark.parametrize(
    ("kernel", "case"), [("decode", PIECES), ("decode", HEADS), ("splits", SPLITS)]
)
def test_the_launcher_as_it_is_passes(shares: Builds, kernel: str, case: Case) -> None:
    assert shares.refusals(kernel, case) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.kernel}-{mutant.name}")
def test_a_wrong_launcher_is_refused(shares: Builds, mutant: Mutant) -> None:
    found = shares.refusals(mutant.kernel, mutant.case, mutant.edit)
    assert found, "it passes"
    assert mutant.refused in "\n".join(found)
