"""Plans of kernels whose sequences differ in length, and where such are refused."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from fa4gen.toolchain.batch import compile_many, find_compilers
from fa4gen.toolchain.model import Unit

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


@pytest.mark.parametrize(
    ("keys", "registers"),
    [
        ({"cta_group": 2, **PAGED}, (56, 152)),
        ({"cta_group": 2, **RAGGED, "scheduler": "dynamic"}, (56, 152)),
        ({"cta_group": 2, **RAGGED}, (32, 160)),
        ({"cta_group": 2}, (32, 160)),
        ({**PAGED}, (32, 160)),
        ({**PAGED, "scheduler": "static"}, (56, 152)),
        ({**RAGGED, "scheduler": "static", "depth": 192}, (40, 232)),
        ({**RAGGED, "depth": 192}, (24, 240)),
    ],
)
def test_a_loader_that_looks_up_more_gets_more_registers(
    keys: dict[str, Any], registers: tuple[int, int]
) -> None:
    load, consume = plan_of(**keys).roles[:2]
    assert (load.registers, consume.registers) == registers


def test_a_loader_with_too_few_registers_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(cta_group=2, **PAGED, registers={"producer": 32, "consumer": 160})
    (problem,) = caught.value.problems
    assert problem.message == "registers: the loader needs 40 registers, but has 32"
    assert problem.remedy == "Set registers: {producer: 40, consumer: 152}; or registers: auto."


def test_the_lengths_of_two_tiles_take_the_room_of_an_overlapped_epilogue() -> None:
    deep = {"depth": 256, "cta_group": 2, "mask": "causal"}
    assert plan_of(**deep, scheduler="dynamic").overlap_epilogue
    ragged = plan_of(**deep, **RAGGED)
    assert not ragged.overlap_epilogue
    assert (ragged.BN, ragged.num_pv_chunks_in_flight) == (80, 3)
    (row,) = [row for row in ragged.choices if row.key == "overlap_epilogue"]
    assert row.reason == "the lengths of two tiles do not fit 232 registers"
    with pytest.raises(ConfigError, match="BN: 64"):
        plan_of(**deep, **RAGGED, BN=80, overlap_epilogue=True)


@pytest.mark.parametrize(
    ("keys", "remedy"),
    [
        (
            {"cta_group": 2, "scheduler": "dynamic", **PAGED, "mask": {"sliding_window": 9}},
            "Set scheduler: static; or cta_group: 1.",
        ),
        ({"cta_group": 2, "epilogue": "tma_store", **RAGGED}, "Set epilogue: direct."),
        (
            {"scheduler": "static", "epilogue": "tma_store", **RAGGED},
            "Set epilogue: direct; or scheduler: dynamic.",
        ),
    ],
)
def test_what_spills_whatever_the_block_is_refused(keys: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(depth=256, **keys)
    (problem,) = caught.value.problems
    assert problem.message.endswith("at depth 256")
    assert problem.remedy == remedy
    assert plan_of(depth=192, **keys)


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"depth": 256, "cta_group": 2, "mask": "causal", **RAGGED},
        {"depth": 64, "cta_group": 2, "mask": "causal", "scheduler": "dynamic", **PAGED},
    ],
)
def test_what_spilled_once_compiles_clean(keys: dict[str, Any]) -> None:
    loaded = load_mapping({**KEYS, **keys}, "probe")
    kernel = render(build_plan(loaded.config), loaded, open_templates())
    unit = Unit(kernel.name, kernel.source, kernel.headers, kernel.arch)
    (outcome,) = compile_many([unit], find_compilers("nvrtc"), cache=None, jobs=1)
    assert outcome.kernel is not None
    assert outcome.problems == ()
