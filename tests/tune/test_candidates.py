from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config, load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.tune.candidates import find_candidates, given_keys, keys_sha256, rank, refine
from fa4gen.tune.family import family_called
from fa4gen.tune.model.chips import H200
from tests.tune.candidates_of import existing

GEMM = family_called("gemm")


@pytest.fixture(scope="module")
def candidates() -> Any:
    return find_candidates(load_config(find_configs(["gemm_bf16_sm90"])[0]))


def test_the_config_itself_shipped_ones_and_tiles(candidates: Any) -> None:
    by_source = {source: [] for source in ("config", "shipped", "tile")}  # type: ignore[var-annotated]
    for candidate in candidates:
        by_source[candidate.source].append(candidate.name)
    assert by_source["config"] == ["gemm_bf16_sm90"]
    assert set(by_source["shipped"]) == {
        "gemm_bf16_192x176_pair_sm90",
        "gemm_bf16_m16_sm90",
        "gemm_bf16_m16_split_sm90",
        "gemm_bf16_64x192_four_sm90",
        "gemm_bf16_128x144_eight_sm90",
        "gemm_bf16_136x64_pair_sm90",
    }
    assert "gemm_bf16_sm90_128x144" in by_source["tile"]
    assert len({candidate.name for candidate in candidates}) == len(candidates)


def test_all_compute_the_same(candidates: Any) -> None:
    same = ("arch", "dtype", "out_dtype", "a_major", "b_major", "residual", "activation")
    plans = [candidate.plan for candidate in candidates]
    assert {tuple(getattr(plan, key) for key in same) for plan in plans} == {
        ("sm_90a", "bf16", "bf16", "k", "k", "none", None)
    }


def test_tiles_that_read_less_of_l2(candidates: Any) -> None:
    plans = {candidate.name: candidate.plan for candidate in candidates}
    pair, own = plans["gemm_bf16_sm90_192x192_pair_epi1"], plans["gemm_bf16_sm90_192x192_pair"]
    assert (pair.num_stages, own.num_stages) == (4, 3)  # the slots of the output are one
    assert plans["gemm_bf16_sm90_128x224_four"].cta_group == 4
    assert plans["gemm_bf16_sm90_64x128_four_evict"].evict_first == "both"


def test_features_stay_with_every_tile() -> None:
    config = {
        "kernel": "gemm", "arch": "sm_90a", "dtype": "fp16", "b_major": "n",
        "residual": "matrix", "activation": "relu(x)", "num_stages": 2,
    }  # fmt: skip
    found = find_candidates(load_mapping(config, "mine"))
    assert "gemm_fp16_sm90" in [one.name for one in found]
    plans: list[Any] = [one.plan for one in found if one.source == "tile"]
    assert plans
    assert {(p.b_major, p.residual, p.activation) for p in plans} == {("n", "matrix", "relu(x)")}
    assert all(plan.BN % 64 == 0 for plan in plans if not plan.swap_operands)
    # what hangs on the tile is left to the plan
    assert {plan.num_stages for plan in plans} != {2}


@pytest.mark.parametrize(
    ("problem", "first"),
    [
        ("4104x4104x4104", "gemm_bf16_192x176_pair_sm90"),
        ("1536x1536x8192", "gemm_bf16_sm90_128x144_evict"),
        ("4096x4096x4096", "gemm_bf16_sm90_128x256_evict"),  # 180 us, the fastest of nine
        ("16x4096x14336", "gemm_bf16_m16_split_sm90"),
    ],
)
def test_first_choice(candidates: Any, problem: str, first: str) -> None:
    ranked = rank(candidates, GEMM.parse_problem(problem), H200)
    assert ranked[0].candidate.name == first
    times = [one.prediction.us for one in ranked[1:]]
    assert times == sorted(times)
    assert ranked[0].prediction.us <= GEMM.alike * times[0]


