# ruff: noqa: E501 (a message is on the line of its cause)
"""The index of gathered rows among a product's arguments, and what the kernel gets of it."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import (
    GemmArguments,
    check_gemm_arguments,
    gemm_scalar_values,
    out_shape,
)
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.tensor_view import TensorView

M, N, K, ROWS, GROUPS = 40, 272, 384, 17, 3
GAP = 1 << 32
SIZES = {"bfloat16": 2, "int32": 4, "int64": 8, "uint8": 1, "float32": 4}


def plan_of(**keys: Any) -> Any:
    data = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "rows": "gathered", **keys}
    return build_plan(config_from_data(data, "probe"))


PLAIN, CONTIGUOUS = plan_of(), plan_of(rows="contiguous")
OFFSETS, MASKED = plan_of(groups="offsets"), plan_of(groups="masked")
SCALED = plan_of(dtype="fp8_e4m3", scales={"a": "1x128", "b": "128x128"})


def view(number: int, dtype: str, *shape: int, swapped: bool = False) -> TensorView:
    order = list(range(len(shape)))
    if swapped:
        order[-2:] = reversed(order[-2:])
    strides, step = [0] * len(shape), SIZES[dtype]
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return TensorView(number * GAP, shape, tuple(strides), dtype, 0)


def arguments(plan: Any = PLAIN, batch: tuple[int, ...] = (), **changes: Any) -> GemmArguments:
    """Good arguments; each keyword replaces fields of one argument, or it."""
    dtype = "uint8" if plan is SCALED else "bfloat16"
    lead = (GROUPS,) if plan is MASKED else batch
    of_b = (GROUPS,) if plan.groups else batch
    given = GemmArguments(
        view(1, dtype, *batch, ROWS, K), view(2, dtype, *of_b, K, N, swapped=True), None,
        view(3, "bfloat16", *lead, M, N), 1.0, 0.0, row_index=view(4, "int32", *lead, M),
    )  # fmt: skip
    if plan is SCALED:
        scale_a, scale_b = view(5, "float32", *batch, ROWS, 3), view(6, "float32", *batch, 3, 3)
        given = given._replace(scale_a=scale_a, scale_b=scale_b)
    if plan is OFFSETS:
        given = given._replace(row_offsets=view(7, "int32", GROUPS + 1))
    if plan is MASKED:
        given = given._replace(row_counts=view(7, "int32", GROUPS))
    for name, change in changes.items():
        old = getattr(given, name)
        new = old._replace(**change) if isinstance(change, dict) else change
        given = given._replace(**{name: new})
    return given


def values_of(plan: Any, given: GemmArguments) -> dict[str, Any]:
    checked = check_gemm_arguments(plan, given)
    return dict(gemm_scalar_values(checked, plan_gemm_schedule(plan, checked.size, 132)))


def test_the_kernel_gets_addresses_and_both_numbers_of_rows() -> None:
    values = values_of(PLAIN, arguments())
    assert (values["a"], values["row_index"]) == (GAP, 4 * GAP)
    assert (values["a_rows"], values["m"]) == (ROWS, M)
    assert (values["a_row_chunks"], values["a_batch_bytes"]) == (2 * K // 16, 0)
    assert values["row_index_batch_stride"] == 0


def test_a_batch_has_an_index_each_or_one_for_all() -> None:
    values = values_of(PLAIN, arguments(batch=(2,)))
    assert (values["a_batch_bytes"], values["row_index_batch_stride"]) == (2 * K * ROWS, M)
    shared = arguments(batch=(2,), row_index=view(4, "int32", M))
    assert values_of(PLAIN, shared)["row_index_batch_stride"] == 0


def test_scales_have_the_rows_of_a() -> None:
    values = values_of(SCALED, arguments(SCALED))
    assert (values["scale_a_rows_stride"], values["m"]) == (3, M)


def test_groups_have_their_rows_from_one_matrix() -> None:
    offsets = values_of(OFFSETS, arguments(OFFSETS))
    assert (offsets["a_batch_bytes"], offsets["row_index_batch_stride"]) == (0, 0)
    masked = values_of(MASKED, arguments(MASKED))
    assert (masked["a_batch_bytes"], masked["row_index_batch_stride"]) == (0, M)
    assert (masked["a_rows"], masked["m"], masked["groups"]) == (ROWS, M, GROUPS)


def test_an_a_without_rows_is_taken() -> None:
    given = arguments(a=view(1, "bfloat16", 0, K))
    assert values_of(PLAIN, given)["a_rows"] == 0


def test_the_output_has_the_rows_of_the_index() -> None:
    given = arguments(MASKED)
    assert out_shape(MASKED, given.a, given.b, given.row_index) == (GROUPS, M, N)
    given = arguments(batch=(2,))
    assert out_shape(PLAIN, given.a, given.b, view(4, "int32", M)) == (2, M, N)
    assert out_shape(PLAIN, given.a, given.b, view(4, "int32")) is None


@pytest.mark.parametrize(
    ("plan", "changes", "message"),
    [
        (PLAIN, {"row_index": None}, r"row_index: expected int32 \(m,\), a row of A .*, got nothing"),
        (PLAIN, {"row_index": {"dtype": "int64"}}, "row_index: expected int32, got int64"),
        (PLAIN, {"row_index": {"device": 1}}, "row_index: expected A's device, 0, got device 1"),
        (PLAIN, {"row_index": {"strides": (8,)}}, "row_index: expected contiguous elements at a mul"),
        (PLAIN, {"row_index": {"pointer": 6}}, "row_index: expected contiguous elements at a multip"),
        (PLAIN, {"row_index": view(4, "int32", 2, 2, M)}, r"row_index: expected axes \(m,\), or"),
        (PLAIN, {"out": view(3, "bfloat16", M + 1, N)}, r"out: expected .* = \(1, 40, 272\), got"),
        (PLAIN, {"row_index": view(4, "int32", 2, M)}, "row_index: expected no batch, since A has"),
        (PLAIN, {"a": {"strides": (1 << 32, 2)}}, "a: expected rows within 34359738352 bytes, for an index"),
        (PLAIN, {"row_index": {"pointer": 3 * GAP}}, "out: expected memory of its own, got memory t"),
        (SCALED, {"scale_a": view(5, "float32", M, 3)}, r"scale_a: expected .* = \(1, 17, 3\), got"),
        (OFFSETS, {"row_index": view(4, "int32", M + 1)}, r"out: expected .* = \(41, 272\), got"),
        (MASKED, {"a": view(1, "bfloat16", GROUPS, ROWS, K)}, r"a: expected axes \(rows, k\), got"),
    ],
)  # fmt: skip
def test_what_is_refused(plan: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        check_gemm_arguments(plan, arguments(plan, **changes))


def test_a_kernel_for_contiguous_rows_takes_no_index() -> None:
    given = arguments(a=view(1, "bfloat16", M, K))
    with pytest.raises(ArgumentError, match="row_index: expected no row_index, got an array"):
        check_gemm_arguments(CONTIGUOUS, given)
