"""The cost model of matrix products, against what was measured on an H200."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.tune.model.agreement import compare
from fa4gen.tune.model.chips import CHIPS, H200, chip_for
from fa4gen.tune.model.fitting import search
from fa4gen.tune.model.gemm import GemmProblem, GemmTile, predict_gemm

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "fit_gemm_model.py"
TILE = GemmTile(128, 256, 64, 3)


@pytest.fixture(scope="module")
def fit() -> Any:
    spec = importlib.util.spec_from_file_location("fit_gemm_model", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["fit_gemm_model"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["fa4gen", "written by hand"])
def test_agrees_with_measurements(fit: Any, kind: str) -> None:
    found = compare(fit.figures_of(fit.read_records(), H200, kind))
    assert found.figures > 250
    assert found.order >= 0.95, found
    assert found.mean_choice >= 0.97, found
    assert min(found.choices) >= 0.90, found


def test_disagrees_where_waves_are_not_counted(fit: Any) -> None:
    """The comparison can fail: with a chip of so many multiprocessors there is one wave."""
    figures = fit.figures_of(fit.read_records(), replace(H200, multiprocessors=1 << 20), "fa4gen")
    assert compare(figures).order < 0.9


def test_a_search_lowers_the_error(fit: Any) -> None:
    records = fit.read_records()[:6]
    begin = replace(H200.gemm, l2=40.0)
    found = search(begin, lambda costs: fit.error(costs, records), 0.5, 3, fit.LIMITS)
    assert fit.error(found, records) < fit.error(begin, records)


def test_tile_of_a_plan() -> None:
    config = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "residual": "matrix"}
    plan: Any = build_plan(load_mapping(config, "k").config)
    tile = GemmTile.of(plan)
    assert (tile.BM, tile.BN, tile.BK, tile.num_stages) == (128, 256, 64, plan.num_stages)
    assert (tile.cluster, tile.split_k, tile.reads_c) == (1, 1, True)
    few = {**config, "swap_operands": True, "BM": 16, "BN": 64, "split_k": 2}
    plan = build_plan(load_mapping(few, "k").config)
    tile = GemmTile.of(plan)
    assert (tile.swap_operands, tile.evict_first, tile.split_k, tile.cluster) == (True, True, 2, 2)


@pytest.mark.parametrize(
    ("m", "n", "tiles", "waves", "filled"),
    [(128, 256, 1, 1, 1 / 132), (4104, 4104, 561, 5, 561 / 660), (0, 256, 0, 0, 1.0)],
)
def test_counts(m: int, n: int, tiles: int, waves: int, filled: float) -> None:
    got = predict_gemm(TILE, GemmProblem(m, n, 4096), H200)
    assert (got.tiles, got.waves, got.filled) == (tiles, waves, pytest.approx(filled))


def test_bytes() -> None:
    got = predict_gemm(TILE, GemmProblem(128, 512, 1024), H200)
    assert got.memory_bytes == 2 * (512 * 1024 + 128 * 1024 + 128 * 512)
    assert got.l2_bytes == 2 * (128 + 256) * 1024 * 2
    pair = predict_gemm(replace(TILE, cta_group=2), GemmProblem(256, 256, 1024), H200)
    assert pair.l2_bytes == 2 * (128 + 128) * 1024 * 2


def test_rows_inside_a_sector_cost_more() -> None:
    even, odd = (predict_gemm(TILE, GemmProblem(4096, 4096, k), H200) for k in (4096, 4104))
    assert odd.l2_us > 1.5 * even.l2_us
    padded = predict_gemm(TILE, GemmProblem(4096, 4096, 4104, row_elements=4160), H200)
    assert padded.l2_us < 1.1 * even.l2_us


def test_a_time_is_the_sum_of_its_parts_and_names_what_bounds_it() -> None:
    large = predict_gemm(TILE, GemmProblem(8192, 8192, 8192), H200)
    parts = large.launch_us + large.overlapped_us + large.epilogue_us + large.exchange_us
    assert large.us == pytest.approx(parts)
    assert large.overlapped_us >= max(large.multiply_us, large.l2_us, large.memory_us)
    assert large.bound == "products"
    few = replace(TILE, BM=16, BN=64, num_stages=8, swap_operands=True, BK=128)
    assert predict_gemm(few, GemmProblem(16, 28672, 4096), H200).bound == "memory"


def test_chips() -> None:
    assert chip_for("sm_90a") is H200
    assert chip_for("sm_90a", "NVIDIA H100 80GB HBM3").name == "NVIDIA H100 80GB HBM3"
    assert chip_for("sm_90a", "another") is H200
    assert {chip.arch for chip in CHIPS} == {"sm_90a", "sm_100a", "sm_103a"}
    assert [chip.name for chip in CHIPS if chip.fitted] == ["NVIDIA H200"]
