from __future__ import annotations

import json
from typing import Any

import pytest

from fa4gen.bench.family import family_called, family_of
from fa4gen.bench.gemm_workload import parse_sizes
from fa4gen.bench.report import config_table, residual_table, results_data, summary_table
from fa4gen.bench.residual import most_alike, residual_costs
from fa4gen.bench.results import ConfigResult, Series, SizeResult
from fa4gen.bench.run import BenchOptions
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import FAMILIES

FACTS = {
    "kernel": "gemm",
    "arch": "sm_90a",
    "dtype": "bf16",
    "out_dtype": "bf16",
    "a_major": "k",
    "b_major": "k",
    "residual": "none",
    "activation": None,
    "BM": 128,
    "BN": 256,
}


def make_size(
    word: str, ours: float, without: tuple[str, float] | None = None, **peers: float
) -> SizeResult:
    (size,) = parse_sizes(word)
    return SizeResult(
        size=size,
        flop=size.flop,
        ours=Series((ours, ours), (0.0, 0.0)),
        peers={name: Series((time,), (0.0,)) for name, time in peers.items()},
        left_out={},
        error=0.0017,
        without=(without[0], Series((without[1],), (0.0,))) if without is not None else None,
    )


def make_result(name: str, *sizes: SizeResult, **facts: Any) -> ConfigResult:
    return ConfigResult(f"{name}.yaml", name, FACTS | facts, sizes, family="gemm")


PLAIN = make_result(
    "plain", make_size("2k", 0.5, cublas=0.4), make_size("8kx28kx8k", 5.0, cublas=10.0)
)
RESIDUAL = make_result(
    "residual",
    make_size("2k", 0.52, ("plain", 0.5)),
    make_size("8kx28kx8k", 5.1, ("plain", 5.0)),
    residual="matrix",
)


def data(*results: ConfigResult) -> Any:
    options = BenchOptions(parse_sizes("2k"), family="gemm")
    document = results_data(results, options, date="2026-11-21", gpu={}, versions={})
    return json.loads(json.dumps(document, allow_nan=False))


def test_plans_have_their_families() -> None:
    keys = {"arch": "sm_90a", "dtype": "bf16"}
    gemm = build_plan(load_mapping({"kernel": "gemm", **keys}, "g").config)
    attention = {"kernel": "attention", "depth": 128, "mask": "causal", **keys}
    assert family_of(gemm) is family_called("gemm")
    assert family_of(build_plan(load_mapping(attention, "a").config)) is family_called("attention")
    assert all(family_called(name).name == name for name, row in FAMILIES.items() if row.bench)


def test_the_table_of_a_config() -> None:
    table = config_table(PLAIN)
    assert table.title == "plain: bf16, no residual; TFLOP/s"
    assert table.columns == ("m", "n", "k", "ours", "cublas", "ours/cublas", "spread")
    assert table.rows == (
        ("2048", "2048", "2048", "34", "43", "0.800", "0.0 %"),
        ("8192", "28672", "8192", "770", "385", "2.000", "0.0 %"),
        ("geometric mean", "", "", "", "", "1.265", ""),
    )


def test_the_summary() -> None:
    table = summary_table([PLAIN, RESIDUAL])
    assert table is not None
    assert table.columns == ("ours / best peer", "2k", "8kx28kx8k", "geometric mean")
    assert table.rows == (("plain", "0.800", "2.000", "1.265"),)


def test_what_the_residual_costs() -> None:
    (cost,) = residual_costs([RESIDUAL, PLAIN])
    assert (cost.config, cost.without) == ("residual", "plain")
    assert cost.sizes == pytest.approx({"2k": 0.04, "8kx28kx8k": 0.02})
    table = residual_table([PLAIN, RESIDUAL])
    assert table is not None
    assert table.columns == ("what the residual costs", "over", "2k", "8kx28kx8k")
    assert table.rows == (("residual", "plain", "+4.0 %", "+2.0 %"),)


def test_without_another_config_it_is_not_known_what_the_residual_costs() -> None:
    alone = make_result("alone", make_size("2k", 0.5), residual="matrix")
    assert residual_costs([PLAIN, alone]) == ()
    assert residual_table([PLAIN, alone]) is None


def test_a_residual_is_compared_only_with_the_same_product_without_one() -> None:
    matrix = FACTS | {"residual": "matrix"}
    assert most_alike(matrix, [FACTS]) == 0
    assert most_alike(FACTS, [FACTS]) is None
    for other in ({"dtype": "fp16"}, {"activation": "relu(x)"}, {"b_major": "n"}):
        assert most_alike(matrix, [FACTS | other]) is None
    assert most_alike(matrix, [matrix, FACTS | {"residual": "row"}]) is None


def test_a_residual_is_compared_with_the_config_most_like_it() -> None:
    plain = [FACTS | {"residual": "row"}, FACTS, FACTS | {"BN": 128}, FACTS]
    assert most_alike(FACTS | {"residual": "matrix"}, plain) == 1
    assert most_alike(FACTS | {"residual": "row", "BN": 128}, plain) == 2


def test_the_json_document() -> None:
    document = data(PLAIN, RESIDUAL)
    assert document["protocol"]["alpha"] == 1.0
    assert document["protocol"]["beta"]["matrix"] == 0.5
    plain, _ = document["configs"]
    assert plain["kernel"] == "gemm"
    assert plain["geometric_means"] == {"cublas": 1.2649, "best": 1.2649}
    size = plain["sizes"][1]
    assert (size["m"], size["n"], size["k"]) == (8192, 28672, 8192)
    assert size["ratios"] == {"cublas": 2.0, "best": 2.0}
    sizes = {"2k": 0.04, "8kx28kx8k": 0.02}
    assert document["residual_costs"] == [
        {"config": "residual", "without": "plain", "sizes": sizes}
    ]
    assert "residual_costs" not in data(PLAIN)
