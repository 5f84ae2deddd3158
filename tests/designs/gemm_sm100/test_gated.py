"""Gated activations in a product on Blackwell: what is refused, what the plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
from tests.designs.offers import offers, problems_of

ConfigOf = Callable[..., BlackwellGemmConfig]
GATED = {"activation": "silu(gate) * up"}
TURNS = {**GATED, "gate_layout": "interleaved"}
MXFP8 = {"dtype": "fp8_e4m3", "scales": "mxfp8"}


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {**GATED, "BM": 64},
            "BM",
            "gate's sums are another thread's than up's",
            "Set BM: 128; or cta_group: 1.",
        ),
        (
            {**TURNS, **MXFP8},
            "gate_layout",
            "an atom of scales mxfp8 is for 128 neighbouring columns of B",
            "Set gate_layout: halves.",
        ),
        (
            {**GATED, **MXFP8, "BN": 128},
            "BN",
            "BN: 128 columns of B, but with scales mxfp8 gate and up have whole atoms of 128",
            "Set BN: 256.",
        ),
        (
            {**GATED, "b_major": "n", "BN": 64},
            "BN",
            "gate and up have whole panels of 64 columns (128 bytes) each",
            "Set BN: 128; or b_major: k.",
        ),
        (
            {"gate_layout": "interleaved"},
            "gate_layout",
            "the activation is not one over gate and up",
            "Set gate_layout: halves.",
        ),
    ],
)
def test_what_cannot_work_is_refused(
    config_of: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    config = config_of(**keys)
    [problem] = problems_of(config)
    assert problem.key == key
    assert words in problem.message
    assert problem.remedy == remedy
    for offer in offers(problem):
        assert problems_of(changed(config, offer)) == (), offer


def test_of_fp4_no_tile_has_whole_panels_of_gate_and_up(config_of: ConfigOf) -> None:
    """A panel has 256 columns then, as the widest tile: B has to be the other way round."""
    config = config_of(**GATED, dtype="fp4_e2m1", scales="nvfp4", b_major="n")
    panels = problems_of(config)[0]
    assert "gate and up have whole panels of 256 columns" in panels.message
    assert panels.remedy == "Set b_major: k."


@pytest.mark.parametrize(
    ("keys", "dims", "box"),
    [
        ({"cta_group": 1}, ("k", "n", "half", "batch"), (64, 128, 2, 1)),
        ({"cta_group": 2}, ("k", "n", "half", "batch"), (64, 128, 1, 1)),
        ({"cta_group": 1, "BN": 192}, ("k", "n", "half", "batch"), (64, 96, 2, 1)),
        ({"b_major": "n"}, ("n", "k", "half", "batch"), (64, 64, 1, 1)),
    ],
    ids=str,
)
def test_the_map_of_b_has_gate_and_up_apart(
    config_of: ConfigOf, keys: dict[str, Any], dims: Any, box: Any
) -> None:
    found = build_plan(config_of(**GATED, **keys)).tensor_map("b")
    assert (found.dims, found.box) == (dims, box)


def test_the_output_has_half_of_the_tiles_columns(config_of: ConfigOf) -> None:
    plan = build_plan(config_of(**GATED))
    assert (plan.BN, plan.out_columns, plan.out_panel_columns) == (256, 128, 64)
    assert build_plan(config_of(**GATED, BN=192)).out_panel_columns == 32
    assert build_plan(config_of(**GATED, **MXFP8)).column_unit == 128
