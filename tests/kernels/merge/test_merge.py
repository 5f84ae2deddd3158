"""Kernels that merge partial results: right on all of their cases, and mistakes show."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.verify.merge.case import emulated_cases
from tests.kernels.source_mutation import (
    Change,
    assert_numbers_differ,
    assert_right,
    kernel_of,
    verify,
)

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
Keys = dict[str, Any]
MERGE: Keys = {"kernel": "merge", "arch": "sm_90a", "dtype": "bf16", "depth": 96}
KERNELS: dict[str, Keys] = {
    "bf16": MERGE,
    "to fp32": {
        **MERGE,
        "out_dtype": "fp32",
        "depth": 64,
        "rows_in_flight": 1,
        "dependent_launch": True,
    },
    "fp32 to fp16, no lse": {**MERGE, "dtype": "fp32", "out_dtype": "fp16", "lse": False},
    "fp32 on Blackwell": {**MERGE, "arch": "sm_100a", "dtype": "fp32", "rows_in_flight": 4},
}


@pytest.mark.parametrize("keys", KERNELS.values(), ids=list(KERNELS))
def test_kernels_are_right_on_all_of_their_cases(keys: Keys) -> None:
    kernel = kernel_of(keys)
    for case in emulated_cases(kernel.plan):
        assert_right(kernel, case.name)


@pytest.mark.parametrize(
    ("case", "change"),
    [
        pytest.param("lse/empty", Change(r"if \(parts\.lse\[part\] == .*continue;"),
                     id="outputs of empty parts count"),
        pytest.param("lse/all_empty", Change(r"if \(max == negative_infinity\(\)\) return;[^\n]*"),
                     id="-inf less -inf"),
        pytest.param("lse/huge",
                     Change(r"\(lse - max\) \* kLog2E", "lse * kLog2E - max * kLog2E"),
                     id="huge numbers are multiplied first"),
        pytest.param("parts/3", Change(r"merged\.sum \*= factor;"), id="older sums stay"),
        pytest.param("parts/3", Change(r"merged\.output\[i\] \*= factor;", ";"),
                     id="older outputs stay"),
        pytest.param("parts/7", Change(r"merged\.max = max;"), id="the maximum is not kept"),
        pytest.param("parts/2", Change(r"part \+ i < num_parts", "part + i + 1 < num_parts"),
                     id="the last part is left out"),
        pytest.param("parts/7", Change(r"part \+= kPartsInFlight", "part += kPartsInFlight + 1"),
                     id="a part between groups is left out"),
        pytest.param("batch/3", Change(r"\* part_lse_row_stride", "* 0"),
                     id="a log-sum-exp of another row"),
        pytest.param("batch/3", Change(r"at\.batch \* parts_batch_stride \+ "),
                     id="parts of the first batch"),
        pytest.param("parts/2", Change(r"log2_approx\(sum\) \* kLn2", "log2_approx(sum)"),
                     id="a logarithm to base 2"),
        pytest.param("lse/all_empty", Change(r"sum == 0\.f \? 0\.f : "), id="zero over zero"),
        pytest.param("lse/equal", Change(r"merged\.sum \+= weight;", "merged.sum = weight;"),
                     id="the sum of the last part alone"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_in_the_numbers(case: str, change: Change) -> None:
    assert_numbers_differ(kernel_of(MERGE), change, (case,))


@pytest.mark.parametrize(
    ("case", "change"),
    [
        pytest.param("place/same", Change(r"__syncthreads\(\);"), id="overwritten too early"),
        pytest.param("batch/3", Change(r"!has_rows \|\| first \+ r >= num_rows", "!has_rows"),
                     id="rows past the last are written"),
        pytest.param("batch/3", Change(r"at\.head < problem\.heads", "at.head <= problem.heads"),
                     id="a head past the last"),
        pytest.param("batch/3", Change(r"\{at\.batch \+ 1, 0, 0\}", "at"),
                     id="the batch does not follow"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_by_the_emulator_or_in_memory(case: str, change: Change) -> None:
    kernel = kernel_of(MERGE)
    verdict = verify(kernel.with_code(change.apply(kernel.code)), case, 3)[0]
    failures = {failure.check for one in verdict.cases for failure in one.failures}
    assert failures
    assert failures <= {"emulator", "guard", "inputs", "numbers", "unwritten"}
