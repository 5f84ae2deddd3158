"""Bounds: hardware's sums, done here by the rules that were measured, stay inside them."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from fa4gen.epilogues import residual_of
from fa4gen.epilogues.activation import parse_activation
from fa4gen.verify.gemm.activation import ActivationError
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.inputs import GemmInputs, make_inputs
from fa4gen.verify.gemm.reference import GemmProblem, compute
from fa4gen.verify.gemm.tolerance import (
    Accumulation,
    GemmErrors,
    bounds,
    element_shares,
    measure,
    sum_products,
)
from fa4gen.verify.inputs import make_rng
from fa4gen.verify.rounding import round_to
from tests.verify.gemm.conftest import tensor_core_sum

HOW = {"bf16": Accumulation(16, 25), "fp8_e4m3": Accumulation(32, 13)}


def draw(dtype: str, m: int = 20, n: int = 24, k: int = 200, seed: int = 1):
    rng = np.random.default_rng(seed)
    return (
        round_to(rng.standard_normal((m, k), dtype=np.float32), dtype),
        round_to(rng.standard_normal((k, n), dtype=np.float32), dtype),
    )


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("dtype", HOW)
def test_tensor_cores_stay_inside_and_use_some_of_it(dtype, positive) -> None:
    a, b = draw(dtype, k=1000)
    if positive:
        a, b = np.abs(a), np.abs(b)
    exact, error = sum_products(HOW[dtype], a, b)
    assert np.allclose(exact, a.astype(np.float64) @ b, rtol=1e-13)
    shares = np.abs(tensor_core_sum(*astuple(HOW[dtype]), a, b) - exact) / error
    assert 0.05 < shares.max() <= 1


def test_coarse_sums_exceed_the_bound_of_fine_ones() -> None:
    a, b = draw("fp8_e4m3")
    coarse = tensor_core_sum(*astuple(HOW["fp8_e4m3"]), a, b)
    exact, error = sum_products(Accumulation(32, 25), a, b)
    assert (np.abs(coarse - exact) > error).mean() > 0.9


def test_which_kernels_add_coarsely(make_plan) -> None:
    assert Accumulation.of(make_plan()) == HOW["bf16"]
    assert Accumulation.of(make_plan(dtype="fp8_e4m3")) == HOW["fp8_e4m3"]
    blackwell = make_plan(arch="sm_100a", dtype="fp8_e4m3")
    assert Accumulation.of(blackwell) == Accumulation(32, 25)


def product(dtype="bf16", out_dtype="bf16", activation=None, c=None, alpha=1.0, beta=1.0, **keys):
    a, b = draw(dtype, **keys)
    problem = GemmProblem(
        out_dtype, residual_of("matrix"), activation and parse_activation(activation), HOW[dtype]
    )
    return compute(problem, GemmInputs(a[None], b[None], c, alpha, beta))


@pytest.mark.parametrize("out_dtype", ["bf16", "fp16", "fp32"])
def test_numpys_own_result_is_inside(out_dtype) -> None:
    result = product(out_dtype=out_dtype)
    errors, limits = measure(result.own, result, out_dtype), bounds(result, out_dtype)
    assert all(0 < error <= dict(limits)[name] for name, error in errors)


def test_what_cannot_be_rounded_has_to_be_met_exactly() -> None:
    c = np.arange(20 * 24, dtype=np.float32).reshape(1, 20, 24)
    result = product(out_dtype="fp32", c=c, alpha=0.0, beta=-2.0)
    assert np.array_equal(result.low, -2 * c)
    assert np.array_equal(result.high, -2 * c)
    assert measure(-2 * c, result, "fp32") == GemmErrors(0, 0, 0)
    wrong = -2 * c
    wrong[0, 3, 5] = np.nextafter(wrong[0, 3, 5], np.float32(0))
    assert measure(wrong, result, "fp32").element == np.inf


def test_one_unit_beyond_the_interval_is_reported() -> None:
    result = product()
    at = (0, 7, 11)
    got = result.own.copy()
    got[at] = result.high[at]
    assert element_shares(got, result).max() <= 1
    got[at] = (result.high[at].view(np.uint32) + (1 << 16)).view(np.float32)
    if result.high[at] < 0:
        got[at] = (result.low[at].view(np.uint32) + (1 << 16)).view(np.float32)
    assert element_shares(got, result)[at] > 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_infinitely_wrong(bad) -> None:
    result = product()
    got = result.own.copy()
    got[0, 1, 2] = bad
    assert set(dict(measure(got, result, "bf16")).values()) == {np.inf}


def test_overflow_is_right_where_the_exact_result_overflows() -> None:
    result = product(out_dtype="fp16", alpha=2.0**15)
    assert np.isinf(result.own).any()
    assert measure(result.own, result, "fp16").element <= 1
    clipped = np.clip(result.own, -65504, 65504)
    assert measure(clipped, result, "fp16").element == np.inf


def test_nothing_at_all() -> None:
    result = product(m=0)
    assert measure(result.own, result, "bf16") == GemmErrors(0, 0, 0)
    no_k = product(k=0)
    assert np.array_equal(no_k.high, np.zeros((1, 20, 24)))


STEEP = ["exp(x)", "1 - exp(-x)", "gelu(x)", "silu(x)", "max(x, 0)", "tanh(30 * x)", "x * x"]


@pytest.mark.parametrize("text", STEEP)
def test_an_activation_carries_errors_as_far_as_it_is_steep(text) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 50)) * 3
    error = np.abs(x) * 1e-5
    expression = parse_activation(text)
    exact, low, high = ActivationError(expression).apply(x, error, np)
    for share in (-1, -0.3, 0, 0.9, 1):
        moved = (x + share * error).astype(np.float32)
        found = expression.evaluate(moved, np).astype(np.float64)
        assert ((low <= found) & (found <= high)).all()
    # The bound is no more than a few times what the errors do.
    width = np.abs(expression.evaluate(x * (1 + 3e-5), np) - exact) + 1e-4 * np.abs(exact) + 1e-5
    assert (high - low <= 2 * width).all()


@pytest.mark.parametrize("text", ["silu(x)", "gelu(x)", "x * x", "abs(x)", "x - x * x * x"])
def test_a_wide_interval_contains_where_the_activation_turns(text) -> None:
    """An error of fp8 sums spans a minimum that none of the points is at."""
    x = np.linspace(-3, 3, 601)[None]
    expression = parse_activation(text)
    for error in (0.01, 0.05, 0.3):
        _, low, high = ActivationError(expression).apply(x, np.full_like(x, error), np)
        for share in np.linspace(-1, 1, 41):
            found = expression.evaluate(x + share * error, np)
            assert ((low <= found) & (found <= high)).all()
    _, low, _ = ActivationError(parse_activation("max(x, 0)")).apply(x, np.full_like(x, 0.3), np)
    assert low.min() > -1e-6  # a function that never falls passes no point


def test_results_that_are_no_numbers_are_expected() -> None:
    with np.errstate(invalid="ignore"):
        result = product(activation="sqrt(x)")
        assert np.isnan(result.own).any()
        assert measure(result.own, result, "bf16").element <= 1
        assert measure(np.nan_to_num(result.own), result, "bf16").element == np.inf


WHOLE = [
    {},
    {"residual": "matrix"},
    {"residual": "row", "out_dtype": "fp32"},
    {"dtype": "fp8_e4m3", "residual": "column"},
    {"dtype": "fp16", "activation": "relu(x)"},
    {"activation": "max(x, -0.5)", "residual": "matrix"},
]


@pytest.mark.parametrize("keys", WHOLE, ids=str)
@pytest.mark.parametrize("factors", [(1.0, 0.5), (-1.5, -2.0), (0.25, 1.0)])
def test_whole_numbers_leave_no_choice_but_the_right_bits(make_plan, keys, factors) -> None:
    plan = make_plan(**keys)
    alpha, beta = factors
    case = GemmCase("c", 60, 50, 300, batch=2, alpha=alpha, beta=beta, data="counting")
    inputs = make_inputs(case, plan, make_rng(1, "c"))
    found = compute(GemmProblem.of(plan), inputs)
    np.testing.assert_array_equal(found.low, found.high)
    np.testing.assert_array_equal(found.own, found.low)
    assert (found.slack == 0).all()


def test_an_activation_that_rounds_leaves_its_own_error(make_plan) -> None:
    plan = make_plan(activation="silu(x)", out_dtype="fp32")
    inputs = make_inputs(GemmCase("c", 60, 50, 300, data="counting"), plan, make_rng(1, "c"))
    found = compute(GemmProblem.of(plan), inputs)
    assert (found.low < found.high).mean() > 0.9
    assert found.slack.max() < 1e-4


@pytest.mark.parametrize("power", [4, 12])
def test_large_whole_numbers_are_cut_by_few_alignment_bits(power) -> None:
    """Hopper's fp8 keeps 13 bits of the largest product: sums of 2^12 and more may be cut."""
    coarse = Accumulation(32, 13)
    a = np.ones((3, 64), np.float32)
    b = np.full((64, 2), 2.0 ** (power - 6), np.float32)
    _, error = sum_products(coarse, a, np.rint(b), np)
    assert (error > 0).all() == (power == 12)
