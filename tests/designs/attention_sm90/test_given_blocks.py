"""Plans over blocks that a call names, and what such blocks do not go with."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.runtime.schedule import ProblemSize, given_list_bytes, plan_schedule

KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
SMALL = {"rows": 64, "keys": 64}


def plan_of(**keys: Any) -> Any:
    return build_plan(load_mapping({**KEYS, "blocks": SMALL, **keys}, "probe").config)


def test_a_block_of_the_kernel_is_one_of_a_list() -> None:
    plan = plan_of()
    assert plan.takes_blocks
    assert not plan.lists_blocks
    assert (plan.BM, plan.BN, plan.num_kv_stages) == (192, 64, 5)
    assert plan_of(blocks={"rows": 128, "keys": 128}).BN == 128
    assert not build_plan(load_mapping(KEYS, "probe").config).takes_blocks


def test_a_tile_has_a_list_of_its_own_for_each_warpgroup() -> None:
    assert plan_of().region("tile").slot_bytes == 48
    plan = plan_of(batching="ragged")
    assert plan.region("tile").slot_bytes == 64
    assert not plan.mixed_tile_heights
    listing = plan.tile_list
    assert listing.entry_point == "fa4gen_probe_list_blocks"
    assert listing.grid(7) == 7
    names = [row.name for row in listing.parameters]
    assert names[:4] == [
        "given_block_offsets", "given_block_indices", "query_offsets", "key_offsets",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"mask": "key % 3 == 0"}, "with mask: key % 3 == 0"),
        ({"score": "score - 0.5 * (query - key)"}, "with score"),
        ({"dtype": "fp8_e4m3"}, "with dtype: fp8_e4m3"),
        ({"cta_group": 2, "ping_pong": True}, "with cta_group: 2 and ping_pong: true"),
        ({"dependent_launch": True}, "with dependent_launch: true"),
        ({"tile_heads": 2}, "with tile_heads: 2"),
        ({"epilogue": "tma_store"}, "with epilogue: tma_store"),
        ({"BN": 128}, "BN: 128 with blocks of 64 keys"),
        ({"blocks": {"rows": 32, "keys": 64}}, "32"),
        ({"arch": "sm_100a"}, "blocks"),
        ({"depth": 512, "cta_group": 2}, "blocks"),
    ],
)
def test_what_named_blocks_do_not_go_with_is_refused(keys, words) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(**keys)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("heads", "rows", "tiles"),
    [((1, 1), 192, 1), ((1, 1), 193, 2), ((2, 1), 193, 4), ((8, 4), 65, 6)],
)
def test_a_tile_takes_units_of_64_rows_of_the_heads_of_a_key_head(heads, rows, tiles) -> None:
    query_heads, group = heads
    size = ProblemSize(1, query_heads, group, rows, 64 * 33)
    schedule = plan_schedule(plan_of(), size, 132)
    assert (schedule.num_tiles, schedule.grid) == (tiles, tiles)
    assert given_list_bytes(plan_of(), size) == tiles * (48 + 2 * 16)


def test_tiles_of_sequences_are_at_most_those_with_room() -> None:
    plan = plan_of(batching="ragged")
    lengths = (1, 64, 65, 0, 193)
    size = ProblemSize(len(lengths), 4, 2, sum(lengths), 1000)
    of_head = sum(-(-2 * -(-rows // 64) // 3) for rows in lengths)
    assert plan_schedule(plan, size, 132).num_tiles >= 2 * of_head
    nothing = ProblemSize(0, 4, 2, 0, 0)
    assert plan_schedule(plan, nothing, 132).grid == 0
    assert given_list_bytes(plan, nothing) == 0
