"""Scales of a quantised output: what a call has to pass, and what the kernel gets."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, gemm_scalar_values
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.parameters import pack
from fa4gen.runtime.tensor_view import TensorView

M, N, K = 40, 288, 64
GAP = 1 << 32
SIZES = {"uint8": 1, "float32": 4, "bfloat16": 2}


def plan_of(**keys: Any) -> Any:
    data = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "output_scales": "1x128", **keys}
    return build_plan(config_from_data(data, "probe"))


FLOATS = plan_of()
BYTES = plan_of(output_scale_dtype="ue8m0")
MATRIX = plan_of(residual="matrix")
GATED = plan_of(activation="silu(gate) * up")
WITHOUT = plan_of(output_scales=None)


def contiguous(shape: tuple[int, ...], number: int, dtype: str) -> TensorView:
    strides, step = [0] * len(shape), SIZES[dtype]
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return TensorView(number * GAP, tuple(shape), tuple(strides), dtype, 0)


def make_arguments(plan: Any = FLOATS, batch: tuple[int, ...] = (), **changes: Any) -> Any:
    """Good arguments; each keyword replaces fields of one argument, or it."""
    columns = plan.output_columns(N)
    b = contiguous((*batch, N, K), 2, "bfloat16")
    swapped = (*range(len(batch)), len(batch) + 1, len(batch))
    b = b._replace(shape=tuple(b.shape[i] for i in swapped),
                   strides=tuple(b.strides[i] for i in swapped))  # fmt: skip
    scale = "uint8" if plan is BYTES else "float32"
    arguments = GemmArguments(
        contiguous((*batch, M, K), 1, "bfloat16"),
        b,
        contiguous((*batch, M, N), 3, "bfloat16") if plan.c.exists else None,
        contiguous((*batch, M, columns), 4, "bfloat16" if plan is WITHOUT else "uint8"),
        1.0,
        1.0,
        out_scales=contiguous((*batch, M, -(-columns // 128)), 5, scale),
    )
    for name, change in changes.items():
        old = getattr(arguments, name)
        new = old._replace(**change) if isinstance(change, dict) else change
        arguments = arguments._replace(**{name: new})
    return arguments


def messages(plan: Any, arguments: GemmArguments) -> list[str]:
    with pytest.raises(ArgumentError) as refused:
        check_gemm_arguments(plan, arguments)
    return [problem.message for problem in refused.value.problems]


@pytest.mark.parametrize("plan", [FLOATS, BYTES, MATRIX, GATED])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_the_kernel_gets_the_address_and_the_strides(plan: Any, batch: tuple[int, ...]) -> None:
    checked = check_gemm_arguments(plan, make_arguments(plan, batch))
    values = gemm_scalar_values(checked, plan_gemm_schedule(plan, checked.size, 132))
    blocks = 2 if plan is GATED else 3
    assert values["out_scales"] == 5 * GAP
    assert values["out_scales_m_stride"] == blocks
    assert values["out_scales_blocks_stride"] == 1
    assert values["out_scales_batch_stride"] == (M * blocks if batch else 0)
    maps = {row.parameter: bytes(128) for row in plan.tensor_maps}
    assert pack(plan.parameters, {**values, **maps})


def test_scales_may_lie_in_any_strides() -> None:
    arguments = make_arguments(out_scales={"strides": (8, 4 * 100)})
    checked = check_gemm_arguments(FLOATS, arguments)
    values = gemm_scalar_values(checked, plan_gemm_schedule(FLOATS, checked.size, 132))
    assert (values["out_scales_m_stride"], values["out_scales_blocks_stride"]) == (2, 100)


@pytest.mark.parametrize(
    ("plan", "changes", "message"),
    [
        (FLOATS, {"out_scales": None},
         "out_scales: expected an array for the scales 1x128 of the output, got nothing"),
        (WITHOUT, {}, "out_scales: expected no out_scales, got an array"),
        (FLOATS, {"out_scales": {"shape": (M, 2)}},
         "out_scales: expected (batch, m, blocks) = (1, 40, 3), got (1, 40, 2)"),
        (FLOATS, {"out_scales": {"dtype": "float16"}},
         "out_scales: expected float32 (the config says output_scale_dtype: fp32), got float16"),
        (BYTES, {"out_scales": {"dtype": "float32"}},
         "out_scales: expected float8_e8m0fnu, or its bits as uint8 (the config says "
         "output_scale_dtype: ue8m0), got float32"),
        (FLOATS, {"out": {"dtype": "bfloat16"}},
         "out: expected float8_e4m3fn, or its bits as uint8 (the config says output_scales: "
         "fp8_e4m3), got bfloat16"),
        (FLOATS, {"out_scales": {"strides": (6, 4)}},
         "out_scales: expected an address and strides that are multiples of 4 bytes, none below 0, "
         "got 0x500000000 and (0, 6, 4)"),
        (FLOATS, {"out_scales": {"strides": (4, 4)}},
         "out_scales: expected elements that do not overlap, got strides of (0, 4, 4) bytes"),
        (FLOATS, {"out_scales": {"pointer": 4 * GAP + 16}},
         "out_scales: expected memory of its own, got memory that overlaps out's"),
        (FLOATS, {"out_scales": {"pointer": GAP}},
         "out_scales: expected memory of its own, got memory that overlaps a's"),
        (MATRIX, {"c": {"pointer": 4 * GAP}},
         "out: expected memory of its own, got memory that overlaps c's"),
        (MATRIX, {"c": {"dtype": "float32"}},
         "c: expected bfloat16 (the config says out_dtype: bf16), got float32"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused(plan: Any, changes: dict[str, Any], message: str) -> None:
    assert message in messages(plan, make_arguments(plan, **changes))


ATOMS = plan_of(arch="sm_100a", output_scales="mxfp8", output_scale_order="arranged")


def atoms(**changes: Any) -> TensorView:
    return contiguous((1, 3, 32, 4, 4), 5, "uint8")._replace(**changes)


def test_the_kernel_gets_the_strides_of_atoms() -> None:
    arguments = make_arguments(ATOMS, out_scales=atoms(shape=(1, 3, 32, 4, 4)))
    checked = check_gemm_arguments(ATOMS, arguments)
    values = gemm_scalar_values(checked, plan_gemm_schedule(ATOMS, checked.size, 148))
    assert values["out_scales_block_atoms_stride"] == 512
    assert values["out_scales_m_atoms_stride"] == values["out_scales_batch_stride"] == 0
    assert not [name for name in values if "line" in name]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (atoms(strides=(1536, 512, 4, 128, 1)),
         "out_scales: expected an address and strides that are multiples of 4 bytes, and strides "
         "of (16, 4, 1) within each atom, got 0x500000000 and (0, 1536, 512, 4, 128, 1)"),
        (atoms(pointer=5 * GAP + 2), "got 0x500000002 and (0, 1536, 512, 16, 4, 1)"),
        (contiguous((M, 9), 5, "uint8"),
         "out_scales: expected axes (m_atoms, block_atoms, line, group, byte), or "),
    ],
)  # fmt: skip
def test_wrong_atoms_are_refused(view: TensorView, message: str) -> None:
    assert any(message in text for text in messages(ATOMS, make_arguments(ATOMS, out_scales=view)))


def test_scales_have_a_batch_exactly_where_a_has_one() -> None:
    arguments = make_arguments(batch=(3,), out_scales=contiguous((M, 3), 5, "float32"))
    assert messages(FLOATS, arguments) == [
        "out_scales: expected a batch exactly where A has one, got (40, 3)"
    ]
