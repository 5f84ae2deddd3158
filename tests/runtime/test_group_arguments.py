# ruff: noqa: E501 (a message is on the line of its cause)
"""Groups of rows of a product on Hopper: what a call has to pass, and what the kernel gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.designs.common.tensor_maps import END_ROW
from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, gemm_scalar_values
from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule
from fa4gen.runtime.tensor_map import describe_axes
from tests.runtime.views import array, gemm_plan

if TYPE_CHECKING:
    from fa4gen.runtime.tensor_view import TensorView

ROWS, MOST, N, K, GROUPS = 100, 24, 72, 256, 5
WIDE = {"a": "1x128", "b": "128x128"}
PLANS = {
    f"{groups} {residual}": gemm_plan(groups=groups, residual=residual, most_groups=8)
    for groups in ("offsets", "masked")
    for residual in ("none", "row", "matrix")
} | {
    f"{groups} scaled": gemm_plan(groups=groups, dtype="fp8_e4m3", scales=WIDE)
    for groups in ("offsets", "masked")
}


def make_arguments(name: str, **changes: Any) -> GemmArguments:
    """Good arguments; each keyword replaces fields of one argument, or it."""
    plan = PLANS[name]
    offsets = plan.groups == "offsets"
    rows = (ROWS,) if offsets else (GROUPS, MOST)
    dtype = "uint8" if plan.scales else "bfloat16"
    c_shape = {"none": None, "row": (GROUPS, N), "matrix": (*rows, N)}[plan.residual]
    counts = array((GROUPS + 1,) if offsets else (GROUPS,), 7, "int32")
    arguments = GemmArguments(
        array((*rows, K), 1, dtype),
        array((GROUPS, K, N), 2, dtype, swapped=True),
        None if c_shape is None else array(c_shape, 3),
        array((*rows, N), 4),
        1.0,
        0.5,
        array((*rows, 2), 5, "float32") if plan.scales else None,
        array((GROUPS, 2, 1), 6, "float32") if plan.scales else None,
        **{"row_offsets" if offsets else "row_counts": counts},
    )
    for key, change in changes.items():
        old = getattr(arguments, key)
        new = old._replace(**change) if isinstance(change, dict) else change
        arguments = arguments._replace(**{key: new})
    return arguments


def refusal(name: str, **changes: Any) -> list[str]:
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(PLANS[name], make_arguments(name, **changes))
    return [problem.message for problem in caught.value.problems]


def described(name: str, parameter: str, **changes: Any) -> Any:
    plan = PLANS[name]
    checked = check_gemm_arguments(plan, make_arguments(name, **changes))
    (row,) = (row for row in plan.tensor_maps if row.parameter == parameter)
    tensor, axes = checked.tensor(row.tensor), checked.axes(row.tensor)
    return describe_axes(row, tensor, axes, fallback_pointer=0)


COUNTS = array((GROUPS,), 7, "int32")


@pytest.mark.parametrize("name", PLANS)
def test_good_arguments_are_taken(name: str) -> None:
    checked = check_gemm_arguments(PLANS[name], make_arguments(name))
    rows = ROWS if name.startswith("offsets") else MOST
    assert checked.size == GemmSize(GROUPS, rows, N, K)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("offsets none", {"row_offsets": None}, "row_offsets: expected int32 (groups + 1,), groups: offsets, got nothing"),
        ("masked none", {"row_counts": None}, "row_counts: expected int32 (groups,), groups: masked, got nothing"),
        ("offsets none", {"row_counts": COUNTS}, "row_counts: expected no row_counts, got an array"),
        ("offsets none", {"row_offsets": {"dtype": "int64"}}, "row_offsets: expected int32, got int64"),
        ("offsets none", {"row_offsets": {"device": 1}}, "row_offsets: expected A's device, 0, got device 1"),
        ("offsets none", {"row_offsets": {"shape": (GROUPS,)}}, "row_offsets: expected one element a group: (6,), got (5,)"),
        ("masked none", {"row_counts": {"shape": (4,)}}, "row_counts: expected one element a group: (5,), got (4,)"),
        ("masked none", {"row_counts": {"strides": (8,)}}, "row_counts: expected a contiguous array, got a stride of 8 bytes"),
        ("masked none", {"row_counts": {"shape": (5, 1), "strides": (4, 4)}}, "row_counts: expected one axis, got 2 axes (5, 1)"),
        ("masked none", {"row_counts": {"pointer": 6}}, "row_counts: expected an address that is a multiple of 4 bytes, got 0x6"),
        ("offsets none", {"a": array((1, ROWS, K), 1)}, "a: expected axes (m, k), got 3 axes (1, 100, 256)"),
        ("masked none", {"a": array((MOST, K), 1)}, "a: expected axes (groups, m, k), got 2 axes (24, 256)"),
        ("offsets none", {"b": array((K, N), 2, swapped=True)}, "b: expected axes (groups, k, n), got 2 axes (256, 72)"),
        ("masked none", {"out": array((4, MOST, N), 4)}, "out: expected (groups, m, n) = (5, 24, 72), got (4, 24, 72)"),
        ("offsets row", {"c": array((N,), 3)}, "c: expected axes (groups, n), got 1 axes (72,)"),
        ("offsets row", {"c": array((4, N), 3)}, "c: expected (groups, n) = (5, 72), got (4, 72)"),
        ("offsets scaled", {"scale_b": array((4, 2, 1), 6, "float32")}, "scale_b: expected (groups, k_blocks, n_blocks) = (5, 2, 1), got (4, 2, 1)"),
        ("masked scaled", {"scale_a": array((MOST, 2), 5, "float32")}, "scale_a: expected axes (groups, m, k_blocks), got 2 axes (24, 2)"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(name: str, changes: dict[str, Any], message: str) -> None:
    assert message in refusal(name, **changes)


def test_groups_are_for_kernels_with_groups() -> None:
    arguments = make_arguments("offsets none")
    with pytest.raises(ArgumentError, match="this kernel was generated without groups"):
        check_gemm_arguments(gemm_plan(), arguments)


def test_more_groups_than_the_plan_has_room_for_are_refused() -> None:
    changes: dict[str, Any] = {
        "b": array((9, K, N), 2, swapped=True), "row_offsets": array((10,), 7, "int32"),
    }  # fmt: skip
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(PLANS["offsets none"], make_arguments("offsets none", **changes))
    (problem,) = caught.value.problems
    assert problem.message == "b: expected at most 8, got 9 groups"
    assert problem.remedy == "generate the kernel with most_groups: 9 or more"


def address(spec: Any, *coordinates: int) -> int:
    """Where a copy begins; coordinates from the contiguous extent outwards."""
    strides = (2, *spec.strides)
    offset = sum(at * stride for at, stride in zip(coordinates, strides, strict=True))
    return (spec.pointer + offset) % 2**64


@pytest.mark.parametrize(("name", "group"), [("offsets none", 0), ("masked none", 3)])
def test_the_map_of_the_output_ends_at_any_row(name: str, group: int) -> None:
    spec = described(name, "out_map")
    out: TensorView = make_arguments(name).out  # type: ignore[assignment]
    first = out.pointer + group * (out.strides[0] if len(out.shape) == 3 else 0)
    for end, row in ((17, 3), (24, 23), (9, 0)):
        at = address(spec, 8, END_ROW - end + row, group, end, END_ROW)
        assert at == first + row * out.strides[-2] + 16
    assert spec.dims[1] == END_ROW


def test_groups_share_a_where_they_have_rows_of_one_matrix() -> None:
    spec = described("offsets none", "a_map")
    assert spec.dims == (K, ROWS, GROUPS)
    assert spec.strides == (2 * K, 0)
    assert described("masked none", "a_map").strides == (2 * K, 2 * K * MOST)


def test_rows_too_far_apart_for_such_a_map_are_refused() -> None:
    far = {"strides": (1 << 34, 2)}
    assert any("a stride along m of at most" in one for one in refusal("offsets none", out=far))


def test_the_kernel_gets_groups_and_the_address_of_their_rows() -> None:
    for name, argument in (("offsets scaled", "row_offsets"), ("masked scaled", "row_counts")):
        plan = PLANS[name]
        checked = check_gemm_arguments(plan, make_arguments(name))
        values = gemm_scalar_values(checked, plan_gemm_schedule(plan, checked.size, 132))
        assert values["groups"] == GROUPS
        assert values[argument] == checked.rows[argument].pointer
        assert values["scale_a_batch_stride"] == (0 if name.startswith("offsets") else 2 * MOST)
        assert values["scale_b_batch_stride"] == 2


# ---- groups along k ----

OF_A = 104
ALONG_K = {"groups": "k_offsets", "a_major": "m", "b_major": "n"}
GRADIENT = gemm_plan(**ALONG_K, residual="matrix", out_dtype="fp32")


def of_gradient(**changes: Any) -> GemmArguments:
    arguments = GemmArguments(
        array((OF_A, K), 1, swapped=True),
        array((K, N), 2),
        array((GROUPS, OF_A, N), 3, "float32"),
        array((GROUPS, OF_A, N), 4, "float32"),
        1.0,
        1.0,
        row_offsets=array((GROUPS + 1,), 7, "int32"),
    )
    return arguments._replace(**changes)


def test_groups_along_k_are_a_batch_that_shares_a_and_b() -> None:
    checked = check_gemm_arguments(GRADIENT, of_gradient())
    assert checked.size == GemmSize(GROUPS, OF_A, N, K)
    assert plan_gemm_schedule(GRADIENT, checked.size, 132).num_tiles == GROUPS


@pytest.mark.parametrize(("parameter", "lines"), [("a_map", 2 * OF_A), ("b_map", 2 * N)])
def test_the_maps_of_a_and_b_end_at_any_row(parameter: str, lines: int) -> None:
    checked = check_gemm_arguments(GRADIENT, of_gradient())
    (row,) = (row for row in GRADIENT.tensor_maps if row.parameter == parameter)
    tensor = checked.tensor(row.tensor)
    spec = describe_axes(row, tensor, checked.axes(row.tensor), fallback_pointer=0)
    for end, line in ((17, 3), (K, K - 1), (9, 0)):
        at = address(spec, 8, END_ROW - end + line, 0, end, END_ROW)
        assert at == tensor.pointer + line * lines + 16
    assert spec.dims[1] == END_ROW


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_offsets": None}, "row_offsets: expected int32 (groups + 1,), groups: k_offsets, got nothing"),
        ({"row_counts": COUNTS}, "row_counts: expected no row_counts, got an array"),
        ({"a": array((1, OF_A, K), 1, swapped=True)}, "a: expected axes (m, k), got 3 axes (1, 104, 256)"),
        ({"b": array((K + 1, N), 2)}, "b: expected (k, n) = (256, 72), got (257, 72)"),
        ({"out": array((OF_A, N), 4, "float32")}, "out: expected axes (groups, m, n), got 2 axes (104, 72)"),
        ({"out": array((4, OF_A, N), 4, "float32")}, "out: expected (groups, m, n) = (5, 104, 72), got (4, 104, 72)"),
        ({"row_offsets": array((0,), 7, "int32")}, "row_offsets: expected one element a group: (1,), got (0,)"),
        ({"b": array((K, N), 2)._replace(strides=(1 << 34, 2))}, "b: expected a stride along k of at most"),
    ],
)  # fmt: skip
def test_a_wrong_argument_of_groups_along_k_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(GRADIENT, of_gradient(**changes))
    assert any(message in problem.message for problem in caught.value.problems)


# ---- schedules ----


@pytest.mark.parametrize(
    ("name", "size", "most"),
    [
        ("offsets none", GemmSize(5, 1000, 512, 64), (7 + 5) * 2),
        ("offsets none", GemmSize(8, 3, 512, 64), 3 * 2),
        ("offsets none", GemmSize(0, 3, 512, 64), 0),
        ("masked none", GemmSize(5, 129, 512, 64), 2 * 2 * 5),
    ],
)
def test_no_more_ctas_run_than_groups_may_have_tiles(name: str, size: GemmSize, most: int) -> None:
    schedule = plan_gemm_schedule(PLANS[name], size, 132)
    assert (schedule.num_tiles, schedule.grid) == (most, min(most, 132))


FP4 = gemm_plan(
    arch="sm_100a", dtype="fp4_e2m1", scales="nvfp4", groups="offsets", output_scales="mxfp8",
    output_scale_order="arranged", BN=128,
)  # fmt: skip


def fp4_arguments(atoms: int = ROWS // 128 + GROUPS) -> GemmArguments:
    return GemmArguments(
        array((ROWS, K // 2), 1, "uint8"),
        array((GROUPS, K // 2, 80), 2, "uint8", swapped=True),
        None,
        array((ROWS, 80), 4, "uint8"),
        1.0,
        0.0,
        array((atoms, K // 64, 32, 4, 4), 5, "uint8"),
        array((GROUPS, 1, K // 64, 32, 4, 4), 6, "uint8"),
        row_offsets=array((GROUPS + 1,), 7, "int32"),
        out_scales=array((atoms, 1, 32, 4, 4), 8, "uint8"),
    )


def test_each_group_begins_an_atom_of_scales() -> None:
    """So that there are as many atoms as rows fill, and one more for each group."""
    checked = check_gemm_arguments(FP4, fp4_arguments())
    assert checked.size == GemmSize(GROUPS, ROWS, 80, K)
    assert checked.scales["scale_a"].shape[:3] == (GROUPS, GROUPS, K // 64)
    assert checked.scales["scale_a"].strides[0] == 0
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(FP4, fp4_arguments(GROUPS - 1))
    assert [problem.key for problem in caught.value.problems] == ["scale_a", "out_scales"]
