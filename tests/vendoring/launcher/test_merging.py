"""Calls of merging kernels by the C launcher: what is refused, in which words, what is taken."""

from __future__ import annotations

import ctypes

import pytest

from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.merge_problems import plain_problem
from tests.vendoring.launcher.shipped import shipped_plans
from tests.vendoring.launcher.test_interface import attention_args, changed, refused

MERGING, ATTENTION = "merge_d128_bf16", "acme_d128_causal_bf16"


@pytest.fixture
def library(launcher):
    binding = launcher.on(SimulatedDevice("sm_90a", 132))
    launcher.stand_in.reset()
    return binding


def merging_args(**changes):
    return changed(plain_problem(shipped_plans()[MERGING]).c_args(), changes)


@pytest.mark.parametrize(
    ("changes", "argument", "reason"),
    [
        ({"struct_size": 8}, "ARGS", "BAD_SIZE"),
        *(({name: value}, "PARTS", "BAD_EXTENT")
          for name in ("num_parts", "batch", "rows", "heads") for value in (-1, -(2**63))),
        ({"num_parts": 2**31, "part_stride": 0, "part_lse_stride": 0}, "PARTS", "BAD_EXTENT"),
        *(({f"{name}__data": None}, name.upper(), "IS_NULL")
          for name in ("parts", "part_lse", "out", "lse")),
        *(({f"{name}__data": (9 << 46) + 8}, name.upper(), "MISALIGNED")
          for name in ("parts", "out")),
        *(({f"{name}__data": (9 << 46) + 2}, name.upper(), "MISALIGNED")
          for name in ("part_lse", "lse")),
        ({"part_stride": 4}, "PARTS", "BAD_STRIDE"),
        ({"out__head_stride": -128}, "OUT", "BAD_STRIDE"),
        ({"part_lse_stride": -1}, "PART_LSE", "BAD_STRIDE"),
        ({"lse__row_stride": 2**62}, "LSE", "BAD_STRIDE"),
        ({"out__row_stride": 0}, "OUT", "OVERLAPS"),
        ({"lse__row_stride": 0}, "LSE", "OVERLAPS"),
        ({"out__data": (1 << 46) + 16}, "OUT", "OVERLAPS"),
        ({"out__data": 2 << 46}, "OUT", "OVERLAPS"),
        ({"lse__data": 3 << 46}, "LSE", "OVERLAPS"),
        ({"out__data": 1 << 46, "part_stride": 0}, "PARTS", "OVERLAPS"),
        ({"lse__data": 2 << 46, "part_lse_stride": 0}, "PART_LSE", "OVERLAPS"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_merge_is_refused(
    launcher, library, changes, argument, reason
) -> None:
    status = library.kernel(f"acme_{MERGING}").launch(ctypes.byref(merging_args(**changes)), None)
    assert refused(status) == (argument, reason)
    assert library.words(status).startswith(f"{argument.lower()}: expected ")
    assert not launcher.stand_in.launches


@pytest.mark.parametrize(
    ("changes", "launches"),
    [
        ({}, 1),
        ({"num_parts": 0, "parts__data": None, "part_lse__data": None}, 1),
        ({"rows": 0, "parts__data": None, "part_lse__data": None, "out__data": None,
          "lse__data": None}, 0),
        ({"rows": 0, "batch": 2**62}, 0),
        ({"out__data": (1 << 46) + 2 * 2 * 33 * 3 * 128 * 2}, 1),  # the last part
        ({"num_parts": 1, "part_stride": -1, "part_lse_stride": -1}, 1),
    ],
)  # fmt: skip
def test_a_merge_without_elements_or_over_a_part_is_taken(
    launcher, library, changes, launches
) -> None:
    args = merging_args(**changes)
    assert library.kernel(f"acme_{MERGING}").launch(ctypes.byref(args), None) == 0
    assert len(launcher.stand_in.launches) == launches


def test_a_merge_is_of_no_other_family(library) -> None:
    attention = library.kernel(ATTENTION)
    merging = library.kernel(f"acme_{MERGING}")
    args = merging_args()
    assert library.merge(merging.handle, ctypes.byref(args), None) == 0
    assert refused(library.merge(None, ctypes.byref(args), None)) == ("KERNEL", "IS_NULL")
    assert refused(merging.launch(None, None)) == ("ARGS", "IS_NULL")
    wrong = library.merge(attention.handle, ctypes.byref(args), None)
    assert refused(wrong) == ("KERNEL", "BAD_VALUE")
    wrong = library.attention(merging.handle, ctypes.byref(attention_args()), None)
    assert refused(wrong) == ("KERNEL", "BAD_VALUE")
    assert merging.workspace_bytes(None) == 0
