"""A plan as one object: each fact has a value, and tables are put in their places."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import DESIGNS, design_of
from tests.designs.facts import facts
from tests.shipped import loaded


def plans_of_shipped_configs():
    return [build_plan(loaded(path).config) for path in find_configs(())]


def test_nothing_of_a_plan_is_left_undecided() -> None:
    plans = plans_of_shipped_configs()
    assert {design_of(plan).name for plan in plans} == {design.name for design in DESIGNS}
    for plan in plans:
        auto = [name for name, value in plan.recorded if value == "auto"]
        assert auto == [], plan.name


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_what_a_manifest_has_is_named_once_and_written_in_a_class(design) -> None:
    kind = design.plan.load()
    assert len(set(kind.RECORDED)) == len(kind.RECORDED)
    written = {
        name for one in kind.__mro__ for name in (*vars(one), *vars(one).get("__annotations__", {}))
    }
    assert set(kind.RECORDED) <= written


def test_barriers_are_placed_in_their_region_and_the_launch_has_room_to_align() -> None:
    config = load_mapping(
        {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}, "any"
    ).config
    plan = build_plan(config)
    assert plan.barriers[0].offset == plan.region("barriers").offset
    assert plan.barriers[1].offset == plan.barriers[0].offset + plan.barriers[0].bytes
    assert [replace(row, offset=0) for row in plan.barriers] == list(plan.barrier_rows)
    room = plan.launch.dynamic_shared_bytes - plan.shared_bytes_used
    assert plan.shared[0].alignment <= room < plan.shared[0].alignment + 16
    assert plan.launch.cluster == plan.cta_group


def test_a_changed_plan_keeps_nothing_of_what_followed_from_the_old_one() -> None:
    config = load_mapping(
        {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}, "any"
    ).config
    plan = build_plan(config)
    kept = [
        name
        for name, value in vars(type(plan).__mro__[-2]).items()
        if isinstance(value, cached_property)
    ]
    assert "shared" in kept
    before = plan.shared
    other = replace(plan, num_kv_stages=1)
    assert other.shared != before
    assert plan.shared is before
    assert facts(replace(other, num_kv_stages=plan.num_kv_stages)) == facts(plan)


@pytest.mark.parametrize("batching", ["dense", "ragged"])
def test_names_in_a_vendored_folder_begin_with_its_prefix(batching: str) -> None:
    keys = {
        "kernel": "attention",
        "arch": "sm_90a",
        "dtype": "bf16",
        "depth": 128,
        "batching": batching,
    }
    plan = build_plan(load_mapping(keys, "any").config)
    vendored = replace(plan, vendored_as="acme_any")
    assert (plan.name, plan.entry_point) == ("any", "fa4gen_any")
    assert (vendored.name, vendored.entry_point) == ("acme_any", "acme_any_entry")
    if batching == "ragged":
        assert plan.tile_list
        assert plan.tile_list.entry_point == "fa4gen_any_list_tiles"
        assert vendored.tile_list
        assert vendored.tile_list.entry_point == "acme_any_list_tiles"
