"""The plan of decode kernels whose keys and values are fp8 beside a query of 16 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan

    PlanOf = Callable[..., AttentionPlan]

DEPTHS = (64, 96, 128, 192, 256)
FP8 = {"pack_heads": True, "kv_dtype": "fp8_e4m3"}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("paged", [False, True])
def test_a_block_of_as_many_bytes_has_twice_as_many_keys(
    plan_of: PlanOf, depth: int, paged: bool
) -> None:
    pages = {"keys": "paged", "page_size": 16} if paged else {}
    plan = plan_of(depth=depth, **FP8, **pages)
    wide = plan_of(depth=depth, pack_heads=True, **pages)
    assert plan.num_parts * plan.part_keys == plan.BN
    assert (wide.BN if depth == 96 else 2 * wide.BN) == plan.BN, "three panels are more boxes"
    assert plan.region("kv").slot_bytes == plan.BN * depth
    assert plan.barrier("kv_full").transaction_bytes == plan.BN * depth
    for name in ("key", "value"):
        tensor_map = plan.tensor_map(name)
        columns, rows, panels, _, _ = tensor_map.box
        assert columns == tensor_map.swizzle == plan.panel_columns, "bytes of a row of a panel"
        assert depth % columns == 0
        assert rows == (16 if paged else plan.unit_keys)
        boxes = plan.BN // rows * (depth // (columns * panels))
        assert boxes <= 32, "a lane copies one"


def test_l2_fetches_no_row_of_the_next_head(plan_of: PlanOf) -> None:
    fetched = {
        depth: plan_of(depth=depth, **FP8).tensor_map("key").l2_promotion for depth in DEPTHS
    }
    assert fetched == {64: 64, 96: 64, 128: 128, 192: 128, 256: 128}


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_types_and_scales(plan_of: PlanOf, dtype: str) -> None:
    plan = plan_of(dtype=dtype, **FP8)
    assert (plan.dtype, plan.kv_dtype, plan.out_dtype) == (dtype, "fp8_e4m3", dtype)
    assert (plan.element_bytes, plan.kv_element_bytes) == (2, 1)
    assert plan.operand_dtype == "fp16", "which holds every e4m3"
    assert plan.descaled == ("key", "value")
    names = [row.name for row in plan.parameters]
    assert names.index("value_descale") == names.index("key_descale") + 1
    assert "query_descale" not in names


def test_without_it_nothing_has_scales(plan_of: PlanOf) -> None:
    plan = plan_of(pack_heads=True)
    assert plan.descaled == ()
    assert plan.kv_dtype == plan.operand_dtype == plan.dtype
    assert not {"key_descale", "value_descale"} & {row.name for row in plan.parameters}
