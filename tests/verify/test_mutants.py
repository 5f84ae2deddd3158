"""Verify must pass a correct kernel and refuse its mutants, made of a NumPy kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.verify.cases import default_cases, emulated_cases
from fa4gen.verify.family import family_of
from fa4gen.verify.run import VerifyOptions, verify_kernel

pytestmark = pytest.mark.numbers

SMALL = 70_000
"""Scores of a case that the NumPy kernel, blockwise and float32, does quickly."""


def failing(verdict: Any) -> dict[str, set[str]]:
    return {
        case.case.name: {failure.check for failure in case.failures}
        for case in verdict.cases
        if not case.passed
    }


RIGHT = [
    {"mask": "none", "dtype": "fp16"},
    {"mask": "causal"},
    {"mask": {"sliding_window": 100}, "softcap": 30.0},
    {"mask": {"sliding_window": {"left": 50, "right": 20}}, "lse": False, "depth": 96},
    {"arch": "sm_100a", "dtype": "fp8_e4m3", "mask": "causal"},
    {"arch": "sm_100a", "dtype": "fp8_e4m3", "out_dtype": "fp16", "softcap": 30.0, "depth": 128},
    {"arch": "sm_100a", "dtype": "fp16", "exp2_fma_share": 1.0},
    {"arch": "sm_100a", "depth": 192, "value_depth": 128, "mask": {"sliding_window": 200}},
]
FP8 = {"arch": "sm_100a", "dtype": "fp8_e4m3"}


@pytest.mark.parametrize("keys", RIGHT, ids=str)
def test_a_right_kernel_passes(make_plan, numpy_backend, compiled, keys) -> None:
    plan = make_plan(**keys)
    small = tuple(
        case.name
        for case in default_cases(plan)
        if case.batch * case.query_heads * case.query_rows * case.key_rows < SMALL
    )
    verdict = verify_kernel(plan, compiled, numpy_backend(), VerifyOptions(3, small))
    assert failing(verdict) == {}
    assert len(verdict.cases) == len(small) > 20
    assert verdict.passed


WINDOW = {"sliding_window": 100}
# mutant, config, a case that must fail, the expected failure
MUTANTS = [
    ("right_plus", {"mask": "causal"}, "odd/333", "numbers"),
    ("right_plus", {"mask": "causal", "lse": False}, "odd/333", "numbers"),
    ("right_plus", {"mask": "causal"}, "size/512", "numbers"),
    ("right_minus", {"mask": "causal", "dtype": "fp16"}, "odd/333", "numbers"),
    ("top_left", {"mask": "causal"}, "more_keys/193x500", "numbers"),
    ("left_plus", {"mask": WINDOW}, "window/long*", "numbers"),
    ("left_plus", {"mask": WINDOW, "lse": False}, "window/long*", "numbers"),
    ("left_plus", {"mask": {"sliding_window": 1000}}, "window/300x*", "numbers"),
    ("right_plus", {"mask": {"sliding_window": {"left": 9, "right": 9}}}, "odd/193", "numbers"),
    ("dropped_block", {}, "size/1024", "numbers"),
    ("dropped_block", {"lse": False}, "size/512", "numbers"),
    ("dropped_block", {"mask": "causal", "lse": False}, "odd/333", "numbers"),
    ("scale", {}, "odd/333", "numbers"),
    ("scale", {"lse": False}, "odd/333", "numbers"),
    ("scale", {"lse": False}, "size/512", "numbers"),
    ("scale", {"lse": False, "dtype": "fp16", "mask": "causal"}, "odd/333", "numbers"),
    ("gqa", {}, "gqa/4", "numbers"),
    ("gqa", {"mask": "causal"}, "gqa/3_of_15", "numbers"),
    ("unwritten", {}, "size/1", "unwritten"),
    ("unwritten", {"mask": "causal"}, "size/512", "unwritten"),
    ("lse_log2", {}, "size/64", "numbers"),
    ("lse_log2", {}, "size/2", "numbers"),
    ("tail", {}, "odd/77", "numbers"),
    ("tail", {"lse": False}, "odd/333", "numbers"),
    ("no_rescale", {}, "data/falling", "numbers"),
    ("no_rescale", {"lse": False}, "data/large_logits", "numbers"),
    ("max_from_zero", {"lse": False}, "data/all_logits_low", "numbers"),
    ("rounded_maximum", {"lse": False}, "data/high_peaks", "numbers"),
    ("rounded_maximum", {"mask": "causal", "depth": 256}, "data/high_peaks_odd", "numbers"),
    ("rounded_maximum", {"dtype": "fp16", "lse": False}, "data/high_peaks", "numbers"),
    ("rounded_maximum", {**FP8, "lse": False}, "data/high_peaks", "numbers"),
    ("rounded_maximum", {"lse": False}, "data/equal_high", "numbers"),
    ("rounded_maximum", {"mask": "causal", "depth": 256}, "data/equal_high_odd", "numbers"),
    ("rounded_maximum", {"dtype": "fp16", "lse": False}, "data/equal_high", "numbers"),
    ("rounded_maximum", {**FP8, "lse": False}, "data/equal_high", "numbers"),
    ("dropped_block", {"lse": False}, "data/equal_high", "numbers"),
    ("stale_value", {}, "size/512", "numbers"),
    ("narrow_sum", {}, "size/1024", "numbers"),
    ("narrow_sum", {"dtype": "fp16"}, "size/1024", "numbers"),
    ("no_softcap", {"softcap": 30.0}, "data/large_logits", "numbers"),
    ("no_softcap", {"softcap": 5.0}, "odd/333", "numbers"),
    ("nan_rows", {"mask": "causal"}, "more_queries/200x1", "numbers"),
    ("nan_rows", {"mask": "causal", "lse": False}, "more_queries/200x1", "numbers"),
    ("nan_rows", {}, "empty/no_keys", "numbers"),
    ("lse_of_unseeing_rows", {"mask": "causal"}, "more_queries/640x64", "numbers"),
    ("swapped_columns", {}, "size/64", "numbers"),
    ("last_row", {"lse": False}, "size/512", "numbers"),
    ("overrun", {}, "size/64", "guard"),
    ("underrun", {}, "layout/bhsd", "guard"),
    ("lse_overrun", {}, "size/64", "guard"),
    ("row_gap", {}, "layout/padded", "guard"),
    ("input", {}, "layout/packed", "inputs"),
    ("input", {}, "size/64", "inputs"),
    ("race", {}, "size/128", "repeat"),
    ("no_query_descale", FP8, "gqa/4", "numbers"),
    ("no_key_descale", {**FP8, "lse": False}, "descales/key", "numbers"),
    ("no_value_descale", FP8, "size/1", "numbers"),
    ("transposed_descales", FP8, "batch/7", "numbers"),
    ("transposed_descales", {**FP8, "lse": False}, "heads/5", "numbers"),
    ("shifted_lse", FP8, "size/64", "numbers"),
    ("scale", FP8, "odd/333", "numbers"),
    ("gqa", {**FP8, "lse": False}, "gqa/4", "numbers"),
    ("dropped_block", {**FP8, "lse": False}, "size/512", "numbers"),
    ("stale_value", {**FP8, "lse": False}, "size/512", "numbers"),
    ("input", FP8, "layout/packed", "inputs"),
    ("unwritten", {**FP8, "value_depth": 96}, "size/512", "unwritten"),
    ("overrun", {**FP8, "value_depth": 128}, "layout/bhsd", "guard"),
    ("scale", {"arch": "sm_100a", "dtype": "fp16", "exp2_fma_share": 1.0}, "size/512", "numbers"),
]


_right_verdicts: dict[Any, Any] = {}
"""Several mutants share a plan and a case."""


@pytest.mark.parametrize(("mutant", "keys", "cases", "check"), MUTANTS)
def test_a_mutant_is_reported(
    make_plan, numpy_backend, compiled, mutant, keys, cases, check
) -> None:
    plan = make_plan(**keys)
    options = VerifyOptions(1, (cases,))
    right = _right_verdicts.get((str(keys), cases))
    if right is None:
        right = verify_kernel(plan, compiled, numpy_backend(), options)
        _right_verdicts[str(keys), cases] = right
    assert failing(right) == {}
    wrong = verify_kernel(plan, compiled, numpy_backend(mutant), options)
    assert not wrong.passed
    found = failing(wrong)
    assert len(found) == len(wrong.cases) > 0, "the case alone must show the error"
    assert all(check in checks for checks in found.values())


# mutant, config, kind of data: every case of the emulator with it must show the mutant by its
# output alone
COUNTED = [
    ("dropped_key", {"lse": False}, "counting"),
    ("dropped_key", {"lse": False, "depth": 128, "dtype": "fp16"}, "counting"),
    ("dropped_key", {**FP8, "lse": False}, "counting"),
    ("doubled_key", {"lse": False}, "counting"),
    ("doubled_key", {**FP8, "lse": False, "out_dtype": "fp16"}, "counting"),
    ("narrow_partials", {"lse": False}, "counting"),
    ("narrow_partials", {"lse": False, "dtype": "fp16"}, "counting"),
    ("narrow_partials", {**FP8, "lse": False}, "counting"),
    ("exponent_of_row_0", {"lse": False}, "counting_rising"),
    ("exponent_of_row_0", {**FP8, "lse": False}, "counting_rising"),
    ("no_rescale", {"lse": False}, "counting_rising"),
    ("no_rescale", {**FP8, "lse": False}, "counting_rising"),
]


@pytest.mark.parametrize(("mutant", "keys", "kind"), COUNTED)
def test_data_that_count_show_single_keys_and_roundings(
    make_plan, numpy_backend, mutant, keys, kind
) -> None:
    plan = make_plan(**keys)
    family = family_of(plan)
    cases = [case for case in emulated_cases(plan) if shows(case, mutant, kind)]
    assert cases
    for case in cases:
        problem = family.draw(case, 1)
        reference = problem.reference(np)
        for name in ("", mutant):
            after = numpy_backend(name).load(plan, None).run(problem.memory)
            _, failures = reference.compare(problem.memory, after, np)
            assert bool(failures) == bool(name), (case.name, failures)


def shows(case: Any, mutant: str, kind: str) -> bool:
    """Whether the mutant does anything wrong in the case."""
    sums_of_many = case.key_rows > 16 or mutant != "narrow_partials"
    return case.data == kind and case.key_rows > 1 and case.query_rows > 1 and sums_of_many
