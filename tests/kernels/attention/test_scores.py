"""Kernels with a score function and a declared tensor: right, and refused with mistakes."""

from __future__ import annotations

import pytest

from tests.kernels.source_mutation import Change, Kernel, kernel_of, verify

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
KERNELS = {
    "hopper": {"arch": "sm_90a", "dtype": "fp16", "depth": 64},
    "blackwell": {"arch": "sm_100a", "dtype": "fp16", "depth": 64},
}
SCORE = {
    "mask": "key <= query and document[batch, query] == document[batch, key]",
    "score": "score - slope[head] * (query - key)",
    "parameters": {
        "slope": {"dtype": "fp32", "shape": ["query_heads"]},
        "document": {"dtype": "int32", "shape": ["batch", "keys"]},
    },
}
CASE = "more_keys/5x*"
"""Few rows that see all of the first blocks, but for the documents."""
CHANGES = {
    "another head's slope": Change(r"given_slope_at\(problem, tile\.head\)",
                                   "given_slope_at(problem, tile.head - 1)"),
    "the slope is not divided by the scale": Change(r"inverse_scale \* given", "given"),
    "a score moves a key": Change(r"static_cast<float>\(column\)",
                                  "static_cast<float>(column + 1)"),
}  # fmt: skip


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request) -> Kernel:
    return kernel_of({**KERNELS[request.param], **SCORE})


def test_the_kernel_is_right(kernel) -> None:
    verdict, _ = verify(kernel, CASE, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_mistake_is_found_in_the_numbers(kernel, change) -> None:
    verdict, _ = verify(kernel.with_code(change.apply(kernel.code)), CASE, 3)
    assert verdict.num_cases == 1
    assert {failure.check for case in verdict.cases for failure in case.failures} == {"numbers"}
