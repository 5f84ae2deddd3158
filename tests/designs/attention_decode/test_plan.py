"""The plan of decode kernels: sizes that follow from packed rows, depth and where keys are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.designs.registry import design_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan

    PlanOf = Callable[..., AttentionPlan]

DEPTHS = (64, 96, 128, 192, 256)


def test_pack_heads_asks_for_the_design(plan_of: PlanOf) -> None:
    assert design_of(plan_of(pack_heads=True)).name == "attention_decode"
    assert design_of(plan_of()).name == "attention_sm90"
    assert not plan_of().splits_keys
    assert plan_of().workspace_bytes(132) == 0


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("paged", [False, True])
def test_a_block_is_what_the_warps_take_and_fills_a_slot(
    plan_of: PlanOf, depth: int, paged: bool
) -> None:
    pages = {"keys": "paged", "page_size": 16} if paged else {}
    plan = plan_of(pack_heads=True, depth=depth, **pages)
    assert plan.num_parts * plan.part_keys == plan.BN
    assert plan.region("kv").slot_bytes == plan.BN * depth * 2
    full, empty = plan.barrier("kv_full"), plan.barrier("kv_empty")
    assert full.slots == empty.slots == plan.num_kv_stages >= 5
    assert full.transaction_bytes == plan.region("kv").slot_bytes
    assert empty.arrivals == plan.num_consumer_warps
    assert plan.launch.dynamic_shared_bytes <= 232448
    assert plan.launch.threads == 32 * (plan.num_consumer_warps + 1)
    # A box brings in a unit, of which shares have whole ones; of pages a lane copies one box.
    columns, rows, panels, _, _ = plan.tensor_map("key").box
    assert plan.unit_keys % plan.part_keys == 0
    assert 4 * plan.unit_keys == plan.BN
    boxes = plan.BN // rows * (depth // (columns * panels))
    assert boxes == (plan.BN // 16 * (depth // columns) if paged else 4)
    assert boxes <= 32


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_exchange_takes_the_columns_in_equal_parts(plan_of: PlanOf, depth: int) -> None:
    for rows in (8, 16):
        if (depth, rows) == (256, 16):
            continue
        plan = plan_of(pack_heads=True, depth=depth, packed_rows=rows)
        assert rows == plan.BM
        assert depth % plan.exchange_columns == 0
        assert plan.exchange_columns % 16 == 0
        assert plan.region("exchange").slot_bytes == rows * (plan.exchange_columns + 4) * 4


@pytest.mark.parametrize(("depth", "registers"), [(64, 168), (128, 168), (192, 255), (256, 255)])
def test_registers_are_those_of_a_quarter_of_a_multiprocessor(
    plan_of: PlanOf, depth: int, registers: int
) -> None:
    # Nine warps: three of a quarter's 16384 registers, 170 a thread. Five: two of a quarter.
    plan = plan_of(pack_heads=True, depth=depth)
    assert {role.registers for role in plan.roles} == {registers}


@pytest.mark.parametrize(("depth", "warpgroups"), [(64, 2), (128, 2), (192, 1), (256, 1)])
def test_wide_tiles_are_of_warpgroups(plan_of: PlanOf, depth: int, warpgroups: int) -> None:
    plan = plan_of(pack_heads=True, depth=depth, packed_rows=64)
    assert plan.num_parts == warpgroups
    assert plan.num_consumer_warps == 4 * warpgroups
    assert plan.unit_keys == plan.part_keys == 64
    assert plan.wgmma_columns == tuple(sorted({64, depth}))
    assert plan.region("query").slot_bytes == 64 * depth * 2
    assert plan.region("exchange").slots == warpgroups
    assert plan.barrier("kv_empty").arrivals == 4 * warpgroups
    assert plan.num_kv_stages >= 4
    assert plan.launch.dynamic_shared_bytes <= 232448


def test_ctas_wait_for_one_another_only_where_shares_are_even(plan_of: PlanOf) -> None:
    assert plan_of(pack_heads=True).launch.cooperative
    assert not plan_of(pack_heads=True, split_keys={"keys": 1024}).launch.cooperative
    assert not plan_of().launch.cooperative


def test_the_workspace_depends_on_the_chip_alone(plan_of: PlanOf) -> None:
    plan = plan_of(pack_heads=True)
    partial = 8 * (128 + 4) * 4
    assert plan.ticket_bytes == 1024 * 4
    assert plan.workspace_bytes(132) == plan.ticket_bytes + 132 * 2 * partial
    assert plan.workspace_bytes(5000) == plan.workspace_bytes(1024)


def test_parameters_name_lengths_and_pages_only_where_they_are(plan_of: PlanOf) -> None:
    names = {row.name for row in plan_of(pack_heads=True).parameters}
    assert {"query", "tickets", "partials", "tiles_per_head"} <= names
    assert not {"key_lengths", "page_table", "query_map", "tile_counter"} & names
    paged = plan_of(pack_heads=True, keys="paged", page_size=64)
    assert {"key_lengths", "page_table", "key_page_rows"} <= {r.name for r in paged.parameters}
    assert paged.most_sequences == 4096


def test_lines_of_l2_are_as_narrow_as_a_row(plan_of: PlanOf) -> None:
    assert {row.l2_promotion for row in plan_of(pack_heads=True).tensor_maps} == {128}
    assert {row.l2_promotion for row in plan_of().tensor_maps} == {256}


def test_splits_of_a_fixed_number_of_keys_have_a_partial_result_each(plan_of: PlanOf) -> None:
    plan = plan_of(pack_heads=True, split_keys={"keys": 1024})
    assert plan.line_step == 1024 // plan.BN
    assert plan.ticket_bytes == 0
    assert plan.workspace_bytes(132, 300) == 300 * 8 * (128 + 4) * 4
    names = {row.name for row in plan.parameters}
    assert "partials" in names
    assert "tickets" not in names
    assert plan_of(pack_heads=True).line_step == 1
