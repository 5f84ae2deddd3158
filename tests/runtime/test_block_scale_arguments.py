# ruff: noqa: E501 (a message is on the line of its cause)
"""Scales of blocks of a product on Hopper: what a call has to pass, and what the kernel gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen import scales
from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm import GemmKernel
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, gemm_scalar_values
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.parameters import pack
from fa4gen.runtime.tensor_view import TensorView

M, N, K = 40, 272, 400
GAP = 1 << 32
SIZES = {"uint8": 1, "float32": 4, "bfloat16": 2}


def plan_of(**keys: Any) -> Any:
    data = {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3", **keys}
    return build_plan(config_from_data(data, "probe"))


WIDE = plan_of(scales={"a": "1x128", "b": "128x128"})
FINE = plan_of(scales={"a": "1x128", "b": "1x128"})
BYTES = plan_of(scales={"a": "1x128", "b": "128x128", "dtype": "ue8m0"})
WITHOUT = plan_of()
A, B = "scale_a", "scale_b"


def contiguous(
    shape: tuple[int, ...], number: int, dtype: str, swapped: bool = False
) -> TensorView:
    order = list(range(len(shape)))
    if swapped:
        order[-2:] = reversed(order[-2:])
    strides, step = [0] * len(shape), SIZES[dtype]
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return TensorView(number * GAP, tuple(shape), tuple(strides), dtype, 0)


def make_arguments(plan: Any = WIDE, batch: tuple[int, ...] = (), **changes: Any) -> GemmArguments:
    """Good arguments; each keyword replaces fields of one argument, or it."""
    dtype = "uint8" if plan is BYTES else "float32"
    blocks, columns = -(-K // 128), N if plan is FINE else -(-N // 128)
    arguments = GemmArguments(
        contiguous((*batch, M, K), 1, "uint8"),
        contiguous((*batch, K, N), 2, "uint8", swapped=True),
        None,
        contiguous((*batch, M, N), 3, "bfloat16"),
        1.0,
        0.0,
        contiguous((*batch, M, blocks), 4, dtype),
        contiguous((*batch, blocks, columns), 5, dtype),
    )
    for name, change in changes.items():
        old = getattr(arguments, name)
        new = old._replace(**change) if isinstance(change, dict) else change
        arguments = arguments._replace(**{name: new})
    return arguments


def refusal(plan: Any, **changes: Any) -> list[str]:
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(plan, make_arguments(plan, **changes))
    return [problem.message for problem in caught.value.problems]


def test_what_quantize_returns_is_what_a_call_takes() -> None:
    x, weight = np.ones((M, K), np.float32), np.ones((N, K), np.float32)
    a = scales.quantize(x, "1x128")
    for plan, form in ((WIDE, "128x128"), (FINE, "1x128")):
        b = scales.quantize(weight, form)
        arguments = make_arguments(plan)
        assert arguments.scale_a is not None
        assert arguments.scale_b is not None
        assert a.scales.shape == arguments.scale_a.shape
        assert b.scales.T.shape == arguments.scale_b.shape
        check_gemm_arguments(plan, arguments)


@pytest.mark.parametrize(
    ("plan", "changes", "message"),
    [
        (WIDE, {A: None}, "scale_a: expected scales 1x128 of A, got nothing"),
        (WIDE, {B: None}, "scale_b: expected scales 128x128 of B, got nothing"),
        (FINE, {B: None}, "scale_b: expected scales 1x128 of B, got nothing"),
        (WITHOUT, {B: None}, "scale_a: expected no scale_a, got an array"),
        (WITHOUT, {A: None}, "scale_b: expected no scale_b, got an array"),
        (WIDE, {A: {"shape": (M, 3)}}, "scale_a: expected (batch, m, k_blocks) = (1, 40, 4), got (1, 40, 3)"),
        (WIDE, {A: {"shape": (4, M)}}, "scale_a: expected (batch, m, k_blocks) = (1, 40, 4), got (1, 4, 40)"),
        (WIDE, {B: {"shape": (4, N)}}, "scale_b: expected (batch, k_blocks, n_blocks) = (1, 4, 3), got (1, 4, 272)"),
        (WIDE, {B: {"shape": (3, 4)}}, "scale_b: expected (batch, k_blocks, n_blocks) = (1, 4, 3), got (1, 3, 4)"),
        (FINE, {B: {"shape": (4, 3)}}, "scale_b: expected (batch, k_blocks, n) = (1, 4, 272), got (1, 4, 3)"),
        (WIDE, {A: contiguous((M,), 4, "float32")}, "scale_a: expected axes (m, k_blocks), or (batch, m, k_blocks), got 1 axes (40,)"),
        (WIDE, {A: {"dtype": "bfloat16"}}, "scale_a: expected float32 (the config says dtype of scales: fp32), got bfloat16"),
        (BYTES, {A: {"dtype": "float32"}}, "scale_a: expected float8_e8m0fnu, or its bits as uint8 (the config says dtype of scales: ue8m0), got float32"),
        (WIDE, {A: {"strides": (-16, 4)}}, "scale_a: expected an address and strides that are multiples of 4 bytes, none below 0, got 0x400000000 and (0, -16, 4)"),
        (WIDE, {B: {"strides": (18, 4)}}, "scale_b: expected an address and strides that are multiples of 4 bytes, none below 0, got 0x500000000 and (0, 18, 4)"),
        (WIDE, {A: {"pointer": 4 * GAP + 2}}, "scale_a: expected an address and strides that are multiples of 4 bytes, none below 0, got 0x400000002 and (0, 16, 4)"),
        (WIDE, {A: {"device": -1}}, "scale_a: expected memory of a CUDA device, got memory of the CPU"),
        (WIDE, {B: {"device": 1}}, "scale_b: expected A's device, 0, got device 1"),
        (WIDE, {A: {"pointer": 3 * GAP + 64}}, "out: expected memory of its own, got memory that overlaps scale_a's"),
        (WIDE, {B: {"pointer": 3 * GAP}}, "out: expected memory of its own, got memory that overlaps scale_b's"),
        (WIDE, {A: contiguous((2, M, 4), 4, "float32")}, "scale_a: expected no batch, since A has none, got a batch, (2, 40, 4)"),
    ],
)  # fmt: skip
def test_one_wrong_scale(plan: Any, changes: dict[str, Any], message: str) -> None:
    assert refusal(plan, **changes) == [message]


def test_both_wrong_scales_are_reported_at_once() -> None:
    found = refusal(WIDE, scale_a={"dtype": "float16"}, scale_b={"device": -1})
    assert [message[:8] for message in found] == ["scale_a:", "scale_b:"]


def test_a_batch_of_scales_has_the_length_of_that_of_a() -> None:
    arguments = make_arguments(batch=(3,), scale_a=contiguous((2, M, 4), 4, "float32"))
    with pytest.raises(ArgumentError, match=r"scale_a: .* = \(3, 40, 4\), got \(2, 40, 4\)"):
        check_gemm_arguments(WIDE, arguments)


def strides_of(plan: Any, arguments: GemmArguments) -> dict[str, Any]:
    checked = check_gemm_arguments(plan, arguments)
    values = gemm_scalar_values(checked, plan_gemm_schedule(plan, checked.size, 132))
    maps = {row.parameter: bytes(128) for row in plan.tensor_maps}
    pack(plan.parameters, {**values, **maps})  # each parameter has its value
    return {name: value for name, value in values.items() if name.startswith("scale_")}


@pytest.mark.parametrize("plan", [WIDE, FINE, BYTES], ids=["wide", "fine", "bytes"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_strides_are_counted_in_scales(plan: Any, batch: tuple[int, ...]) -> None:
    found = strides_of(plan, make_arguments(plan, batch))
    columns = N if plan is FINE else 3
    across = "n" if plan is FINE else "n_blocks"
    assert found == {
        "scale_a": 4 * GAP,
        "scale_a_batch_stride": M * 4 * bool(batch),
        "scale_a_m_stride": 4,
        "scale_a_k_blocks_stride": 1,
        "scale_b": 5 * GAP,
        "scale_b_batch_stride": 4 * columns * bool(batch),
        f"scale_b_{across}_stride": 1,
        "scale_b_k_blocks_stride": columns,
    }


def test_scales_may_be_in_either_order_with_any_padding() -> None:
    m_major = contiguous((M, 4), 4, "float32", swapped=True)._replace(strides=(4, 44 * 4))
    k_major = contiguous((4, 3), 5, "float32", swapped=True)._replace(strides=(4, 5 * 4))
    found = strides_of(WIDE, make_arguments(scale_a=m_major, scale_b=k_major))
    assert (found["scale_a_m_stride"], found["scale_a_k_blocks_stride"]) == (1, 44)
    assert (found["scale_b_n_blocks_stride"], found["scale_b_k_blocks_stride"]) == (5, 1)


def test_a_batch_may_share_the_scales_of_its_weight() -> None:
    shared = {B: contiguous((4, 3), 5, "float32"), "b": contiguous((K, N), 2, "uint8", True)}
    found = strides_of(WIDE, make_arguments(batch=(3,), **shared))
    assert (found["scale_a_batch_stride"], found["scale_b_batch_stride"]) == (160, 0)


def test_bytes_are_taken_by_their_type_and_as_bits_at_any_address() -> None:
    typed = {A: {"dtype": "float8_e8m0fnu", "pointer": 4 * GAP + 3}}
    assert strides_of(BYTES, make_arguments(BYTES, **typed))["scale_a"] == 4 * GAP + 3


@pytest.mark.parametrize("changes", [{"scale_a": np.ones((5, 1), np.float32)}, {}])
def test_arrays_of_the_cpu_are_refused(changes: dict[str, Any]) -> None:
    kernel = GemmKernel(WIDE, b"never loaded")
    a, b = np.zeros((5, 128), np.uint8), np.zeros((128, 16), np.uint8)
    with pytest.raises(ArgumentError) as caught:
        kernel(a, b, scale_b=np.ones((1, 1), np.float32), **changes)
    found = [problem.message for problem in caught.value.problems]
    if changes:
        assert found == [
            f"{name}: expected memory of a CUDA device, got memory of the CPU"
            for name in ("a", "b", "scale_a", "scale_b")
        ]
    else:
        assert found == ["scale_a: expected scales 1x128 of A, got nothing"]
