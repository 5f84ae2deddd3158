"""Outputs of nvfp4: what a call has to pass, two elements a byte, and the scale of the tensor."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import (
    GemmArguments,
    check_gemm_arguments,
    gemm_scalar_values,
    out_shape,
)
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.parameters import pack
from tests.runtime.views import array, gemm_plan

M, N, K = 40, 320, 64
PLAIN = gemm_plan(arch="sm_100a", output_scales="nvfp4")
GATED = gemm_plan(arch="sm_100a", output_scales="nvfp4", activation="silu(gate) * up")
ATOMS = gemm_plan(arch="sm_100a", output_scales="nvfp4", output_scale_order="arranged")
MXFP8 = gemm_plan(arch="sm_100a", output_scales="mxfp8")


def arguments(plan: Any = PLAIN, **changes: Any) -> GemmArguments:
    columns = plan.output_columns(N)
    found = GemmArguments(
        array((M, K), 1),
        array((K, N), 2, swapped=True),
        None,
        array((M, columns // 2), 4, "uint8"),
        1.0,
        0.0,
        out_scales=array((M, columns // 16), 5, "uint8"),
        out_tensor_scale=array((1,), 6, "float32"),
    )
    return found._replace(**changes)


@pytest.mark.parametrize("plan", [PLAIN, GATED], ids=["plain", "gated"])
def test_the_kernel_gets_columns_in_elements_and_the_address_of_the_scale(plan: Any) -> None:
    given = arguments(plan)
    checked = check_gemm_arguments(plan, given)
    values = gemm_scalar_values(checked, plan_gemm_schedule(plan, checked.size, 148))
    assert given.out_tensor_scale is not None
    assert values["out_tensor_scale"] == given.out_tensor_scale.pointer
    assert values["n"] == plan.output_columns(N)
    assert values["out_scales_m_stride"] == plan.output_columns(N) // 16
    maps = {row.parameter: bytes(128) for row in plan.tensor_maps}
    assert pack(plan.parameters, {**values, **maps})


def test_an_output_is_half_as_wide_and_atoms_are_of_64_columns() -> None:
    a, b = arguments().a, arguments().b
    assert out_shape(PLAIN, a, b) == (M, N // 2)
    assert out_shape(GATED, a, b) == (M, N // 4)
    given = arguments(ATOMS, out_scales=array((1, 5, 32, 4, 4), 5, "uint8"))
    values = gemm_scalar_values(
        checked := check_gemm_arguments(ATOMS, given),
        plan_gemm_schedule(ATOMS, checked.size, 148),
    )
    assert values["out_scales_block_atoms_stride"] == 512


@pytest.mark.parametrize(
    ("plan", "given", "message"),
    [
        (PLAIN, arguments(out_tensor_scale=None),
         "out_tensor_scale: expected float32 (1,) on the GPU, above zero, got nothing"),
        (PLAIN, arguments(out_tensor_scale=array((1,), 6)),
         "out_tensor_scale: expected float32, got bfloat16"),
        (PLAIN, arguments(out_tensor_scale=array((2,), 6, "float32")),
         "out_tensor_scale: expected (1,), got (2,)"),
        (PLAIN, arguments(out_tensor_scale=array((1,), 6, "float32")._replace(pointer=6)),
         "out_tensor_scale: expected an address that is a multiple of 4 bytes, got 0x6"),
        (PLAIN, arguments(out_tensor_scale=array((1,), 6, "float32")._replace(device=1)),
         "out_tensor_scale: expected A's device, 0, got device 1"),
        (PLAIN, arguments(out_tensor_scale=array((1,), 4, "float32")),
         "out: expected memory of its own, got memory that overlaps out_tensor_scale's"),
        (PLAIN, arguments(out=array((M, N), 4, "uint8")),
         "out: expected (batch, m, n / 2) = (1, 40, 160), got (1, 40, 320)"),
        (GATED, arguments(out=array((M, N), 4, "uint8")),
         "out: expected (batch, m, n / 4) = (1, 40, 80), got (1, 40, 320)"),
        (PLAIN, arguments(b=array((K, N + 1), 2, swapped=True)),
         "b: expected a multiple of 2: two elements of the output share a byte, got 321 columns"),
        (MXFP8, arguments(),
         "out_tensor_scale: expected no out_tensor_scale, got an array"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(plan: Any, given: GemmArguments, message: str) -> None:
    if plan is MXFP8:
        given = given._replace(
            out=array((M, N), 4, "uint8"), out_scales=array((M, N // 32), 5, "uint8")
        )
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(plan, given)
    assert any(message in problem.message for problem in caught.value.problems), caught.value
