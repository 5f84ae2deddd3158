"""Groups of rows and an index of rows in the C launcher: refusals, older callers, best."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from fa4gen.designs.common.tensor_maps import END_ROW
from fa4gen.vendoring.binding import GemmArgs, Problem
from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.gemm_problems import Operand, plain_problem
from tests.vendoring.launcher.shipped import shipped_plans
from tests.vendoring.statuses import describe_status

HOPPER = SimulatedDevice("sm_90a", 132)
OFFSETS, MASKED = "gemm_grouped_bf16_sm90", "gemm_grouped_masked_fp8_scaled_sm90"
GATHERED, PLAIN = "gemm_gathered_bf16_sm90", "gemm_bf16_sm90"
BEFORE_ROWS = GemmArgs.row_offsets.offset
"""The size of the struct before there were groups."""
MISALIGNED = (1 << 40) + 2


@pytest.fixture
def library(launcher):
    binding = launcher.on(HOPPER)
    launcher.stand_in.reset()
    return binding


def args_of(name, **changes):
    args = plain_problem(shipped_plans()[name]).c_args()
    for field, value in changes.items():
        setattr(args, field, value)
    return args


def launch(library, name, args):
    status = library.kernel(f"acme_{name}").launch(ctypes.byref(args), None)
    reason, argument = describe_status(status)
    return f"{argument} {reason}", library.words(status)


@pytest.mark.parametrize(
    ("name", "changes", "expected", "words"),
    [
        (OFFSETS, {"row_offsets": None}, "ROW_OFFSETS IS_NULL", "an address, got NULL"),
        (OFFSETS, {"row_offsets": MISALIGNED}, "ROW_OFFSETS MISALIGNED", "of 4 for small"),
        (OFFSETS, {"row_counts": 1 << 40}, "ROW_COUNTS NOT_TAKEN", "generated without it"),
        (OFFSETS, {"row_index": 1 << 40}, "ROW_INDEX NOT_TAKEN", "generated without it"),
        (OFFSETS, {"batch": 4097}, "B BAD_EXTENT", "at most as many groups"),
        (OFFSETS, {"m": END_ROW + 1}, "A BAD_EXTENT", "extents from 0"),
        (MASKED, {"row_counts": None}, "ROW_COUNTS IS_NULL", "an address, got NULL"),
        (MASKED, {"row_offsets": 1 << 40}, "ROW_OFFSETS NOT_TAKEN", "generated without it"),
        (GATHERED, {"row_index": None}, "ROW_INDEX IS_NULL", "an address, got NULL"),
        (GATHERED, {"row_index": MISALIGNED}, "ROW_INDEX MISALIGNED", "of 4 for small"),
        (GATHERED, {"m": END_ROW + 1}, "ROW_INDEX BAD_EXTENT", "extents from 0"),
        (GATHERED, {"a_rows": -1}, "A BAD_EXTENT", "extents from 0"),
        (GATHERED, {"a_rows": 1 << 31}, "A BAD_EXTENT", "extents from 0"),
        (PLAIN, {"row_offsets": 1 << 40}, "ROW_OFFSETS NOT_TAKEN", "generated without it"),
    ],
)
def test_wrong_rows_are_refused(library, name, changes, expected, words) -> None:
    found, text = launch(library, name, args_of(name, **changes))
    assert found == expected
    assert words in text


@pytest.mark.parametrize(
    ("stride", "expected"),
    [((1 << 34) // 2, "OUT BAD_STRIDE"), ((1 << 34) // 2 - 8, "NONE OK")],
)
def test_rows_of_the_output_are_below_2_to_the_34_apart(library, stride, expected) -> None:
    problem = plain_problem(shipped_plans()[OFFSETS])
    far = Operand(1 << 45, 0, stride)
    problem = replace(problem, operands={**problem.operands, "out": far})
    assert launch(library, OFFSETS, problem.c_args())[0] == expected


def test_the_rows_of_a_have_chunks_that_the_kernel_numbers(library) -> None:
    problem = plain_problem(shipped_plans()[GATHERED])
    index = replace(problem.index, a_rows=1 << 20)
    apart = {"a": Operand(1 << 40, 0, (1 << 15) // 2)}  # in all 2^35 bytes
    far = replace(problem, index=index, operands={**problem.operands, **apart})
    assert launch(library, GATHERED, far.c_args())[0] == "A BAD_STRIDE"


def test_callers_of_a_header_without_rows_are_served(launcher, library) -> None:
    old = args_of(PLAIN, struct_size=BEFORE_ROWS, row_offsets=1, row_index=1, a_rows=-1)
    assert launch(library, PLAIN, old)[0] == "NONE OK"
    assert len(launcher.stand_in.launches) == 1
    old = args_of(OFFSETS, struct_size=BEFORE_ROWS)
    assert launch(library, OFFSETS, old)[0] == "ROW_OFFSETS IS_NULL"


@pytest.mark.parametrize("name", [OFFSETS, MASKED, GATHERED])
def test_without_rows_or_groups_there_is_nothing_to_do(launcher, library, name) -> None:
    for changes in ({"m": 0, "row_index": None}, {"batch": 0, "row_counts": None}):
        assert launch(library, name, args_of(name, **changes))[0] == "NONE OK"
    assert not launcher.stand_in.launches


def best(launcher, library, name, **changes):
    """Return the name of the best kernel for the traits of one; None where there is none."""
    problem = Problem(struct_size=ctypes.sizeof(Problem))
    assert library.kernel_traits(library.kernel(f"acme_{name}").handle, ctypes.byref(problem)) == 0
    for field, value in {"batch": 8, "m": 512, "n": 512, "k": 512, **changes}.items():
        setattr(problem, field, value)
    found = ctypes.c_void_p()
    status = library.best(launcher.ordinal, ctypes.byref(problem), ctypes.byref(found))
    return None if status else library.kernel_name(found).decode()


def test_best_has_regard_to_groups_and_to_an_index(launcher, library) -> None:
    assert best(launcher, library, OFFSETS) == OFFSETS
    assert best(launcher, library, GATHERED) == GATHERED
    assert best(launcher, library, OFFSETS, gathered_rows=1) == GATHERED
    assert best(launcher, library, OFFSETS, groups=0) not in (OFFSETS, None)
    most = shipped_plans()[OFFSETS].most_groups
    assert best(launcher, library, OFFSETS, batch=most) == OFFSETS
    assert best(launcher, library, OFFSETS, batch=most + 1) is None
