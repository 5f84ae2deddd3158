"""The amax of a product on Hopper: what a call has to pass, and what the kernel gets."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, gemm_scalar_values
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from tests.runtime.views import array, gemm_plan

ROWS, N, K, GROUPS = 100, 72, 256, 5
PLAIN = gemm_plan(output_scales="amax")
GROUPED = gemm_plan(output_scales="amax", groups="offsets")


def arguments(**changes: Any) -> GemmArguments:
    a, b = array((ROWS, K), 1), array((K, N), 2, swapped=True)
    found = GemmArguments(a, b, None, array((ROWS, N), 4), 1.0, 0.0)
    return found._replace(out_amax=array((1,), 5, "float32"))._replace(**changes)


def of_groups(**changes: Any) -> GemmArguments:
    return arguments(
        b=array((GROUPS, K, N), 2, swapped=True),
        row_offsets=array((GROUPS + 1,), 7, "int32"),
        out_amax=array((GROUPS,), 5, "float32"),
    )._replace(**changes)


@pytest.mark.parametrize(("plan", "given"), [(PLAIN, arguments()), (GROUPED, of_groups())])
def test_the_kernel_gets_its_address(plan: Any, given: GemmArguments) -> None:
    checked = check_gemm_arguments(plan, given)
    values = gemm_scalar_values(checked, plan_gemm_schedule(plan, checked.size, 132))
    assert given.out_amax is not None
    assert values["out_amax"] == given.out_amax.pointer


@pytest.mark.parametrize(
    ("plan", "given", "message"),
    [
        (PLAIN, arguments(out_amax=None), "out_amax: expected float32 (1,), 0 or what is to be"),
        (GROUPED, of_groups(out_amax=None), "out_amax: expected float32 (groups,), 0 or what is"),
        (PLAIN, arguments(out_amax=array((1,), 5)), "out_amax: expected float32, got bfloat16"),
        (PLAIN, arguments(out_amax=array((2,), 5, "float32")), "expected (1,) = (1,), got (2,)"),
        (GROUPED, of_groups(out_amax=array((1,), 5, "float32")),
         "out_amax: expected (groups,) = (5,), got (1,)"),
        (GROUPED, of_groups(out_amax=array((5,), 5, "float32")._replace(strides=(8,))),
         "out_amax: expected contiguous elements, got strides of (8,) bytes"),
        (gemm_plan(), arguments(), "out_amax: expected no out_amax, got an array"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(plan: Any, given: GemmArguments, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(plan, given)
    assert any(message in problem.message for problem in caught.value.problems)
