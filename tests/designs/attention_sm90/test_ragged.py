"""Plans of kernels whose sequences differ in length, and where such are refused."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.toolchain.choose import choose
from fa4gen.toolchain.compile import find_compiler

KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}

RAGGED = {"batching": "ragged"}
PAGED = {"keys": "paged", "page_size": 64}


def plan_of(**keys: Any) -> Any:
    return build_plan(load_mapping({**KEYS, **keys}, "probe").config)


def test_a_dense_plan_has_none_of_it() -> None:
    plan = plan_of()
    assert plan.tile_list is None
    assert not plan.has_tile_lengths
    assert plan.region("tile").slot_bytes == 16
    assert plan.tensor_map("query").dims == ("column", "row", "panel", "head", "batch")


def test_a_ragged_plan() -> None:
    plan = plan_of(batching="ragged")
    assert plan.tile_list.entry_point == "fa4gen_probe_list_tiles"
    assert plan.tile_list.tile_rows == plan.BM
    assert plan.region("tile").slot_bytes == 32
    for name in ("query", "key", "value"):
        row = plan.tensor_map(name)
        assert row.dims == ("column", "row", "head", "place", "wrap")
        assert row.box == (64, 64 if name == "query" else plan.BN, 1, 1, 1)
    assert plan.mixed_tile_heights
    names = [row.name for row in plan.parameters]
    assert "tile_list" in names
    assert not {"num_tiles", "out_batch_stride", "query_offsets"} & set(names)


def test_a_pair_lists_two_tiles_at_once() -> None:
    assert plan_of(batching="ragged", cta_group=2).tile_list.tile_rows == 2 * plan_of().BM


@pytest.mark.parametrize(
    ("keys", "rows"),
    [
        ({"page_size": 16}, 16),
        ({"page_size": 64}, 32),  # of a block of 96
        ({"page_size": 256}, 32),
        ({"page_size": 64, "BN": 64}, 64),
        ({"page_size": 64, "cta_group": 2}, 16),  # of half a block
    ],
)
def test_a_box_is_of_one_page_and_of_one_block(keys: dict[str, Any], rows: int) -> None:
    plan = plan_of(batching="ragged", keys="paged", **keys)
    assert plan.box_rows == rows
    assert plan.tensor_map("value").box[1] == rows
    assert (plan.BN // plan.cta_group) % rows == 0
    assert plan.page_size % rows == 0


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"depth": 256, "cta_group": 2, "mask": "causal", **RAGGED},
        {"depth": 64, "cta_group": 2, "mask": "causal", "scheduler": "dynamic", **PAGED},
    ],
)
def test_what_spills_at_first_compiles_clean(keys: dict[str, Any]) -> None:
    chosen = choose(load_mapping({**KEYS, **keys}, "probe"), find_compiler())
    assert chosen.kernel.clean
    assert chosen.left
