"""Scattered rows of a product on Hopper: what is refused, what helps, what the plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from tests.designs.gemm_sm90.test_limits import problems_of

ConfigOf = Callable[..., HopperGemmConfig]
SCATTERED = {"groups": "offsets", "out_rows": "scattered"}


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        ({"groups": "masked"}, "groups", "groups: masked, but with out_rows: scattered they are",
         "Set groups: offsets; or out_rows: contiguous."),
        ({"residual": "matrix"}, "residual", "no rows of C",
         "Set residual: none; or out_rows: contiguous."),
        ({"out_dtype": "fp32"}, "out_dtype", "rows of 16 bits",
         "Set out_dtype: auto; or out_rows: contiguous."),
        ({"output_scales": "1x128"}, "output_scales", "not stored by an index",
         "Set output_scales: null; or out_rows: contiguous."),
        ({"short_ends": True}, "short_ends", "short_ends: true, but",
         "Set short_ends: false; or out_rows: contiguous."),
        ({"activation": "silu(gate) * up"}, "activation", "not of gate and up",
         "Set activation: null; or out_rows: contiguous."),
        ({"BN": 96}, "BN", "BN: 96, but with out_rows: scattered a tile has whole panels of 64",
         "Set BN: 128; or out_rows: contiguous."),
    ],
)  # fmt: skip
def test_what_does_not_go_with_scattered_rows_is_refused_with_ways_out(
    hopper_gemm: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    problem = next(one for one in problems_of(hopper_gemm(**SCATTERED | keys)) if one.key == key)
    assert words in problem.message
    assert problem.remedy == remedy


def test_the_kernel_takes_an_address_an_index_and_weights_in_place_of_a_map(
    hopper_gemm: ConfigOf,
) -> None:
    plan = build_plan(hopper_gemm(**SCATTERED))
    names = [row.name for row in plan.parameters]
    assert {"out", "out_row_chunks", "out_rows", "out_index", "row_weights"} <= {*names}
    assert "out_map" not in {*names, *(row.parameter for row in plan.tensor_maps)}
