"""Sinks on every design: rows that see keys, rows that see none, and mutants."""

from __future__ import annotations

import pytest

from tests.kernels.source_mutation import Change, Kernel, kernel_of, verify

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
DESIGNS = {
    "hopper": {"arch": "sm_90a", "depth": 64},
    "hopper 512": {"arch": "sm_90a", "depth": 512, "cta_group": 2},
    "blackwell": {"arch": "sm_100a", "depth": 64},
    "blackwell 512": {"arch": "sm_100a", "depth": 512, "cta_group": 2},
}
CASES = ("more_queries/200x1", "layout/packed")
"""All rows of the first but one see no key; two heads have sinks of their own in the second."""
SMALLEST = "size/1"
"""Two heads with a row and a key each."""
CHANGES = {
    "the sink of the first head": Change(r"sinks\[(done_)?tile\.head\] \*", "sinks[0] *"),
    "counted twice": Change(
        r"1\.f \+ exp2_approx\(sink_log2 - sum_log2\)",
        r"1.f + 2.f * exp2_approx(sink_log2 - sum_log2)",
    ),
    "not in powers of two": Change(r"(sinks\[(done_)?tile\.head\]) \* kLog2E", r"\1"),
    "left out of the log-sum-exp": Change(
        r"add_sink\(sum_log2, sink_log2\) \* kLn2", "sum_log2 * kLn2"
    ),
}


OF_EACH_DESIGN = "the sink of the first head"
"""The others are mistakes in functions that designs share."""


@pytest.fixture(scope="module", params=DESIGNS)
def kernel(request) -> Kernel:
    return kernel_of({**DESIGNS[request.param], "mask": "causal", "sinks": True})


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_is_right(kernel, case) -> None:
    verdict, _ = verify(kernel, case, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_mistake_is_found_in_the_numbers(kernel, change) -> None:
    if kernel.plan.depth == 512 and change is not CHANGES[OF_EACH_DESIGN]:
        pytest.skip("the functions are those of the other design, and this one is slow to compile")
    verdict, _ = verify(kernel.with_code(change.apply(kernel.code)), SMALLEST, 3)
    assert verdict.num_cases == 1
    assert {failure.check for case in verdict.cases for failure in case.failures} == {"numbers"}
