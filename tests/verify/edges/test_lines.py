"""The line of a problem is cut as the kernels cut it: places, CTAs with a share, pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fa4gen.config.find import find_configs
from fa4gen.designs.common.decode_model import SharedKeysPlan
from fa4gen.verify.cases import Case
from fa4gen.verify.edges.lines import KernelLine, line_of, sharing, units_of
from tests.shipped import plan_of

ONE_ROW = Case("test/line", 1, 1, 1, 1, 1)


def shared(name: str) -> SharedKeysPlan:
    plan = plan_of(find_configs([name])[0])
    assert isinstance(plan, SharedKeysPlan)
    return plan


@pytest.mark.parametrize(
    ("name", "heads", "keys", "chip", "launched", "shares", "units"),
    [
        # blocks of four units: of 4 tiles of 5 units there are 5 whole blocks, of 8 that are begun
        ("decode_d128_bf16", 4, 128 + 32, 8, 8, 5, 5),
        ("decode_d128_bf16", 4, 128 + 32, 4, 4, 4, 5),
        ("decode_d128_bf16", 1, 1, 8, 1, 1, 1),
        # blocks of one unit, and CTAs in pairs: the last of four has no block of three
        ("decode_mla_bf16", 1, 3 * 64, 8, 4, 3, 3),
        # five for each of three tiles, for 16 pairs; four for each of two, for nine
        ("fa4_decode_mla_bf16", 3, 6 * 64, 32, 16, 15, 6),
        ("fa4_decode_mla_bf16", 2, 6 * 64, 18, 9, 9, 6),
        # as many as there are splits of 8 blocks
        ("decode_d128_splits_bf16", 2, 1024 + 1, 8, 4, 4, 33),
    ],
)  # fmt: skip
def test_ctas_have_shares_as_in_the_kernels(
    name, heads, keys, chip, launched, shares, units
) -> None:
    plan = shared(name)
    case = replace(ONE_ROW, query_heads=heads, key_heads=heads, key_rows=keys, multiprocessors=chip)
    line = line_of(plan, case)
    assert units_of(plan, 1, keys) == units
    places = -(-units // plan.split_units) if plan.split_blocks else units
    assert line == KernelLine((places,) * heads, launched, shares)
    assert line.idle is (launched > shares)


def test_tiles_have_the_pieces_of_the_shares_that_they_are_in() -> None:
    line = KernelLine((3, 3, 3), 3, 2)
    assert (line.begins, line.pieces, line.uneven) == ((0, 5, 9), (1, 2, 1), True)
    assert KernelLine((4,), 4, 4).pieces == (4,)
    assert not KernelLine((4,), 4, 4).uneven


def test_sequences_have_places_of_their_own() -> None:
    plan = shared("decode_d128_paged64_bf16")
    case = replace(ONE_ROW, batch=3, key_rows=200, lengths=((1, 200), (1, 0), (1, 33)))
    assert line_of(plan, case).tiles == (7, 1, 2)


def test_threads_share_the_quads_of_few_rows() -> None:
    plan = shared("decode_d128_bf16")
    # a row of 128 columns has 32 quads, 4 of them in each of 8 slices, for 256 threads
    assert sharing(plan, 1, 8) == 8
    assert sharing(plan, 8, 8) == 8
    assert sharing(plan, 8, 2) == 2
    assert sharing(plan, 8, 1) == 1
