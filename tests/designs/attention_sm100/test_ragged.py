"""Plans of Blackwell kernels whose sequences differ in length."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan

KEYS = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128}
DENSE = ("column", "row", "panel", "head", "batch")
CLIPPED = ("column", "row", "head", "place", "wrap")


def plan_of(**keys: Any) -> Any:
    return build_plan(load_mapping({**KEYS, **keys}, "probe").config)


def test_a_dense_plan_has_none_of_it() -> None:
    plan = plan_of()
    assert plan.tile_list is None
    assert not plan.has_tile_lengths
    assert plan.region("tile").slot_bytes == 16
    assert {row.dims for row in plan.tensor_maps} == {DENSE}


def test_a_ragged_plan() -> None:
    plan = plan_of(batching="ragged")
    assert plan.tile_list.tile_rows == plan.BM
    assert plan.region("tile").slot_bytes == 32
    assert {row.dims for row in plan.tensor_maps} == {CLIPPED}
    rows = {row.name: row.box[1] for row in plan.tensor_maps}
    assert rows == {"query": 128, "key": plan.BN, "value": plan.BN, "out": 128}
    names = {row.name for row in plan.parameters}
    assert {"tile_list", "out", "out_map"} < names
    assert not {"num_tiles", "out_batch_stride", "query_offsets"} & names


def test_lengths_of_dense_batches_clip_keys_alone() -> None:
    plan = plan_of(key_lengths=True)
    dims = {row.name: row.dims for row in plan.tensor_maps}
    assert dims == {"query": DENSE, "key": CLIPPED, "value": CLIPPED, "out": DENSE}
    assert plan.tile_list is None
    assert plan.region("tile").slot_bytes == 32


@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("page_size", [16, 64, 256])
@pytest.mark.parametrize("block", [32, 96, 128])
def test_a_box_is_of_one_page_and_of_one_block(block: int, page_size: int, cta_group: int) -> None:
    plan = plan_of(batching="ragged", keys="paged", page_size=page_size, BN=block,
                   cta_group=cta_group)  # fmt: skip
    for name, rows in (("key", block // cta_group), ("value", block)):
        box = plan.tensor_map(name).box[1]
        assert rows % box == 0
        assert page_size % box == 0
        assert rows // box <= 32  # a lane each
    assert plan.tile_list.tile_rows == cta_group * plan.BM


@pytest.mark.parametrize(
    ("keys", "scheduler"),
    [({}, "static"), ({"batching": "ragged"}, "dynamic"), ({"key_lengths": True}, "dynamic")],
)
def test_pairs_count_tiles_where_sequences_differ(keys: dict[str, Any], scheduler: str) -> None:
    assert plan_of(cta_group=2, **keys).scheduler == scheduler
