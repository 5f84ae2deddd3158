"""Verify finds errors: mutants fail, and the correct kernel passes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fa4gen.toolchain.model import Resources
from fa4gen.verify import run as run_module
from fa4gen.verify.family import family_of
from fa4gen.verify.report import error_cell, problems, verdict_data
from fa4gen.verify.run import VerifyOptions, verify_kernel

COMPILED: Any = SimpleNamespace(cubin=b"", ptx="", resources=Resources(168, 0, 0, 0, 0, 0))
RIGHT = [
    {"residual": "matrix"},
    {"residual": "row", "out_dtype": "fp32", "a_major": "m", "b_major": "n"},
    {"dtype": "fp8_e4m3", "residual": "matrix"},
    {"dtype": "fp16", "activation": "silu(x)"},
    {"activation": "exp(x)", "residual": "matrix"},
]


@pytest.fixture(autouse=True)
def one_case_at_a_time(monkeypatch) -> None:
    """NumPy's own threads are enough on problems this small."""
    monkeypatch.setattr(run_module, "MAX_THREADS", 1)


def verify(plan, backend, *cases: str):
    return verify_kernel(plan, COMPILED, backend, VerifyOptions(4, cases), config="g.yaml")


def messages(verdict) -> str:
    return "\n".join(problem.message for problem in problems(verdict))


@pytest.mark.parametrize("keys", RIGHT, ids=str)
def test_a_right_kernel_passes(make_plan, numpy_backend, keys) -> None:
    verdict = verify(
        make_plan(**keys), numpy_backend(), "size/?", "depth/[01]", "data/*_odd", "*positions_1*",
        "factor/[ab]*", "batch/[3sn]*", "empty/*",
    )  # fmt: skip
    assert verdict.num_cases > 15
    assert verdict.passed, messages(verdict)


# mutant: the case that must find it, and the expected failure
MUTANTS = {
    "one_element": ("size/128", "numbers"),
    "lost_block": ("size/128", "numbers"),
    "no_alpha": ("factor/negative", "numbers"),
    "no_beta": ("factor/negative", "numbers"),
    "swapped_rows": ("residual/positions_77x1000", "numbers"),
    "swapped_columns": ("residual/positions_77x1000", "numbers"),
    "nan_of_c": ("factor/beta_0_nan", "numbers"),
    "reads_a_and_b": ("factor/alpha_0", "numbers"),
    "first_b": ("batch/5", "numbers"),
    "unwritten": ("size/64", "unwritten"),
    "overrun": ("size/8", "guard"),
    "underrun": ("size/8", "guard"),
    "input": ("size/8", "inputs"),
    "race": ("size/8", "repeat"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_reported(make_plan, numpy_backend, mutant: str) -> None:
    case, check = MUTANTS[mutant]
    plan = make_plan(residual="matrix")
    assert verify(plan, numpy_backend(), case).passed
    verdict = verify(plan, numpy_backend(mutant), case)
    assert check in {failure.check for case in verdict.cases for failure in case.failures}


COUNTED = [
    ({"residual": "matrix"}, "next_row"),
    ({"residual": "matrix"}, "lost_product"),
    ({"residual": "matrix"}, "narrow_partials"),
    ({"dtype": "fp8_e4m3"}, "lost_product"),
    ({"dtype": "fp16"}, "narrow_partials"),
    ({"activation": "silu(x)", "dtype": "fp16"}, "lost_product"),
]


@pytest.mark.parametrize(("keys", "mutant"), COUNTED)
def test_data_that_count_show_single_products_and_roundings(
    make_plan, numpy_backend, keys, mutant
) -> None:
    """In every case of the emulator that has them."""
    plan = make_plan(**keys)
    family = family_of(plan)
    cases = [case for case in family.emulated_cases() if case.data == "counting" and case.k > 30]
    assert len(cases) > 4
    for case in cases:
        problem = family.draw(case, 1)
        reference = problem.reference(np)
        for name in ("", mutant):
            after = numpy_backend(name).load(plan, None).run(problem.memory)
            _, failures = reference.compare(problem.memory, after, np)
            assert bool(failures) == bool(name), (case.name, failures)


def test_a_sum_that_is_too_narrow_is_reported_in_float32(make_plan, numpy_backend) -> None:
    plan = make_plan(out_dtype="fp32")
    assert not verify(plan, numpy_backend("narrow_sum"), "size/64").passed


def test_a_missing_activation_is_reported(make_plan, numpy_backend) -> None:
    plan = make_plan(activation="relu(x)")
    assert verify(plan, numpy_backend(), "size/64").passed
    assert not verify(plan, numpy_backend("no_activation"), "size/64").passed


def test_in_place_an_element_that_was_left_alone_is_reported(make_plan, numpy_backend) -> None:
    verdict = verify(make_plan(residual="matrix"), numpy_backend("unwritten"), "residual/in_place")
    assert not verdict.passed


def test_the_rest_of_a_chunk_of_16_bytes_may_be_written(make_plan, numpy_backend) -> None:
    assert verify(make_plan(), numpy_backend("chunk_tail"), "batch/3_padded").passed


def test_a_failure_names_the_element_and_the_command(make_plan, numpy_backend) -> None:
    verdict = verify(make_plan(residual="matrix"), numpy_backend("one_element"), "size/128")
    [problem] = problems(verdict)
    assert problem.message.startswith("probe, size/128: m 128, n 128, k 128, normal: ")
    assert "1 of 16384 elements are outside of their rounding bounds" in problem.message
    assert "out[row 64, column 0]: expected " in problem.message
    assert problem.remedy.endswith("fa4gen verify g.yaml --seed 4 --cases size/128")


def test_the_report_has_the_cases_extents_and_errors(make_plan, numpy_backend) -> None:
    verdict = verify(make_plan(), numpy_backend(), "batch/5")
    [case] = verdict_data(verdict)["cases"]
    assert (case["batch"], case["m"], case["n"], case["k"]) == (5, 130, 72, 200)
    assert list(case["errors"]) == list(case["bounds"]) == ["frobenius", "row", "element"]
    assert error_cell(verdict, "frobenius").endswith(" %)")
    assert error_cell(verdict, "lse") == "-"


@pytest.mark.parametrize("case", ["size/64", "batch/5"])
def test_elements_in_their_intervals_do_not_look_like_the_edge_of_failure(
    make_plan, numpy_backend, case
) -> None:
    verdict = verify(make_plan(), numpy_backend(), case)
    assert verdict.passed
    assert error_cell(verdict, "element") == "inside"
    wrong = verify(make_plan(residual="matrix"), numpy_backend("one_element"), "size/128")
    assert error_cell(wrong, "element").endswith((" %)", "(above)"))
