"""Products with block scales in bench: NumPy in place of CuPy, and kernels by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.bench.gemm_family import GEMM
from fa4gen.bench.gemm_work import GemmWork
from fa4gen.bench.gemm_workload import parse_sizes
from fa4gen.bench.gpu_arrays import RandomNumbers
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError, Fa4genError
from tests.bench.fakes import COMPILED, put_on_numpy
from tests.bench.scaled_kernel import ScaledKernel

HOPPER = {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3"}
BLACKWELL = {"kernel": "gemm", "arch": "sm_100a"}
BLOCKS = {"a": "1x128", "b": "128x128"}
CONFIGS: dict[str, dict[str, Any]] = {
    "blocks": {**HOPPER, "scales": BLOCKS},
    "lines": {**HOPPER, "scales": {"a": "1x128", "b": "1x128"}, "out_dtype": "fp32"},
    "bytes": {**HOPPER, "scales": {**BLOCKS, "dtype": "ue8m0"}, "residual": "matrix"},
    "both types": {**HOPPER, "dtype": "fp8_e5m2", "b_dtype": "fp8_e4m3", "scales": BLOCKS},
    "wide exponents": {**HOPPER, "dtype": "fp8_e5m2", "scales": BLOCKS, "activation": "relu(x)"},
    "gathered": {**HOPPER, "scales": BLOCKS, "rows": "gathered"},
    "mxfp8": {**BLACKWELL, "dtype": "fp8_e5m2", "scales": "mxfp8", "a_major": "m", "b_major": "n"},
    "mxfp4": {**BLACKWELL, "dtype": "fp4_e2m1", "scales": "mxfp4", "residual": "row"},
    "nvfp4": {**BLACKWELL, "dtype": "fp4_e2m1", "scales": "nvfp4"},
}


def plan_of(name: str) -> Any:
    return build_plan(load_mapping(CONFIGS[name], name.replace(" ", "_")).config)


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr("fa4gen.runtime.gemm.GemmKernel", ScaledKernel)
    monkeypatch.setattr(ScaledKernel, "prepared", [])
    put_on_numpy(monkeypatch)

    def make(sizes: str) -> Bench:
        return Bench(BenchOptions(parse_sizes(sizes), rounds=1, family="gemm"), ())

    return make


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("size", ["200x272x416", "2x40x272x160"])
def test_a_kernel_by_the_definition_is_right(bench, name, size) -> None:
    plan = plan_of(name)
    (result,) = bench(size).time_kernel(plan, COMPILED).sizes
    assert result.error < {"fp32": 1e-6, "bf16": 2.0**-8}[plan.out_dtype]
    (given,) = ScaledKernel.prepared
    m, n, k = result.size.m, result.size.n, result.size.k  # type: ignore[attr-defined]
    lead = (2,) if result.size.word.startswith("2x40") else ()
    for row in plan.scales:
        extents = row.extents(m, n, k)
        assert given[row.name].shape == (*lead, *(extents[axis] for axis in row.axes[1:]))
        assert len(np.unique(given[row.name])) > 2, "of several sizes"
    assert given["a"].shape == (*lead, m, k // plan.elements_per_byte)


@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("size", ["3x40:272x160", "1x40:272x160"])
def test_equal_groups_are_the_matrices_of_a_batch(bench, groups: str, size: str) -> None:
    plan = build_plan(load_mapping({**CONFIGS["blocks"], "groups": groups}, "grouped").config)
    (result,) = bench(size).time_kernel(plan, COMPILED).sizes
    assert result.error < 2.0**-8
    (given,) = ScaledKernel.prepared
    count = int(size[0])
    assert given["b"].shape == (count, 160, 272)
    assert given["a"].shape == ((40 * count, 160) if groups == "offsets" else (count, 40, 160))
    assert GEMM.facts(plan, COMPILED)["groups"] == groups


def test_groups_that_are_no_matrices_are_refused(bench) -> None:
    keys = {**CONFIGS["nvfp4"], "groups": "offsets"}
    plan = build_plan(load_mapping(keys, "atoms").config)
    with pytest.raises(ConfigError, match="bench passes no scales in atoms of groups"):
        bench("3x40:272x160").time_kernel(plan, COMPILED)


def exchange(scales: dict[str, Any]) -> None:
    scales["scale_a"] = scales["scale_a"][..., ::-1].copy()


def next_row(scales: dict[str, Any]) -> None:
    axis = 2 if scales["scale_a"].ndim > 4 else 0  # lines of an atom
    scales["scale_a"] = np.roll(scales["scale_a"], 1, axis)


def one_for_all(scales: dict[str, Any]) -> None:
    scales["scale_b"][:] = scales["scale_b"].ravel()[0]


def index_of_the_tile_before(given: dict[str, Any]) -> None:
    given["row_index"] = np.roll(given["row_index"], 64)


def test_a_wrong_index_of_rows_is_noticed(bench, monkeypatch) -> None:
    monkeypatch.setattr(ScaledKernel, "mistake", staticmethod(index_of_the_tile_before))
    with pytest.raises(Fa4genError, match=r"is wrong at 200x272x416: .* from float64"):
        bench("200x272x416").time_kernel(plan_of("gathered"), COMPILED)
    (given,) = ScaledKernel.prepared
    assert sorted(given["row_index"].tolist()) == list(range(200))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("mistake", [exchange, next_row, one_for_all])
def test_wrong_scales_are_noticed(bench, monkeypatch, name, mistake) -> None:
    monkeypatch.setattr(ScaledKernel, "mistake", staticmethod(mistake))
    with pytest.raises(Fa4genError, match=r"is wrong at 200x272x416: .* from float64"):
        bench("200x272x416").time_kernel(plan_of(name), COMPILED)


def test_the_facts_name_scales_and_both_types(bench) -> None:
    result = bench("64x64x128").time_kernel(plan_of("both types"), COMPILED)
    assert (result.facts["dtype"], result.facts["b_dtype"]) == ("fp8_e5m2", "fp8_e4m3")
    assert result.facts["scales"] == "A 1x128 fp32 and B 128x128 fp32"
    plain = build_plan(load_mapping(HOPPER, "plain").config)
    assert not {"scales", "b_dtype", "rows"} & GEMM.facts(plain, COMPILED).keys()
    facts = GEMM.facts(plan_of("gathered"), COMPILED)
    assert facts["rows"] == "gathered"
    assert "gathered rows" in GEMM.describe(facts)


def test_a_residual_is_compared_with_the_same_scales_only(bench) -> None:
    def facts(name: str, **keys: Any) -> Any:
        return GEMM.facts(build_plan(load_mapping({**CONFIGS[name], **keys}, "c").config), COMPILED)

    wanted = facts("blocks", residual="matrix")
    assert GEMM.compared_with(wanted, [facts("both types"), facts("blocks")]) == 1
    assert GEMM.compared_with(wanted, [facts("bytes", residual="none")]) is None


def test_every_set_has_scales_of_its_own(bench, monkeypatch) -> None:
    put_on_numpy(monkeypatch, l2_bytes=1 << 20)
    bench("64x128x256").time_kernel(plan_of("lines"), COMPILED)
    assert len(ScaledKernel.prepared) > 1
    one, other = (given["scale_a"] for given in ScaledKernel.prepared[:2])
    assert (one != other).all()


def test_scales_of_a_may_lie_column_by_column(bench) -> None:
    plan, (size,) = plan_of("blocks"), parse_sizes("40x128x512")
    rows = GemmWork(plan, size, RandomNumbers(0))
    columns = GemmWork(plan, size, RandomNumbers(0), scales_along_m=True)
    for work in (rows, columns):
        work.launch(plan, COMPILED)
    one, other = (given["scale_a"] for given in ScaledKernel.prepared)
    assert (one.strides, other.strides) == ((16, 4), (4, 160))
    np.testing.assert_array_equal(one, other)


def test_an_odd_k_of_elements_of_four_bits_is_refused(bench) -> None:
    with pytest.raises(ConfigError, match=r"16x32x33: two elements of fp4_e2m1 share a byte"):
        bench("16x32x33").time_kernel(plan_of("nvfp4"), COMPILED)
    assert ScaledKernel.prepared == []


@pytest.mark.parametrize("name", CONFIGS)
def test_a_problem_of_one_tile_for_the_host(name) -> None:
    plan = plan_of(name)
    given = GEMM.small_tensors(plan, lambda shape, dtype: np.zeros(shape))
    assert given["a"].size == 64 * 64 // plan.elements_per_byte
    assert ("row_index" in given) == plan.gathers_rows
    for row in plan.scales:
        assert given[row.name].shape == {
            "1x128": (64, 1) if row.operand == "a" else (1, 64), "128x128": (1, 1)
        }.get(row.form, (1, 1, 32, 4, 4))  # fmt: skip
