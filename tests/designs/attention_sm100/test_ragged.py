"""Plans of Blackwell kernels whose sequences differ in length."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError

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


PAIR: dict[str, Any] = {"batching": "ragged", "keys": "paged", "page_size": 16, "cta_group": 2}


@pytest.mark.parametrize(
    ("keys", "softmax", "other"),
    [
        (PAIR, 200, 48),
        ({**PAIR, "depth": 192, "value_depth": 128}, 200, 56),  # three parts of K
        ({**PAIR, "depth": 192, "value_depth": 128, "scheduler": "static"}, 200, 48),
        ({**PAIR, "depth": 256, "value_depth": 64}, 184, 80),
        ({"batching": "ragged", "cta_group": 2, "depth": 192}, 200, 56),  # 4 to 44 bytes spilled
        ({"batching": "ragged", "cta_group": 2, "depth": 192, "scheduler": "static"}, 200, 48),
        ({"batching": "ragged", "cta_group": 2}, 200, 48),
    ],
)
def test_the_loader_of_pairs_with_pages_gets_what_it_needs(
    keys: dict[str, Any], softmax: int, other: int
) -> None:
    plan = plan_of(**keys)
    assert (plan.softmax_registers, plan.other_registers) == (softmax, other)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({**PAIR, "registers": {"softmax": 200, "correction": 64, "other": 32}},
         "registers: other needs 48, but has 32"),
        ({"batching": "ragged", "registers": {"softmax": 168, "correction": 64, "other": 48},
          "BN": 128}, "needs 48 more"),
        ({"batching": "ragged", "depth": 64, "BN": 160}, "needs 48 more"),
    ],
)  # fmt: skip
def test_registers_that_spilled_are_refused(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        plan_of(**keys)
    del keys["batching"]
    dense = {"keys": "auto", "page_size": None}
    assert plan_of(**{**keys, **dense}).BN  # which dense batches have enough of
