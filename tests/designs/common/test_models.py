"""The questions of templates to a plan that are not its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan

if TYPE_CHECKING:
    from fa4gen.designs.common.plans import Plan


def plan_of(**keys: object) -> Plan:
    base = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16"}
    if keys.get("kernel") != "gemm":
        base["depth"] = 128
    return build_plan(load_mapping({**base, **keys}, "any").config)


def test_roles_and_tensor_maps_are_found_by_name() -> None:
    plan = plan_of()
    assert plan.role("load").first_warp == plan.role("mma").first_warp + 1 == 13
    assert plan.tensor_map("out").direction == "store"
    with pytest.raises(KeyError):
        plan.role("load 1")
    with pytest.raises(KeyError):
        plan.tensor_map("lse")


@pytest.mark.parametrize(
    ("keys", "tiles"),
    [
        ({"arch": "sm_90a"}, 1),
        ({"arch": "sm_90a", "cta_group": 2}, 2),
        ({"arch": "sm_90a", "depth": 512, "cta_group": 2}, 1),
        ({"cta_group": 2}, 2),
        ({"depth": 512, "cta_group": 2}, 2),
    ],
)
def test_tiles_of_a_cluster(keys: dict[str, object], tiles: int) -> None:
    assert plan_of(**keys).tiles_per_cluster == tiles


def test_parts_of_the_probabilities_follow_each_other() -> None:
    plan = plan_of(BN=96, num_pv_stages=3)
    assert plan.pv_ranges == ((0, 32), (32, 64), (64, 96))
    assert plan_of().pv_ranges == ((0, 96), (96, 128))
    assert [plan.probability_column(key) for key in (0, 32, 96)] == [0, 16, 48]
    fp8 = plan_of(dtype="fp8_e4m3")
    assert fp8.probability_column(32) == fp8.packed_registers == 8
    assert plan.packed_registers == 16


def test_keys_whose_exponentials_the_fma_pipe_computes() -> None:
    shares = {0.0: 0, 0.125: 2, 0.375: 6, 1.0: 16}
    assert {s: plan_of(exp2_fma_share=s).fma_keys for s in shares} == shares


def test_stages_of_scores() -> None:
    two, one = plan_of(value_depth=96), plan_of(BM=128, value_depth=256, BN=96)
    assert (two.score_stages, one.score_stages) == (1, 2)


def test_what_a_thread_has_at_depth_512() -> None:
    plan = plan_of(depth=512, cta_group=2)
    assert (plan.row_keys, plan.half_columns, plan.lane_columns) == (128, 256, 128)
    assert plan_of(arch="sm_90a", depth=512, cta_group=2).own_chunks == 4


@pytest.mark.parametrize(
    ("keys", "layout", "panels"),
    [
        ({"BM": 128}, "rows", 1),
        ({"BM": 64, "cta_group": 1}, "quarters", 1),
        ({"BM": 64, "cta_group": 2}, "halves", 2),
    ],
)
def test_layout_of_an_accumulator(keys: dict[str, object], layout: str, panels: int) -> None:
    plan = plan_of(kernel="gemm", **keys)
    assert (plan.accumulator_layout, plan.slot_panels) == (layout, panels)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"arch": "sm_90a"},
        {"depth": 512, "cta_group": 2},
        {"arch": "sm_90a", "depth": 512, "cta_group": 2},
        {"kernel": "gemm"},
        {"kernel": "gemm", "arch": "sm_90a"},
    ],
    ids=str,
)
def test_a_launch_asks_for_the_room_that_the_kernel_needs(keys: dict[str, object]) -> None:
    plan = plan_of(**keys)
    room = plan.launch.dynamic_shared_bytes - plan.shared_bytes_used
    assert plan.aligns_base == (room >= plan.shared[0].alignment - 16)
    assert plan.has_tensor_memory == bool(plan.tensor_memory) == (plan.arch != "sm_90a")
    assert plan.barriers_by_warp == ("po_lo" in [row.name for row in plan.barriers])


def test_what_a_kernel_computes() -> None:
    assert plan_of().operation == "attention forward, O = softmax(scale * Q . K^T) . V"
    plain, full = plan_of(kernel="gemm"), plan_of(kernel="gemm", residual="row", activation="x * x")
    assert plain.operation == "matrix product, D = alpha * A . B"
    assert full.operation == (
        "matrix product, D = activation(alpha * A . B + beta * C), one row C for all rows"
    )
    assert (plan_of().keeps_addresses, plain.keeps_addresses) == (False, True)
