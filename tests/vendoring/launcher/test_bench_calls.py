"""The calls of bench through the C launcher: over the stand-in, with NumPy in place of CuPy."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.bench import vendored
from fa4gen.bench.family import family_of
from fa4gen.bench.gpu_arrays import RandomNumbers, poisoned, zeros
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.vendoring.standin import SimulatedDevice
from tests.bench.fakes import put_on_numpy
from tests.vendoring.launcher.both import Made
from tests.vendoring.launcher.shipped import shipped_plans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.vendoring.launcher.both import CLauncher

SIZES = {
    "gemm_bf16_sm90": "2x200x192x256",
    "gemm_grouped_bf16_sm90": "3x200:192x256",
    "gemm_grouped_masked_fp8_scaled_sm90": "3x200:256x256",
    "gemm_grouped_bf16": "3x200:192x256",
    "d128_causal_bf16": "512",
    "d128_ragged_causal_bf16": "2x300x300",
    "d128_paged16_causal_bf16": "2x300x300",
    "decode_d128_kv_fp8_bf16": "2x1x512",
    "fa4_d64_paged_window_sinks_bf16": "2x300x300",
}
"""Kernels of each kind of call, and a size of each."""


def view(name: str, array: Any) -> tuple[TensorView, Any]:
    """View NumPy's memory as that of a GPU."""
    place = array.__array_interface__["data"][0]
    kind = {"uint16": "bfloat16"}.get(array.dtype.name, array.dtype.name)
    return TensorView(place, array.shape, array.strides, kind, 0), array


@pytest.fixture(autouse=True)
def _on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_numpy(monkeypatch)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=lambda array: array))
    monkeypatch.setattr("fa4gen.runtime.arrays.view", view)


def outcome(launcher: CLauncher, plan: Any, tensors: Mapping[str, Any], **scalars: float) -> Any:
    args = vendored.call_args(plan, tensors, **scalars)
    kernel = launcher.on(SimulatedDevice(plan.arch, 132)).kernel(plan.name)
    args.workspace, args.workspace_bytes = 1 << 40, kernel.workspace_bytes(ctypes.addressof(args))
    return launcher.outcome(plan, args, 132, "prepared")


@pytest.mark.parametrize("name", SIZES)
def test_a_peers_call_is_taken(launcher: CLauncher, name: str) -> None:
    plan = shipped_plans()[name]
    family = family_of(plan)
    (size,) = family.parse_sizes(SIZES[name])
    work = family.work(plan, size, RandomNumbers(0))
    out = poisoned(work._out_shape, plan.out_dtype)
    operands = work.operands(plan, 0, out)
    assert isinstance(made := outcome(launcher, plan, operands.own, **operands.scalars), Made), made
    assert made.grid
    assert operands.out.shape == out.shape
    assert np.shares_memory(operands.out, operands.own["out"])


@pytest.mark.parametrize("name", SIZES)
def test_the_call_of_a_single_tile_is_taken(launcher: CLauncher, name: str) -> None:
    plan = shipped_plans()[name]
    tensors = family_of(plan).small_tensors(plan, zeros)
    assert isinstance(made := outcome(launcher, plan, tensors), Made), made
    assert made.grid
