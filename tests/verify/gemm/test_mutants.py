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
FLOAT32 = {"out_dtype": "fp32"}
MATRIX = {"residual": "matrix"}
ROW = {"residual": "row"}
FP8 = {"dtype": "fp8_e4m3"}
BLACKWELL = {"arch": "sm_100a", "cta_group": 1}
RELU = {"residual": "matrix", "activation": "max(x, 0)"}
GATED = {"activation": "silu(gate) * up"}
TURNS = {**GATED, "gate_layout": "interleaved"}
RIGHT = [
    {**GATED},
    {**TURNS, "residual": "row"},
    {**GATED, "residual": "matrix", "out_dtype": "fp32"},
    {**GATED, "residual": "row", "dtype": "fp8_e4m3"},
    {"activation": "max(gate, 0) * up", "residual": "column", "dtype": "fp16"},
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


# How tensor cores add, as far as it was measured, on data that strains it.
SUMS = [
    ({**FLOAT32, "dtype": "fp16"}, "fine_sum", "data/positive_odd"),
    ({**FLOAT32, **BLACKWELL}, "fine_sum", "data/cancelling_odd"),
    ({**FLOAT32, **FP8}, "coarse_sum", "data/cancelling_odd"),
    ({**MATRIX, **FP8}, "coarse_sum", "data/tiny_odd"),
]


@pytest.mark.parametrize(("keys", "sums", "cases"), SUMS)
def test_the_sums_of_tensor_cores_pass(make_plan, numpy_backend, keys, sums, cases) -> None:
    verdict = verify(make_plan(**keys), numpy_backend(sums), cases)
    assert verdict.cases
    assert verdict.passed, messages(verdict)


# mutant, config, cases of which each must show it by itself, the expected failure
MUTANTS = [
    ("one_element", MATRIX, "size/128", "numbers"),
    ("lost_block", MATRIX, "size/128", "numbers"),
    ("no_alpha", MATRIX, "factor/negative", "numbers"),
    ("no_beta", MATRIX, "factor/negative", "numbers"),
    ("swapped_rows", MATRIX, "residual/positions_77x1000", "numbers"),
    ("swapped_columns", MATRIX, "residual/positions_77x1000", "numbers"),
    ("nan_of_c", MATRIX, "factor/beta_0_nan", "numbers"),
    ("reads_a_and_b", MATRIX, "factor/alpha_0", "numbers"),
    ("first_b", MATRIX, "batch/5", "numbers"),
    ("unwritten", MATRIX, "size/64", "unwritten"),
    ("overrun", MATRIX, "size/8", "guard"),
    ("underrun", MATRIX, "size/8", "guard"),
    ("input", MATRIX, "size/8", "inputs"),
    ("race", MATRIX, "size/8", "repeat"),
    ("coarse_sum", FLOAT32, "size/64", "numbers"),
    ("coarse_sum", {**FLOAT32, "dtype": "fp16", "cta_group": 2}, "size/128", "numbers"),
    ("coarse_sum", {**FLOAT32, **FP8, **BLACKWELL}, "size/64", "numbers"),
    ("stale_block", MATRIX, "odd/129x257x65", "numbers"),
    ("stale_block", {**FP8, "cta_group": 2}, "size/256", "numbers"),
    ("last_tile", {}, "odd/129x257x65", "unwritten"),
    ("last_tile", {**BLACKWELL, "cta_group": 2}, "batch/5", "unwritten"),
    ("last_column", {}, "size/64", "unwritten"),
    ("last_column", MATRIX, "residual/positions_77x1000", "unwritten"),
    ("c_of_the_tile_before", MATRIX, "residual/positions_77x1000", "numbers"),
    ("c_of_the_tile_before", {**MATRIX, **FLOAT32}, "residual/positions_batch", "numbers"),
    ("c_of_the_tile_before", ROW, "residual/positions_77x1000", "numbers"),
    ("panels_swapped", {**MATRIX, "BN": 128}, "residual/positions_*x128", "numbers"),
    ("panels_swapped", {**ROW, **FLOAT32}, "residual/positions_*x64", "numbers"),
    ("alpha_for_beta", MATRIX, "factor/negative", "numbers"),
    ("alpha_for_beta", ROW, "factor/alpha_0", "numbers"),
    ("activation_before_c", RELU, "size/64", "numbers"),
    ("cut_off", {}, "size/64", "numbers"),
    ("cut_off", MATRIX, "factor/negative", "numbers"),
    ("rounded_twice", FLOAT32, "size/64", "numbers"),
    ("gate_and_up_exchanged", GATED, "size/64", "numbers"),
    ("gate_and_up_exchanged", {**TURNS, **ROW}, "odd/129x257x65", "numbers"),
    ("up_of_the_next", GATED, "odd/129x257x65", "numbers"),
    ("up_from_the_first", GATED, "size/128", "numbers"),
    ("up_from_the_first", {**TURNS, **FLOAT32}, "odd/129x257x65", "numbers"),
    ("tail_without_up", GATED, "odd/129x257x65", "numbers"),
    ("halves_for_interleaved", TURNS, "size/8", "numbers"),
    ("matrix_before_the_gate", {**GATED, **MATRIX}, "size/64", "numbers"),
    ("no_bias_of_up", {**GATED, **ROW}, "size/64", "numbers"),
    ("lost_block", GATED, "size/128", "numbers"),
    ("coarse_sum", {**GATED, **FLOAT32}, "size/64", "numbers"),
    ("cut_off", GATED, "size/64", "numbers"),
]


@pytest.mark.parametrize(("mutant", "keys", "cases", "check"), MUTANTS)
def test_a_mutant_is_reported(make_plan, numpy_backend, mutant, keys, cases, check) -> None:
    plan = make_plan(**keys)
    right = verify(plan, numpy_backend(), cases)
    assert right.cases
    assert right.passed, messages(right)
    verdict = verify(plan, numpy_backend(mutant), cases)
    assert all(check in {one.check for one in case.failures} for case in verdict.cases)


COUNTED = [
    ({"residual": "matrix"}, "next_row"),
    ({"residual": "matrix"}, "lost_product"),
    ({"residual": "matrix"}, "narrow_partials"),
    ({"dtype": "fp8_e4m3"}, "lost_product"),
    ({"dtype": "fp16"}, "narrow_partials"),
    ({"activation": "silu(x)", "dtype": "fp16"}, "lost_product"),
    (GATED, "lost_product"),
    ({"activation": "max(gate, 0) * up", "out_dtype": "fp32"}, "next_row"),
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