def test_a_divided_k_with_swapped_operands_is_for_few_tiles(candidates: Any) -> None:
    ranked = rank(candidates, GEMM.parse_problem("128x6144x14336"), H200)
    swapped: list[Any] = [one.candidate.plan for one in ranked if one.candidate.plan.swap_operands]
    assert swapped
    divided = [plan for plan in swapped if plan.split_k == 2]
    assert all(-(-128 // plan.BM) * -(-6144 // plan.BN) <= 66 for plan in divided)


def test_few_tiles_divide_k(candidates: Any) -> None:
    """210 x 832 x 5272 on an H200: 20.1 us without such tiles, 16.6 with them, 15.5 of cuBLAS."""
    ranked = rank(candidates, GEMM.parse_problem("210x832x5272"), H200)
    plans: list[Any] = [one.candidate.plan for one in ranked[:8]]  # that are measured
    assert (True, 2, 72) in [(plan.swap_operands, plan.split_k, plan.BM) for plan in plans]


@pytest.mark.parametrize(
    ("problem", "tile"),
    [
        ("251x8528x7032", (128, 144, 8)),  # 53.1 us, 64.9 of the fastest without such tiles
        ("334x1200x2600", (64, 64, 8)),  # 13.1 us, 14.6
    ],
)
def test_clusters_that_share_both_where_rows_begin_in_a_sector(
    candidates: Any, problem: str, tile: tuple[int, int, int]
) -> None:
    ranked = rank(candidates, GEMM.parse_problem(problem), H200)
    first: Any = ranked[0].candidate.plan
    assert first.shares_both
    assert (first.BM, first.BN, first.cta_group) == tile


def test_pairs_side_by_side(candidates: Any) -> None:
    """2466 x 1560: 13 x 10 tiles of 192 x 160 fit the chip as pairs along n, not along m."""
    ranked = rank(candidates, GEMM.parse_problem("2466x1560x4568"), H200)
    first: Any = ranked[0].candidate.plan
    assert (first.BM, first.BN, first.shares_a, first.tile_columns) == (192, 160, True, 320)


def test_the_output_in_the_ring(candidates: Any) -> None:
    """1764 x 2544 x 2848: 40.5 us without such tiles, 38.1 with them, 37.7 of cuBLAS."""
    ranked = rank(candidates, GEMM.parse_problem("1764x2544x2848"), H200)
    first: Any = ranked[0].candidate
    assert first.name == "gemm_bf16_sm90_136x256_swapped_keep_in_ring"
    assert (first.plan.output_in_ring, first.plan.num_stages) == (True, 4)


def test_the_output_is_in_the_ring_where_that_gives_a_stage(candidates: Any) -> None:
    plans: list[Any] = [one.plan for one in candidates if getattr(one.plan, "output_in_ring", 0)]
    assert plans
    for plan in plans:
        keys = {"output_in_ring": False, "num_epi_stages": 1, "num_stages": "auto"}
        given = next(given_keys(one.loaded) for one in candidates if one.plan is plan)
        apart: Any = build_plan(load_mapping({**given, **keys}, plan.name).config)
        assert apart.num_stages < plan.num_stages
        assert apart.num_stages in (3, 4, 5) or plan.shares_both


def test_tiles_of_all_rows_share_them(candidates: Any) -> None:
    """132 rows: 23.9 us without these tiles, 19.9 with them, and 18.7 of cuBLAS."""
    ranked = rank(candidates, GEMM.parse_problem("132x7152x2056"), H200)
    plans: list[Any] = [one.candidate.plan for one in ranked[:8]]
    assert {(plan.swap_operands, plan.cta_group > 1) for plan in plans} == {(True, True)}
    assert "gemm_bf16_136x64_pair_sm90" in [plan.name for plan in plans]


def test_large_products_of_fp8_in_turns() -> None:
    found = find_candidates(load_config(find_configs(["gemm_fp8_sm90"])[0]))
    ranked = rank(found, GEMM.parse_problem("8192x8192x8192"), H200)
    plans: list[Any] = [one.candidate.plan for one in ranked[:3]]
    assert all(plan.ping_pong for plan in plans)


def test_a_blackwell_config() -> None:
    found = find_candidates(load_config(find_configs(["gemm_bf16"])[0]))
    assert {"gemm_bf16_pair", "gemm_bf16_64x128"} <= {one.name for one in found}
    assert all(build_plan(one.loaded.config) == one.plan for one in found)


@pytest.mark.parametrize("text", ["16x4096", "1x2x3x4x5", "0x1x1", "axbxc", "2k,4k", ""])
def test_no_problem(text: str) -> None:
    with pytest.raises(ConfigError, match="not the problem of a matrix product"):
        GEMM.parse_problem(text)


def test_problems_by_extents() -> None:
    problem = GEMM.problem({"m": 16, "n": 32, "k": 64})
    assert GEMM.word(problem) == "16x32x64"
    assert GEMM.extents(problem) == {"m": 16, "n": 32, "k": 64, "batch": 1}
    assert GEMM.parse_problem("4x16x32x64") == GEMM.problem({"m": 16, "n": 32, "k": 64, "batch": 4})
    with pytest.raises(ConfigError) as caught:
        GEMM.problem({"m": 0, "n": 32, "rows": 1})
    text = str(caught.value)
    assert "'rows' is not an extent" in text
    assert "m: 0" in text
    assert "k is missing" in text


def test_tiles_with_what_the_model_does_not_weigh(candidates: Any) -> None:
    by_name = {candidate.name: candidate for candidate in candidates}
    found = {one.name: one for one in refine(by_name["gemm_bf16_sm90_128x144"])}
    assert found.keys() == {
        "gemm_bf16_sm90_128x144_evict_both",
        "gemm_bf16_sm90_128x144_epi1",  # two slots would not make room for a stage
        "gemm_bf16_sm90_128x144_short_ends",
    }
    evicting = found["gemm_bf16_sm90_128x144_evict_both"]
    assert (evicting.plan.evict_first, evicting.plan.BN, evicting.source) == ("both", 144, "tile")
    plan, base = found["gemm_bf16_sm90_128x144_epi1"].plan, by_name["gemm_bf16_sm90_128x144"].plan
    assert plan.num_stages == base.num_stages + 1
    again = build_plan(load_mapping(dict(given_keys(evicting.loaded)), evicting.name).config)
    assert again.evict_first == "both"  # what a table's config file says
    # weights of swapped operands leave L2 first anyway: both, and short ends, are what is left
    assert [one.name for one in refine(by_name["gemm_bf16_m16_sm90"])] == [
        "gemm_bf16_m16_sm90_evict_both",
        "gemm_bf16_m16_sm90_short_ends",
    ]


def test_attention_in_the_other_order_of_tiles() -> None:
    (base,) = existing(load_config(find_configs(["d64_causal_bf16"])[0]))
    (other,) = refine(base)
    assert {base.plan.scheduler, other.plan.scheduler} == {"static", "dynamic"}
    assert other.name == f"{base.name}_{other.plan.scheduler}"


def test_the_hash_of_a_config_is_of_the_keys_that_it_gives() -> None:
    """So that a table stays current when fa4gen gets a key that its configs do not give."""
    loaded = load_config(find_configs(["gemm_bf16_m16_sm90"])[0])
    keys = given_keys(loaded)
    assert loaded.config.data().keys() > keys.keys()
    its = keys_sha256(keys)
    assert keys_sha256(dict(reversed(keys.items()))) == its
    assert keys_sha256(keys | {"BN": 72}) != its
    assert keys_sha256(keys | {"registers": 168}) != its
