# ruff: noqa: E501 (a message is on the line of its cause)
"""Every wrong argument of a product is refused by its name; valid arguments get a batch axis."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import (
    GemmArguments,
    check_gemm_arguments,
    gemm_scalar_values,
    out_shape,
)
from fa4gen.runtime.gemm_factors import as_factor
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.tensor_view import TensorView
from tests.runtime.views import GAP, array, changed, gemm_plan, refused

PLAN = gemm_plan(residual="matrix")
WITHOUT = gemm_plan(residual="none")
ROW = gemm_plan(residual="row")
MN_MAJOR = gemm_plan(residual="matrix", a_major="m", b_major="n")
FP8 = gemm_plan(residual="matrix", dtype="fp8_e4m3", out_dtype="fp32")


def make_arguments(plan=PLAN, m=40, n=72, k=64, batch=(), **changes):
    """Good arguments for ``plan``; each other keyword replaces fields of one argument, or it."""
    dtype = {"bf16": "bfloat16", "fp8_e4m3": "uint8"}[plan.dtype]
    out_dtype = {"bf16": "bfloat16", "fp32": "float32"}[plan.out_dtype]
    c_shape = (*batch, *plan.c.extents(m, n)) if plan.c.exists else None
    arguments = GemmArguments(
        array((*batch, m, k), 1, dtype, swapped=plan.a_major == "m"),
        array((*batch, k, n), 2, dtype, swapped=plan.b_major == "k"),
        None if c_shape is None else array(c_shape, 3, out_dtype),
        array((*batch, m, n), 4, out_dtype),
        1.0,
        0.5,
    )
    return changed(arguments, changes)


def refusal(arguments, plan=PLAN):
    return refused(check_gemm_arguments, plan, arguments)


@pytest.mark.parametrize("plan", [PLAN, WITHOUT, ROW, MN_MAJOR, FP8])
@pytest.mark.parametrize("batch", [(), (1,), (3,)])
def test_good_arguments_pass_and_get_a_batch(plan, batch):
    checked = check_gemm_arguments(plan, make_arguments(plan, batch=batch))
    count = batch[0] if batch else 1
    size = checked.size
    assert (size.batch, size.m, size.n, size.k) == (count, 40, 72, 64)
    assert checked.a.shape == (count, 40, 64)
    assert checked.b.shape == (count, 64, 72)
    assert checked.tensor("out").shape == (count, 40, 72)
    for name in ("a", "b", "c", "out"):
        if name == "c" and plan.residual == "none":
            with pytest.raises(KeyError):
                checked.tensor("c")
        else:
            assert len(checked.axes(name)) == len(checked.tensor(name).shape)


def test_bits_of_fp8_are_called_by_their_type():
    assert check_gemm_arguments(FP8, make_arguments(FP8)).a.dtype == "float8_e4m3fn"


@pytest.mark.parametrize(("plan", "c"), [(PLAN, (40, 72)), (ROW, (72,))])
def test_b_and_c_may_be_shared_by_the_whole_batch(plan, c):
    arguments = make_arguments(plan, batch=(3,), b=array((64, 72), 2, swapped=True), c=array(c, 3))
    checked = check_gemm_arguments(plan, arguments)
    assert checked.b.strides == (0, 2, 128)
    assert checked.c is not None
    assert checked.c.shape == (3, *c)
    assert checked.c.strides[0] == 0


@pytest.mark.parametrize(
    ("plan", "changes", "messages"),
    [
        (WITHOUT, {"c": array((40, 72), 3)}, ["c: expected no c, got an array"]),
        (PLAN, {"c": None}, ["c: expected an array of the output's shape (residual: matrix), got nothing"]),
        (ROW, {"c": None}, ["c: expected an array of n elements (residual: row), got nothing"]),
        (PLAN, {"a": array((64,), 1)}, ["a: expected axes (m, k), or (batch, m, k), got 1 axes (64,)"]),
        (ROW, {"c": array((1, 1, 72), 3)}, ["c: expected axes (n,), or (batch, n), got 3 axes (1, 1, 72)"]),
        (PLAN, {"b": array((2, 64, 72), 2)}, ["b: expected no batch, since A has none, got a batch, (2, 64, 72)"]),
        (PLAN, {"out": array((2, 40, 72), 4)}, ["out: expected a batch exactly where A has one, got (2, 40, 72)"]),
        (PLAN, {"b": array((56, 72), 2, swapped=True)}, ["b: expected (batch, k, n) = (1, 64, 72), got (1, 56, 72)"]),
        (PLAN, {"out": array((40, 64), 4)}, ["out: expected (batch, m, n) = (1, 40, 72), got (1, 40, 64)"]),
        (ROW, {"c": array((40,), 3)}, ["c: expected (batch, n) = (1, 72), got (1, 40)"]),
        (PLAN, {"a": {"dtype": "float16"}}, ["a: expected bfloat16 (the config says dtype: bf16), got float16"]),
        (PLAN, {"c": {"dtype": "float32"}}, ["c: expected bfloat16 (the config says out_dtype: bf16), got float32"]),
        (FP8, {"b": {"dtype": "int8"}}, ["b: expected float8_e4m3fn, or its bits as uint8 (the config says dtype: fp8_e4m3), got int8"]),
        (PLAN, {"b": {"device": 1}}, ["b: expected A's device, 0, got device 1"]),
        (PLAN, {"b": {"device": -1}}, ["b: expected memory of a CUDA device, got memory of the CPU"]),
        (PLAN, {"a": {"pointer": GAP + 8}}, ["a: expected an address that is a multiple of 16 bytes, got 0x100000008"]),
        (PLAN, {"a": {"strides": (2, 80)}}, ["a: expected a stride along m that is a multiple of 16 bytes, from 0 to 1099511627775, got 2 bytes",
                                              "a: expected a stride along k of 2 bytes (the config says a_major: k), got 80 bytes"]),
        (PLAN, {"b": {"strides": (144, 2)}}, ["b: expected a stride along k of 2 bytes (the config says b_major: k), got 144 bytes",
                                               "b: expected a stride along n that is a multiple of 16 bytes, from 0 to 1099511627775, got 2 bytes"]),
        (PLAN, {"c": {"strides": (150, 2)}}, ["c: expected a stride along m that is a multiple of 16 bytes, from 0 to 1099511627775, got 150 bytes"]),
        (PLAN, {"a": {"strides": (-128, 2)}}, ["a: expected a stride along m that is a multiple of 16 bytes, from 0 to 1099511627775, got -128 bytes"]),
        (PLAN, {"out": {"strides": (0, 2)}}, ["out: expected elements that do not overlap, got strides of (0, 0, 2) bytes"]),
        (PLAN, {"out": {"pointer": GAP}}, ["out: expected memory of its own, got memory that overlaps a's"]),
        (WITHOUT, {"out": {"pointer": 2 * GAP + 64}}, ["out: expected memory of its own, got memory that overlaps b's"]),
        (PLAN, {"alpha": math.nan}, ["alpha: expected a finite number that float32 holds, got nan"]),
        (PLAN, {"beta": 1e39}, ["beta: expected a finite number that float32 holds, got 1e+39"]),
    ],
)  # fmt: skip
def test_one_wrong_argument(plan, changes, messages):
    assert refusal(make_arguments(plan, **changes), plan) == messages


def test_all_that_is_wrong_is_reported_at_once():
    arguments = make_arguments(a={"dtype": "float16"}, b={"device": -1}, c={"shape": (40, 71)})
    assert [message[:2] for message in refusal(arguments)] == ["a:", "b:", "c:"]


def test_the_output_may_take_the_place_of_c_and_nothing_else():
    good = make_arguments(c={"pointer": 4 * GAP})
    assert check_gemm_arguments(PLAN, good).out.pointer == 4 * GAP
    shifted = make_arguments(c={"pointer": 4 * GAP + 16})
    assert refusal(shifted) == [
        "out: expected memory of its own, or C's own memory, got memory that overlaps c's"
    ]
    wider = make_arguments(c={"pointer": 4 * GAP, "strides": (160, 2)})
    assert refusal(wider)[0].endswith("got memory that overlaps c's")
    row = make_arguments(ROW, c={"pointer": 4 * GAP})
    assert refusal(row, ROW) == ["out: expected memory of its own, got memory that overlaps c's"]


def test_c_in_place_counts_only_in_the_same_order_of_the_batch():
    out = array((2, 40, 72), 4)
    backwards = out._replace(strides=(0, *out.strides[1:]))
    assert refusal(make_arguments(batch=(2,), c=backwards))[0].endswith("overlaps c's")


def test_strides_that_nothing_steps_over_do_not_part_c_from_the_output():
    out = array((1, 1, 72), 4)
    strides = (1600, 320, 2)
    arguments = make_arguments(m=1, batch=(1,), c=out._replace(strides=strides))
    assert check_gemm_arguments(PLAN, arguments).out == out


def test_interleaved_outputs_pass():
    """Columns of one wider array: they are interleaved, and share no byte."""
    wide = {"strides": (4 * 72, 2)}
    arguments = make_arguments(c={**wide, "pointer": 4 * GAP + 144}, out=wide)
    assert check_gemm_arguments(PLAN, arguments).out.strides[1] == 288


@pytest.mark.parametrize("sizes", [{"m": 0}, {"n": 0}, {"k": 0}, {"batch": (0,)}])
def test_tensors_without_elements_may_lie_anywhere(sizes):
    arguments = make_arguments(**sizes)
    for name in ("a", "b", "c", "out"):
        view = getattr(arguments, name)
        if 0 in view.shape:
            odd = view._replace(pointer=0, strides=(3,) * len(view.shape))
            arguments = arguments._replace(**{name: odd})
    assert check_gemm_arguments(PLAN, arguments).size.n == sizes.get("n", 72)


def test_single_rows_may_have_any_stride():
    arguments = make_arguments(m=1, a={"strides": (6, 2)}, out={"strides": (10, 2)})
    assert check_gemm_arguments(PLAN, arguments).size.m == 1


@pytest.mark.parametrize(("alpha", "k"), [(0.0, 0), (-0.0, 0), (1e-60, 0), (1e-40, 64), (1.0, 64)])
def test_a_and_b_are_not_read_where_alpha_is_0_as_float32(alpha, k):
    checked = check_gemm_arguments(PLAN, make_arguments(k=64)._replace(alpha=alpha))
    assert checked.size.k == k
    schedule = plan_gemm_schedule(PLAN, checked.size, 132)
    assert gemm_scalar_values(checked, schedule)["k"] == k


def test_an_extent_beyond_32_bits_is_refused():
    huge = make_arguments(k=64, m=2**31)
    assert refusal(huge)[0].startswith("a: expected an extent m of at most 2147482623")


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70), st.integers(0, 3))
def test_every_size_passes_with_padded_rows(m, n, k, padding):
    def padded(rows, columns, pointer, swapped=False):
        stride = (-(-(rows if swapped else columns) * 2 // 16) + padding) * 16
        strides = (2, stride) if swapped else (stride, 2)
        return TensorView(pointer, (rows, columns), strides, "bfloat16", 0)

    arguments = GemmArguments(
        padded(m, k, GAP),
        padded(k, n, 2 * GAP, swapped=True),
        padded(m, n, 3 * GAP),
        padded(m, n, 4 * GAP),
        1.0,
        0.0,
    )
    size = check_gemm_arguments(PLAN, arguments).size
    assert (size.m, size.n, size.k) == (m, n, k)


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, True, "2", None, 3.5e38, 10**400, [1.0]]
)
def test_what_is_no_factor(value):
    with pytest.raises(ArgumentError, match=r"^alpha: expected a finite number that float32 holds"):
        as_factor("alpha", value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_what_float32_holds_is_a_factor(value):
    assert as_factor("beta", value) == value


def test_the_output_of_what_has_no_product_is_not_made():
    a, b = array((3, 40, 64), 1), array((64, 72), 2)
    assert out_shape(WITHOUT, a, b) == (3, 40, 72)
    assert out_shape(WITHOUT, a._replace(shape=(64,)), b) is None
    assert out_shape(WITHOUT, a._replace(device=-1), b) is None
