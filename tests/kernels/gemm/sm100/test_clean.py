"""The matrix product for Blackwell in the emulator: rings, layouts, tails of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.emulator import SCHEDULES
from tests.kernels.gemm.emulation import Problem, check, check_drawn, gemm_kernel

if TYPE_CHECKING:
    from random import Random

Keys = dict[str, Any]
TILE: Keys = {"cta_group": 1, "BM": 128, "BN": 128}
LAYOUTS: dict[str, Keys] = {
    "rows": TILE,
    "quarters": {**TILE, "BM": 64},
    "pair": {**TILE, "cta_group": 2},
    "halves": {**TILE, "cta_group": 2, "BM": 64},
}
SEVERAL = Problem(270, 140, 150, batch=2)
"""Tails in each dimension, several tiles for each CTA."""


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["none", "matrix", "row", "column"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_and_residuals(layout: str, residual: str) -> None:
    check({**LAYOUTS[layout], "residual": residual}, SEVERAL)


@pytest.mark.compile
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_residual_comes_from_where_the_output_goes(layout: str) -> None:
    keys = {**LAYOUTS[layout], "residual": "matrix", "out_dtype": "fp32"}
    check(keys, Problem(270, 140, 64, batch=2, beta=1.0, indexed=True), 1)


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["row", "column"])
@pytest.mark.parametrize("layout", ["quarters", "halves"])
def test_a_bias_comes_from_where_the_output_goes(layout: str, residual: str) -> None:
    keys = {**LAYOUTS[layout], "residual": residual, "out_dtype": "fp32"}
    check(keys, Problem(270, 140, 64, batch=2, beta=1.0, indexed=True), 1)


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["none", "matrix", "row"])
def test_no_products_where_k_is_zero(residual: str) -> None:
    for seed, layout in enumerate(("rows", "halves")):
        check({**LAYOUTS[layout], "residual": residual}, Problem(140, 140, 0), seed)


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["matrix", "row", "column"])
def test_the_residual_is_not_looked_at_where_beta_is_zero(residual: str) -> None:
    keys = {**TILE, "residual": residual}
    check(keys, Problem(200, 136, 100, beta=0.0, nan_in_c=True))


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["none", "row", "column"])
def test_sums_are_loaded_in_parts_where_the_activation_is_costly(residual: str) -> None:
    nothing_added = "x + 0 * (exp(min(x, 0)) + tanh(x))"  # the reference knows no activations
    for seed, layout in enumerate(("rows", "halves")):
        keys = {**LAYOUTS[layout], "residual": residual, "activation": nothing_added}
        assert gemm_kernel(keys).plan.loads_in_parts
        check(keys, SEVERAL, seed)
        check(keys, Problem(140, 140, 0), seed)


@pytest.mark.compile
@pytest.mark.parametrize("size", [(1, 1, 1), (128, 128, 600), (1, 400, 40)], ids=str)
def test_sizes(size: tuple[int, int, int]) -> None:
    for seed, layout in enumerate(("quarters", "pair")):
        check({**LAYOUTS[layout], "residual": "matrix", "num_stages": 3}, Problem(*size), seed)


@pytest.mark.compile
@pytest.mark.parametrize("majors", ["kk", "kn", "mk", "mn"])
@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3"])
def test_either_operand_in_either_order(dtype: str, majors: str) -> None:
    order = {"a_major": majors[0], "b_major": majors[1], "dtype": dtype}
    check({**TILE, **order, "BN": 192, "cta_group": 2}, Problem(200, 250, 150))
    check({**TILE, **order, "BM": 64, "BN": 64, "BK": 256}, Problem(70, 70, 300), 1)


@pytest.mark.compile
@pytest.mark.parametrize(
    ("out_dtype", "layout"),
    [("bf16", "rows"), ("fp16", "halves"), ("fp32", "pair"), ("fp32", "quarters")],
)
def test_output_types(out_dtype: str, layout: str) -> None:
    keys = {**LAYOUTS[layout], "BN": 64, "dtype": "fp16", "out_dtype": out_dtype}
    check({**keys, "residual": "matrix"}, Problem(140, 70, 70, alpha=-0.5))


@pytest.mark.compile
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_rings_of_any_length(stages: int) -> None:
    lengths = dict.fromkeys(
        ("num_stages", "num_accum_stages", "num_epi_stages", "num_out_stages"), stages
    )
    for seed, (layout, residual) in enumerate((("quarters", "row"), ("halves", "matrix"))):
        check({**LAYOUTS[layout], **lengths, "residual": residual}, Problem(260, 260, 150), seed)


@pytest.mark.compile
@pytest.mark.parametrize("layout", ["rows", "halves"])
def test_accumulators_further_apart_than_they_are_wide(layout: str) -> None:
    check({**LAYOUTS[layout], "stage_stride_cols": 160, "num_accum_stages": 3}, SEVERAL, 1)


@pytest.mark.compile
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("residual", ["none", "matrix"])
def test_tiles_handed_out_by_the_hardware(layout: str, residual: str) -> None:
    keys = {**LAYOUTS[layout], "BN": 64, "scheduler": "dynamic", "residual": residual}
    check(keys, Problem(400, 140, 70), len(layout))


@pytest.mark.compile
def test_tiles_handed_out_by_the_hardware_have_no_products() -> None:
    keys = {**LAYOUTS["pair"], "scheduler": "dynamic", "residual": "matrix"}
    check(keys, Problem(600, 260, 0, beta=1.0))


def _any_keys(random: Random) -> Keys:
    def some(*values: Any) -> Any:
        return random.choice(values)

    return {
        "cta_group": some(1, 2), "BM": some(64, 128), "BN": some(64, 128, 192, 256),
        "BK": some(64, 64, 128, 256), "residual": some("none", "matrix", "matrix", "row", "column"),
        "dtype": some("bf16", "fp16", "fp8_e4m3"), "out_dtype": some("bf16", "fp16", "fp32"),
        "a_major": some("k", "m"), "b_major": some("k", "n"),
        "scheduler": some("static", "dynamic"), "num_stages": some(1, 2, 3, 4, "auto"),
        "num_accum_stages": some(1, 2, 3, 4), "num_epi_stages": some(1, 2, 3, 4),
        "num_out_stages": some(1, 2, 3, 4),
    }  # fmt: skip


@pytest.mark.compile
@pytest.mark.parametrize("part", range(3))
def test_whatever_is_planned_multiplies(part: int, first_seed: int) -> None:
    assert any(
        check_drawn(_any_keys, number, [len(SCHEDULES) * number])
        for number in range(first_seed + part, first_seed + part + 3000, 3)
    )


@pytest.mark.seeds
@pytest.mark.parametrize("seed", range(100))
def test_whatever_is_planned_multiplies_under_many_seeds(seed: int) -> None:
    check_drawn(_any_keys, seed, range(len(SCHEDULES) * seed, len(SCHEDULES) * seed + 3))


@pytest.mark.seeds
@pytest.mark.parametrize("residual", ["none", "matrix", "row", "column"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scheduler", ["static", "dynamic"])
def test_twenty_seeds(layout: str, residual: str, scheduler: str) -> None:
    for seed in range(20):
        check({**LAYOUTS[layout], "residual": residual, "scheduler": scheduler}, SEVERAL, seed)
