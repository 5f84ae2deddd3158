from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.input_kinds import KINDS, QUANTISED_KINDS
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.inputs import make_rng
from fa4gen.verify.rounding import round_to

TYPES = [("bf16", "bf16"), ("bf16", "fp32"), ("fp16", "fp16"), ("fp8_e4m3", "bf16")]


def draw(plan, **keys):
    case = GemmCase("c", 70, 50, 90, **keys)
    return make_inputs(case, plan, make_rng(1, case.name))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in QUANTISED_KINDS])
@pytest.mark.parametrize(("dtype", "out_dtype"), TYPES)
def test_values_are_numbers_of_their_types_and_results_fit(
    make_plan, kind, dtype, out_dtype
) -> None:
    plan = make_plan(dtype=dtype, out_dtype=out_dtype, residual="matrix")
    inputs = draw(plan, data=kind)
    for array, name in ((inputs.a, dtype), (inputs.b, dtype), (inputs.c, out_dtype)):
        assert np.isfinite(array).all()
        assert name == "fp32" or np.array_equal(round_to(array, name), array)
    total = inputs.a[0].astype(np.float64) @ inputs.b[0]
    assert np.abs(total).max() < 2.0**120
    largest = np.abs(inputs.alpha * total).max()
    assert largest < (65504 if out_dtype == "fp16" else 2.0**60)
    assert largest > 0 or kind == "positions"


def test_each_block_of_b_has_columns_of_nan_and_others(make_plan) -> None:
    case = GemmCase("c", 9, 300, 24, data="nan_columns")
    inputs = make_inputs(case, make_plan(dtype="bf16"), make_rng(1, "c"))
    is_nan = np.isnan(inputs.b[0])
    assert (is_nan.all(axis=0) == is_nan.any(axis=0)).all()
    for first in range(0, 300, 128):
        assert 0 < is_nan[0, first : first + 128].sum() < 44
    assert np.isfinite(inputs.a).all()


def test_c_tells_positions_apart(make_plan) -> None:
    for out_dtype in ("bf16", "fp16", "fp32"):
        plan = make_plan(dtype="bf16", out_dtype=out_dtype, residual="matrix")
        inputs = make_inputs(GemmCase("c", 300, 264, 8, data="positions"), plan, make_rng(1, "c"))
        c = inputs.c[0]
        assert not inputs.a.any()
        for distance in (1, 7, 8, 16, 64, 128, 256):
            assert (c[distance:] != c[:-distance]).all()
            assert distance > 200 or (c[:, distance:] != c[:, :-distance]).all()
    assert np.unique(c).size == c.size


def test_shapes(make_plan) -> None:
    inputs = draw(make_plan(residual="row"), batch=3, shared=("b",))
    assert inputs.a.shape == (3, 70, 90)
    assert inputs.b.shape == (1, 90, 50)
    assert inputs.c.shape == (3, 50)
    assert draw(make_plan()).c is None


def test_cancelling_sums_are_small_beside_their_terms(make_plan) -> None:
    inputs = draw(make_plan(), data="cancelling")
    total = np.abs(inputs.a[0].astype(np.float64) @ inputs.b[0]).mean()
    assert total < 0.02 * (np.abs(inputs.a[0]) @ np.abs(inputs.b[0])).mean()


@pytest.mark.parametrize(("dtype", "out_dtype"), TYPES)
def test_data_that_count_are_whole_and_need_more_bits_than_bf16(
    make_plan, dtype, out_dtype
) -> None:
    for k in (1, 40, 90, 3000):
        plan = make_plan(dtype=dtype, out_dtype=out_dtype, residual="matrix")
        case = GemmCase("c", 70, 50, k, batch=2, data="counting")
        inputs = make_inputs(case, plan, make_rng(1, "c"))
        for array in (inputs.a, inputs.b, inputs.c):
            np.testing.assert_array_equal(array, np.rint(array))
            for axis in range(3):
                if array.shape[axis] > 1:
                    assert (np.diff(array, axis=axis) != 0).mean() > (0.02 if k > 100 else 0.7)
        sums = np.abs(inputs.a @ inputs.b)
        assert 256 < sums.max() < 2000 or k == 1
        assert (sums != round_to(sums, "bf16")).mean() > 0.1 or k == 1
