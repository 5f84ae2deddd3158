# ruff: noqa: E501 (a message is on the line of its cause)
"""Scales in the order of Blackwell: what a call has to pass, and how TMA takes it."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen import scales
from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments
from fa4gen.runtime.scale_arguments import addresses
from fa4gen.runtime.tensor_map import describe_axes
from fa4gen.runtime.tensor_view import TensorView

M, N, K = 200, 300, 640
GAP = 1 << 32


def plan_of(form, dtype, **keys):
    data = {"kernel": "gemm", "arch": "sm_100a", "dtype": dtype, "scales": form, **keys}
    return build_plan(config_from_data(data, "probe"))


MXFP8 = plan_of("mxfp8", "fp8_e4m3")
NVFP4 = plan_of("nvfp4", "fp4_e2m1")
ROW_MAJOR = plan_of("nvfp4", "fp4_e2m1", scale_order="row_major")
PLAIN = build_plan(
    config_from_data({"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16"}, "probe")
)


def view_of(array, pointer):
    return TensorView(pointer, array.shape, array.strides, array.dtype.name, 0)


def make_arguments(plan, batch=(), **changes):
    """Quantised arrays of a product; each keyword replaces fields of one argument, or it."""
    of_a = scales.quantize(np.ones((*batch, M, K), np.float32), plan.config.scales)
    of_b = scales.quantize(np.ones((*batch, N, K), np.float32), plan.config.scales)
    arranges = plan.config.scale_order == "arranged"
    order = scales.arrange if arranges else lambda plain: plain
    arguments = GemmArguments(
        view_of(of_a.elements, GAP),
        view_of(np.swapaxes(of_b.elements, -1, -2), 2 * GAP),
        None,
        TensorView(3 * GAP, (*batch, M, N), (*(2 * M * 304,) * len(batch), 608, 2), "bfloat16", 0),
        1.0,
        0.0,
        view_of(order(of_a.scales), 4 * GAP),
        view_of(order(of_b.scales) if arranges else np.swapaxes(of_b.scales, -1, -2), 5 * GAP),
    )
    for name, change in changes.items():
        old = getattr(arguments, name)
        new = old._replace(**change) if isinstance(change, dict) else change
        arguments = arguments._replace(**{name: new})
    return arguments


def refusal(plan, **changes):
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(plan, make_arguments(plan, **changes))
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("plan", [MXFP8, NVFP4], ids=["mxfp8", "nvfp4"])
def test_quantised_and_arranged_arrays_are_what_a_call_takes(plan, batch) -> None:
    checked = check_gemm_arguments(plan, make_arguments(plan, batch))
    assert (checked.size.m, checked.size.n, checked.size.k) == (M, N, K)
    columns = plan.scales[0].columns
    for row in plan.tensor_maps:
        spec = describe_axes(
            row, checked.tensor(row.tensor), checked.axes(row.tensor), fallback_pointer=GAP
        )
        if row.tensor.startswith("scale"):
            rows = {"scale_a": M, "scale_b": N}[row.tensor]
            atoms = -(-rows // 128), -(-K // columns // 4)
            assert spec.dtype == "uint32"
            assert spec.dims == (128, atoms[1], atoms[0], *(batch or (1,)))
            assert spec.strides[:2] == (512, 512 * atoms[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale_a": None}, "scale_a: expected scales mxfp8 of A, got nothing"),
        ({"scale_a": {"dtype": "float32"}}, "scale_a: expected float8_e8m0fnu, or its bits as uint8 (the config says dtype of scales: ue8m0), got float32"),
        ({"scale_a": {"shape": (3, 5, 32, 4, 4)}}, "scale_a: expected (batch, m_atoms, k_atoms, line, group, byte) = (1, 2, 5, 32, 4, 4), got (1, 3, 5, 32, 4, 4)"),
        ({"scale_b": {"shape": (3, 6, 32, 4, 4)}}, "scale_b: expected (batch, n_atoms, k_atoms, line, group, byte) = (1, 3, 5, 32, 4, 4), got (1, 3, 6, 32, 4, 4)"),
        ({"scale_b": {"shape": (N, K // 32), "strides": (K // 32, 1)}}, "scale_b: expected axes (n_atoms, k_atoms, line, group, byte), or (batch, n_atoms, k_atoms, line, group, byte), got 2 axes (300, 20)"),
        ({"scale_b": {"strides": (2560, 512, 4, 128, 1)}}, "scale_b: expected atoms of 512 contiguous bytes: strides of (16, 4, 1) within each, got strides of (4, 128, 1) bytes"),
        ({"scale_a": {"pointer": 4 * GAP + 8}}, "scale_a: expected an address that is a multiple of 16 bytes, got 0x400000008"),
        ({"scale_a": {"strides": (2568, 512, 16, 4, 1)}}, "scale_a: expected a stride along m_atoms that is a multiple of 16 bytes, from 0 to 1099511627775, got 2568 bytes"),
    ],
)  # fmt: skip
def test_scales_of_another_shape_type_or_order_are_refused(changes, message) -> None:
    assert message in [text.split("\n")[0] for text in refusal(MXFP8, **changes)]


def test_a_kernel_without_scales_takes_none() -> None:
    arguments = make_arguments(MXFP8)
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(PLAIN, arguments)
    assert "scale_a: expected no scale_a, got an array" in caught.value.problems[0].message


def test_what_is_refused_says_how_scales_are_made() -> None:
    plain = {"shape": (N, K // 32), "strides": (K // 32, 1)}
    for change in (plain, {"strides": (2560, 512, 4, 128, 1)}):
        [text] = refusal(MXFP8, scale_b=change)
        assert "fa4gen.scales.arrange" in text


@pytest.mark.parametrize("batch", [(), (2,)])
def test_plain_scales_are_passed_by_address_and_strides(batch) -> None:
    checked = check_gemm_arguments(ROW_MAJOR, make_arguments(ROW_MAJOR, batch))
    values = addresses(checked.scales, checked.scale_axes)
    blocks = K // 16
    assert values == {
        "scale_a": 4 * GAP, "scale_a_batch_stride": len(batch) * M * blocks,
        "scale_a_m_stride": blocks, "scale_a_k_blocks_stride": 1,
        "scale_b": 5 * GAP, "scale_b_batch_stride": len(batch) * N * blocks,
        "scale_b_n_stride": blocks, "scale_b_k_blocks_stride": 1,
    }  # fmt: skip


def test_plain_scales_may_lie_in_any_strides() -> None:
    odd = {"pointer": 4 * GAP + 3, "strides": (1, M + 5)}
    check_gemm_arguments(ROW_MAJOR, make_arguments(ROW_MAJOR, scale_a=odd))


@pytest.mark.parametrize(
    ("plan", "changes", "message", "remedy"),
    [
        (ROW_MAJOR, {"scale_a": {"shape": (M, 39)}}, "scale_a: expected (batch, m, k_blocks) = (1, 200, 40), got (1, 200, 39)", ""),
        (ROW_MAJOR, {"scale_b": {"shape": (N, 40)}}, "scale_b: expected (batch, k_blocks, n) = (1, 40, 300), got (1, 300, 40)", ""),
        (ROW_MAJOR, {"scale_a": {"shape": (2, 10, 32, 4, 4), "strides": (5120, 512, 16, 4, 1)}}, "scale_a: expected axes (m, k_blocks), or (batch, m, k_blocks), got 5 axes (2, 10, 32, 4, 4)", "fa4gen.scales.quantize"),
        (MXFP8, {"scale_a": {"shape": (M, 20), "strides": (20, 1)}}, "scale_a: expected axes (m_atoms, k_atoms, line, group, byte), or (batch, m_atoms, k_atoms, line, group, byte), got 2 axes (200, 20)", "scale_order: row_major"),
    ],
)  # fmt: skip
def test_scales_in_the_other_order_are_refused(plan, changes, message, remedy) -> None:
    [text] = refusal(plan, **changes)
    assert text.split("\n")[0] == message
    assert remedy in text


def test_elements_of_fp4_are_counted_not_their_bytes() -> None:
    bytes_of_k = 1 << 30
    found = refusal(NVFP4, a={"shape": (M, bytes_of_k)}, b={"shape": (bytes_of_k, N)})
    assert any("a: expected an extent k of at most 2147482623, got 2147483648" in x for x in found)
