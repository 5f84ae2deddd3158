"""Plans of depth 512 on Blackwell whose sequences differ in length."""

from __future__ import annotations

from typing import Any

import pytest

DENSE = ("column", "row", "panel", "head", "batch")
CLIPPED = ("column", "row", "head", "place", "wrap")


def test_a_dense_plan_has_none_of_it(plan_of: Any) -> None:
    plan = plan_of()
    assert plan.tile_list is None
    assert not plan.has_tile_lengths
    assert plan.region("tile").slot_bytes == 16
    assert {row.dims for row in plan.tensor_maps} == {DENSE}


@pytest.mark.parametrize(("dtype", "columns"), [("bf16", 64), ("fp8_e4m3", 128)])
def test_a_ragged_plan_lists_tiles_of_the_pair_and_copies_panels(
    plan_of: Any, dtype: str, columns: int
) -> None:
    plan = plan_of(batching="ragged", dtype=dtype)
    assert plan.tile_list.tile_rows == 2 * plan.BM
    assert plan.region("tile").slot_bytes == 32
    assert {row.dims for row in plan.tensor_maps} == {CLIPPED}
    boxes = {row.name: row.box[:2] for row in plan.tensor_maps}
    part = (columns, 128)
    assert boxes == {"query": (columns, 64), "key": part, "value": part, "out": (64, 64)}
    assert plan.num_kv_stages == plan_of(dtype=dtype).num_kv_stages


def test_lengths_of_dense_batches_clip_keys_alone(plan_of: Any) -> None:
    dims = {row.name: row.dims for row in plan_of(key_lengths=True).tensor_maps}
    assert dims == {"query": DENSE, "key": CLIPPED, "value": CLIPPED, "out": DENSE}


def test_the_shares_of_pairs_are_even_only_where_sequences_are(plan_of: Any) -> None:
    assert plan_of().scheduler == "static"
    for keys in ({"batching": "ragged"}, {"key_lengths": True}, {"keys": "paged", "page_size": 64}):
        assert plan_of(**keys).scheduler == "dynamic"
        assert plan_of(**keys, scheduler="static").scheduler == "static"


@pytest.mark.parametrize("page_size", [16, 32, 64, 128, 256])
def test_a_box_is_of_one_page_and_of_one_part(plan_of: Any, page_size: int) -> None:
    plan = plan_of(batching="ragged", keys="paged", page_size=page_size)
    assert plan.box_rows == plan.tensor_map("value").box[1] == min(page_size, 128)
    boxes = 128 // plan.box_rows * (128 // plan.panel_columns)
    assert boxes <= 32  # a lane each
