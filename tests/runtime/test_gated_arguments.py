"""Arguments of a product with a gated activation: B with gate and up, an output of half as many."""

from __future__ import annotations

import pytest

from fa4gen.runtime.gated_arguments import with_halves
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, out_shape
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.tensor_map import describe_axes
from tests.runtime.views import GAP, array, changed, gemm_plan, refused

KEYS = {"activation": "silu(gate) * up"}
PLAN = gemm_plan(**KEYS)
TURNS = gemm_plan(**KEYS, gate_layout="interleaved")
MATRIX = gemm_plan(**KEYS, residual="matrix")
ROW = gemm_plan(**KEYS, residual="row")
N_MAJOR = gemm_plan(**KEYS, b_major="n")


def arguments(plan=PLAN, m=40, n=96, k=64, batch=(), **changes):
    """Good arguments for ``plan``, with an output of n / 2 columns."""
    c = None
    if plan.c.exists:
        c = array((*batch, *plan.c_extents(m, n // 2)), 3)
    given = GemmArguments(
        array((*batch, m, k), 1),
        array((*batch, k, n), 2, swapped=plan.b_major == "k"),
        c,
        array((*batch, m, n // 2), 4),
        1.0,
        0.5,
    )
    return changed(given, changes)


@pytest.mark.parametrize("plan", [PLAN, TURNS, MATRIX, ROW, N_MAJOR])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_the_output_has_half_of_the_columns_of_b(plan, batch):
    given = arguments(plan, batch=batch)
    assert out_shape(plan, given.a, given.b) == (*batch, 40, 48)
    checked = check_gemm_arguments(plan, given)
    assert (checked.size.m, checked.size.n, checked.size.k) == (40, 48, 64)
    assert checked.tensor("b").shape == ((batch or (1,))[0], 64, 2, 48)
    assert checked.axes("b") == ("batch", "k", "half", "n")
    schedule = plan_gemm_schedule(plan, checked.size, 132)
    assert schedule.column_tiles == 1


def test_halves_of_b_are_where_the_layout_says():
    view = array((3, 64, 96), 2, swapped=True)  # k contiguous
    assert with_halves(PLAN, view).strides == (64 * 96 * 2, 2, 48 * 128, 128)
    assert with_halves(TURNS, view).strides == (64 * 96 * 2, 2, 128, 256)
    view = array((3, 64, 96), 2)
    assert with_halves(N_MAJOR, view).strides == (64 * 96 * 2, 192, 96, 2)


def test_the_map_of_b_has_a_dimension_for_both():
    for plan, strides in ((PLAN, (128, 48 * 128)), (TURNS, (256, 128))):
        checked = check_gemm_arguments(plan, arguments(plan))
        row = plan.tensor_map("b")
        spec = describe_axes(row, checked.b, checked.axes("b"), fallback_pointer=GAP)
        assert spec.dims == (64, 48, 2, 1)
        assert spec.strides[:2] == strides


@pytest.mark.parametrize(
    ("plan", "changes", "expected"),
    [
        (
            PLAN,
            {"n": 95},
            ["b: expected a multiple of 2: gate has the first half", "got 95 columns"],
        ),
        (TURNS, {"n": 95}, ["a multiple of 2: gate and up have a column each"]),
        (N_MAJOR, {"n": 72}, ["a multiple of 16", "which begins at a multiple of 16 bytes"]),
        (ROW, {"n": 72}, ["a multiple of 16", "which begins at a multiple of 16 bytes"]),
        (PLAN, {"out": array((40, 96), 4)}, ["out: ", "(batch, m, n / 2) = (1, 40, 48)"]),
        (MATRIX, {"c": array((40, 96), 3)}, ["c: ", "(batch, m, n / 2) = (1, 40, 48)"]),
        (ROW, {"c": array((48,), 3)}, ["c: ", "(batch, n) = (1, 96)"]),
    ],
)
def test_wrong_columns_are_refused(plan, changes, expected):
    found = refused(check_gemm_arguments, plan, arguments(plan, **changes))
    text = str(found)
    for words in expected:
        assert words in text


def test_a_scale_of_columns_of_both_is_refused():
    keys = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}}
    plan = gemm_plan(**KEYS, **keys)
    given = GemmArguments(
        array((40, 128), 1, "float8_e4m3fn"),
        array((128, 384), 2, "float8_e4m3fn", swapped=True),
        None,
        array((40, 192), 4),
        1.0,
        0.5,
        array((40, 1), 5, "float32"),
        array((1, 3), 6, "float32"),
    )
    found = str(refused(check_gemm_arguments, plan, given))
    assert "got 384 columns" in found
    assert "b: expected a multiple of 256" in found
    assert "no scale, or atom of scales, is for columns of both" in found
