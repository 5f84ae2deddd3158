"""Gated activations in a product on Hopper: what is refused, what helps, what the plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from tests.designs.offers import offers, problems_of

ConfigOf = Callable[..., HopperGemmConfig]
GATED = {"activation": "silu(gate) * up"}
TURNS = {**GATED, "gate_layout": "interleaved"}
WIDE = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}}


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"gate_layout": "interleaved"},
            "gate_layout",
            "gate_layout: interleaved, but the activation is not one over gate and up",
            "Set gate_layout: halves.",
        ),
        (
            {**TURNS, "b_major": "n"},
            "gate_layout",
            "neighbouring columns of B come apart only where k is contiguous",
            "Set b_major: k; or gate_layout: halves.",
        ),
        (
            {**GATED, "BN": 144},
            "BN",
            "BN: 144 columns of B, but with a gated activation the output has half of them, stored "
            "by 16",
            "Set BN: 128.",
        ),
        (
            {**GATED, "b_major": "n", "BN": 192},
            "BN",
            "gate and up have whole panels of 64 columns (128 bytes) each",
            "Set BN: 128; or b_major: k.",
        ),
        (
            {**GATED, **WIDE, "BN": 96},
            "BN",
            "96 columns of B, and a scale of B is for 128: gate is to have one, and up",
            "Set BN: 128; or scales: null.",
        ),
        (
            {**GATED, "swap_operands": True, "BN": 64},
            "BN",
            "64 columns for 1 consumer warpgroups, and with swap_operands and a gated activation "
            "each computes 128 of them: 128",
            "Set BN: auto.",
        ),
    ],
)
def test_what_cannot_work_is_refused(
    hopper_gemm: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    config = hopper_gemm(**keys)
    [problem] = problems_of(config)
    assert problem.key == key
    assert words in problem.message
    assert problem.remedy == remedy
    for offer in offers(problem):
        assert problems_of(changed(config, offer)) == (), offer


def test_a_tile_has_half_as_many_columns_of_the_output(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(**GATED))
    assert (plan.BN, plan.out_columns, plan.tile_columns) == (256, 128, 128)
    assert (plan.columns_of_b(9), plan.output_columns(18)) == (18, 9)
    plain = build_plan(hopper_gemm())
    assert (plain.out_columns, plain.columns_of_b(9), plain.output_columns(9)) == (256, 9, 9)


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize(
    ("keys", "dims", "box"),
    [
        ({}, ("k", "n", "half", "batch"), (64, 128, 2, 1)),
        ({"cta_group": 2}, ("k", "n", "half", "batch"), (64, 128, 1, 1)),
        ({"cta_group": 4}, ("k", "n", "half", "batch"), (64, 64, 1, 1)),
        ({"cta_group": 2, "BN": 96}, ("k", "n", "half", "batch"), (64, 48, 1, 1)),
        ({"cta_group": 4, "BN": 96}, ("k", "n", "half", "batch"), (64, 24, 1, 1)),
        ({"b_major": "n"}, ("n", "k", "half", "batch"), (64, 64, 1, 1)),
    ],
    ids=str,
)
def test_the_map_of_b_has_gate_and_up_apart(
    hopper_gemm: ConfigOf, layout: str, keys: dict[str, Any], dims: Any, box: Any
) -> None:
    if keys.get("b_major") == "n" and layout == "interleaved":
        return  # refused
    found = build_plan(hopper_gemm(**GATED, gate_layout=layout, **keys)).tensor_map("b")
    assert (found.dims, found.box) == (dims, box)


@pytest.mark.parametrize(
    ("keys", "unit"),
    [
        ({}, 1),
        ({"b_major": "n"}, 8),
        ({"residual": "row"}, 8),
        ({"residual": "row", "out_dtype": "fp32"}, 4),
        ({"residual": "row", "gate_layout": "interleaved"}, 1),
        (WIDE, 128),
        ({**WIDE, "gate_layout": "interleaved"}, 1),
        ({**WIDE, "scales": {"a": "1x128", "b": "1x128"}}, 1),
    ],
    ids=str,
)
def test_columns_come_in_units(hopper_gemm: ConfigOf, keys: dict[str, Any], unit: int) -> None:
    assert build_plan(hopper_gemm(**{**GATED, **keys})).column_unit == unit
    plain = {key: value for key, value in keys.items() if key != "gate_layout"}
    assert build_plan(hopper_gemm(**plain)).column_unit == 1


def test_a_warpgroup_with_exchanged_operands_has_rows_of_gate_and_of_up(
    hopper_gemm: ConfigOf,
) -> None:
    plan = build_plan(hopper_gemm(**GATED, swap_operands=True, BM=16))
    assert (plan.BN, plan.num_consumer_warpgroups, plan.panels_per_ring) == (128, 1, 1)
    plan = build_plan(hopper_gemm(**GATED, swap_operands=True, BM=16, BN=256))
    assert (plan.num_consumer_warpgroups, plan.out_columns, plan.panels_per_ring) == (2, 128, 1)


def test_words(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(**TURNS, residual="row"))
    assert "activation silu(gate) * up; gate and up take turns in B's columns" in plan.summary
    assert plan.operation == (
        "matrix product, D = activation(gate and up of alpha * A . B + beta * C), one row C for all"
        " rows"
    )
    plan = build_plan(hopper_gemm(**GATED, residual="matrix"))
    assert plan.operation.endswith("D = activation(gate and up of alpha * A . B) + beta * C")
