"""The matrix product for Hopper in the emulator: rings, layouts, tails of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.kernels.gemm.emulation import Problem, check, check_drawn, emulate, gemm_kernel

if TYPE_CHECKING:
    from random import Random

Keys = dict[str, Any]
HOPPER: Keys = {"arch": "sm_90a"}
LAYOUTS: dict[str, Keys] = {
    "turns": {**HOPPER, "BM": 128, "BN": 64, "ping_pong": True},
    "short turns": {**HOPPER, "BM": 64, "BN": 128, "ping_pong": True, "cta_group": 1},
    "shared": {**HOPPER, "BM": 128, "BN": 128, "ping_pong": False},
    "shared alone": {**HOPPER, "BM": 128, "BN": 64, "ping_pong": False, "cta_group": 1},
    "high": {**HOPPER, "BM": 256, "BN": 64, "ping_pong": False, "cta_group": 1},
    "three": {**HOPPER, "BM": 192, "BN": 64},
    "four": {**HOPPER, "BM": 64, "BN": 96, "cta_group": 4, "evict_first": "both"},
    "four of n": {**HOPPER, "BM": 128, "BN": 64, "cta_group": 4, "b_major": "n"},
    "four in turn": {**HOPPER, "BM": 64, "BN": 80, "cta_group": 4},
}
SEVERAL = Problem(300, 200, 150, batch=2)
"""Tails in each dimension, several tiles for each CTA."""


@pytest.mark.compile
@pytest.mark.parametrize(
    ("layout", "residual"),
    [
        ("turns", "matrix"),
        ("short turns", "row"),
        ("shared", "none"),
        ("shared alone", "matrix"),
        ("high", "row"),
        ("high", "column"),
        ("turns", "column"),
        ("three", "matrix"),
        ("four", "matrix"),
        ("four of n", "none"),
        ("four in turn", "none"),
    ],
)
def test_products_and_residuals(layout: str, residual: str) -> None:
    check({**LAYOUTS[layout], "residual": residual}, SEVERAL)


@pytest.mark.compile
@pytest.mark.parametrize("layout", ["turns", "shared", "high"])
def test_the_residual_comes_from_where_the_output_goes(layout: str) -> None:
    keys = {**LAYOUTS[layout], "residual": "matrix", "out_dtype": "fp32"}
    check(keys, Problem(270, 300, 64, batch=2, beta=1.0, indexed=True), 1)


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["row", "column"])
def test_a_bias_comes_from_where_the_output_goes(residual: str) -> None:
    keys = {**LAYOUTS["turns"], "residual": residual, "out_dtype": "fp32"}
    check(keys, Problem(270, 300, 64, batch=2, beta=1.0, indexed=True), 1)


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["none", "matrix", "row"])
def test_no_products_where_k_is_zero(residual: str) -> None:
    for seed, layout in enumerate(("turns", "shared")):
        check({**LAYOUTS[layout], "residual": residual}, Problem(300, 200, 0), seed)


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["matrix", "row", "column"])
def test_the_residual_is_not_looked_at_where_beta_is_zero(residual: str) -> None:
    keys = {**LAYOUTS["turns"], "residual": residual}
    check(keys, Problem(200, 136, 100, beta=0.0, nan_in_c=True))


@pytest.mark.compile
@pytest.mark.parametrize("size", [(1, 1, 1), (64, 64, 64), (128, 128, 1000), (1, 600, 40)], ids=str)
def test_sizes(size: tuple[int, int, int]) -> None:
    for seed, layout in enumerate(("turns", "shared alone")):
        check({**LAYOUTS[layout], "residual": "matrix", "num_stages": 3}, Problem(*size), seed)


@pytest.mark.compile
@pytest.mark.parametrize("majors", ["kn", "mk", "mn"])
def test_either_operand_in_either_order(majors: str) -> None:
    order = {"a_major": majors[0], "b_major": majors[1]}
    check({**LAYOUTS["shared"], **order, "BN": 192}, Problem(300, 250, 200))
    check({**LAYOUTS["short turns"], **order, "BN": 64, "BK": 128}, Problem(100, 70, 600), 1)


@pytest.mark.compile
@pytest.mark.parametrize(
    ("BN", "more"),
    [
        (16, {"residual": "matrix", "out_dtype": "fp32"}),
        (48, {"residual": "row", "cta_group": 2}),
        (80, {"residual": "matrix", "out_dtype": "fp32", "ping_pong": True}),
        (112, {"residual": "matrix"}),
        (176, {"residual": "none", "cta_group": 2}),
    ],
)
def test_the_last_panel_of_a_tile_may_be_narrow(BN: int, more: Keys) -> None:  # noqa: N803
    """Several tiles side by side: what is past a tile's columns is another CTA's."""
    keys = {**HOPPER, "BM": 64, "BN": BN, "num_stages": 2, **more}
    check(keys, Problem(150, 2 * BN + 24, 100, beta=0.5), BN // 16)
    check(keys, Problem(70, 2 * BN + 8, 40, beta=1.0, indexed=more["residual"] == "matrix"), BN)


@pytest.mark.compile
@pytest.mark.parametrize("residual", ["none", "matrix", "row", "column"])
@pytest.mark.parametrize(("BM", "BN"), [(16, 64), (32, 128), (64, 256)])
def test_operands_are_swapped(BM: int, BN: int, residual: str) -> None:  # noqa: N803
    keys = {**HOPPER, "BM": BM, "BN": BN, "swap_operands": True, "residual": residual}
    check(keys, Problem(BM + 3, 2 * BN + 24, 300, batch=2), BM)
    check(keys, Problem(BM - 3, BN + 8, 40, beta=1.0, indexed=residual == "matrix"), BN)


def check_tiles_side_by_side(kernel: Keys) -> None:
    """Check several tiles for each cluster; the last ones have CTAs without columns."""
    rows, columns = kernel["BM"], kernel["BN"]
    check(kernel, Problem(2 * rows - 5, 5 * columns + 24, 300, batch=2, multiprocessors=4), 1)
    check(kernel, Problem(rows - 3, 2 * columns + 8, 40, beta=1.0, multiprocessors=4), 2)


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"BM": 144, "BN": 64, "cta_group": 2},
        {"BM": 160, "BN": 128, "cta_group": 4, "residual": "matrix", "BK": 64},
        {"BM": 72, "BN": 64, "cta_group": 4, "BK": 64},
        {"BM": 208, "BN": 64, "residual": "column", "evict_first": "both", "BK": 64},
        {"BM": 48, "BN": 64, "cta_group": 4, "residual": "row"},
        {"BM": 40, "BN": 64, "cta_group": 2, "residual": "column"},
    ],
    ids=str,
)
def test_clusters_share_the_rows_of_swapped_operands(keys: Keys) -> None:
    """The CTAs of a cluster have other columns of the same rows."""
    check_tiles_side_by_side({**HOPPER, "swap_operands": True, "num_stages": 2, **keys})


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"BM": 128, "BN": 64, "cta_group": 2, "residual": "matrix"},
        {"BM": 64, "BN": 80, "cta_group": 4, "residual": "row", "evict_first": "both"},
        {"BM": 192, "BN": 48, "cta_group": 2, "residual": "column"},
        {"BM": 64, "BN": 128, "cta_group": 2, "ping_pong": True, "b_major": "n"},
    ],
    ids=str,
)
def test_clusters_share_the_rows_of_any_operands(keys: Keys) -> None:
    """Without exchanged operands as with them."""
    check_tiles_side_by_side({**HOPPER, "share": "a", "num_stages": 2, **keys})


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"BM": 128, "BN": 80, "cta_group": 8, "residual": "matrix"},
        {"BM": 64, "BN": 64, "cta_group": 8, "b_major": "n", "residual": "row"},
        {"BM": 64, "BN": 48, "cta_group": 4, "share": "both", "evict_first": "both"},
        {"BM": 64, "BN": 64, "cta_group": 4, "share": "both", "ping_pong": True},
        {"BM": 40, "BN": 64, "cta_group": 8, "swap_operands": True, "residual": "column"},
        {"BM": 128, "BN": 64, "cta_group": 8, "output_in_ring": True, "short_ends": True},
    ],
    ids=str,
)
def test_clusters_share_rows_and_columns(keys: Keys) -> None:
    """Two rows of tiles; of the last clusters some CTAs have no rows, or no columns, or neither."""
    rows, columns = keys["BM"], keys["BN"]
    kernel = {**HOPPER, "num_stages": 2, **keys}
    check(kernel, Problem(3 * rows - 5, 5 * columns + 24, 300, multiprocessors=16), 1)
    check(kernel, Problem(2 * rows + 3, 9 * columns + 8, 200, beta=1.0, multiprocessors=8), 2)
    check(kernel, Problem(rows - 3, columns + 8, 40, beta=1.0, multiprocessors=4), 3)


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"BM": 128, "BN": 192, "num_epi_stages": 2},
        {"BM": 64, "BN": 80, "cta_group": 2, "share": "a", "residual": "matrix"},
        {"BM": 72, "BN": 64, "BK": 64, "cta_group": 4, "swap_operands": True, "num_epi_stages": 1},
        {"BM": 64, "BN": 64, "cta_group": 2, "ping_pong": True, "num_epi_stages": 3},
        {"BM": 72, "BN": 64, "BK": 64, "swap_operands": True, "split_k": 2, "num_epi_stages": 1},
    ],
    ids=str,
)
def test_short_ends(keys: Keys) -> None:
    """Slots are handed back while there are tiles, and the last stores are waited for together."""
    kernel = {**HOPPER, "short_ends": True, "num_stages": 2, **keys}
    rows, columns = keys["BM"], keys["BN"]
    check(kernel, Problem(3 * rows - 5, 5 * columns + 24, 300, multiprocessors=4), 1)
    check(kernel, Problem(rows - 3, columns + 8, 40, beta=1.0, multiprocessors=4), 2)


@pytest.mark.compile
@pytest.mark.parametrize("keys", [{"dtype": "fp8_e4m3", "BK": 128}, {"num_stages": 1}], ids=str)
def test_operands_are_swapped_whatever_the_block(keys: Keys) -> None:
    check({**HOPPER, "BM": 32, "swap_operands": True, **keys}, Problem(20, 100, 500), 5)


NOTHING_ADDED = "x + 0 * exp(min(x, 0))"
"""The reference knows no activations."""


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"BM": 128, "BN": 128},
        {"BM": 128, "BN": 64, "residual": "matrix", "out_dtype": "fp32"},
        {"BM": 40, "BN": 64, "swap_operands": True, "residual": "column"},
    ],
    ids=str,
)
def test_pieces_of_a_costly_activation_wait_for_one_another(keys: Keys) -> None:
    activated = {**HOPPER, "activation": NOTHING_ADDED, **keys}
    assert gemm_kernel(activated).plan.orders_pieces
    check(activated, Problem(150, 200, 100, alpha=-0.5), 3)


SPLIT: dict[str, Keys] = {
    "swapped": {"BM": 16, "BN": 128, "swap_operands": True, "residual": "row"},
    "swapped two blocks": {"BM": 32, "BN": 128, "swap_operands": True,
                           "num_consumer_warpgroups": 1, "residual": "matrix"},
    "narrow": {"BM": 128, "BN": 80, "residual": "matrix", "out_dtype": "fp32"},
    "short": {"BM": 64, "BN": 64, "num_stages": 2, "b_major": "n"},
}  # fmt: skip


@pytest.mark.compile
@pytest.mark.parametrize("layout", SPLIT)
def test_k_is_divided(layout: str) -> None:
    """Several tiles for each cluster, and parts of k of every length: none, one block, uneven."""
    keys = {**HOPPER, "split_k": 2, **SPLIT[layout]}
    check(keys, Problem(150, 300, 700), 0)
    check(keys, Problem(50, 90, 200, batch=3, multiprocessors=4), 1)
    for seed, k in enumerate((0, 40)):
        check(keys, Problem(40, 300, k), seed)


@pytest.mark.compile
def test_every_run_of_a_divided_k_has_the_same_bits() -> None:
    kernel = gemm_kernel({**HOPPER, "split_k": 2, "BM": 16, "swap_operands": True})
    outputs = {emulate(kernel, Problem(16, 200, 900), 7, order).bits for order in range(3)}
    assert len(outputs) == 1


@pytest.mark.compile
@pytest.mark.parametrize("out_dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("dtype", ["fp16", "fp8_e4m3"])
def test_types(dtype: str, out_dtype: str) -> None:
    keys = {**LAYOUTS["turns"], "dtype": dtype, "out_dtype": out_dtype, "residual": "matrix"}
    check(keys, Problem(200, 200, 300, alpha=-0.5))


@pytest.mark.compile
@pytest.mark.parametrize(
    ("stages", "layout"), [(1, "turns"), (2, "shared"), (3, "short turns"), (4, "turns")]
)
def test_rings_of_any_length(stages: int, layout: str) -> None:
    lengths = dict.fromkeys(("num_stages", "num_epi_stages"), stages)
    check({**LAYOUTS[layout], **lengths, "residual": "matrix"}, Problem(400, 150, 300), stages)


@pytest.mark.seeds
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rings_of_any_length_in_every_layout(stages: int, layout: str) -> None:
    lengths = dict.fromkeys(("num_stages", "num_epi_stages"), stages)
    check({**LAYOUTS[layout], **lengths, "residual": "matrix"}, Problem(520, 260, 300), stages)


def _any_keys(random: Random) -> Keys:
    def some(*values: Any) -> Any:
        return random.choice(values)

    return {
        **HOPPER, "cta_group": some(1, 2, 4, 8), "share": some("auto", "auto", "a", "both"),
        "BM": some(16, 64, 128, 192, 256, 48, 136),
        "swap_operands": some(False, False, True), "split_k": some(1, 1, 2),
        "BN": some(64, 128, 192, 256, random.randrange(16, 257, 16)),
        "BK": some("auto", "auto", 128), "evict_first": some("auto", "none", "b", "both"),
        "ping_pong": some(False, True), "num_consumer_warpgroups": some("auto", "auto", 1, 2, 3),
        "residual": some("none", "matrix", "matrix", "row", "column"),
        "dtype": some("bf16", "fp16", "fp8_e4m3"), "out_dtype": some("bf16", "fp16", "fp32"),
        "a_major": some("k", "m"), "b_major": some("k", "n"), "num_stages": some(1, 2, 3, "auto"),
        "num_epi_stages": some(1, 2, 3, 4),
    }  # fmt: skip


@pytest.mark.compile
@pytest.mark.parametrize("part", range(2))
def test_whatever_is_planned_multiplies(part: int, first_seed: int) -> None:
    assert any(
        check_drawn(_any_keys, number, [number])
        for number in range(first_seed + part, first_seed + part + 2000, 2)
    )


@pytest.mark.seeds
@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_planned_multiplies_under_many_seeds(seed: int) -> None:
    check_drawn(_any_keys, seed, [seed])


@pytest.mark.seeds
@pytest.mark.parametrize("residual", ["none", "matrix", "row", "column"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_twenty_seeds(layout: str, residual: str) -> None:
    for seed in range(20):
        check({**LAYOUTS[layout], "residual": residual}, SEVERAL, seed)
