"""Chunks whose end is inside a tile of rows and a block of keys: the kernel, and its mutants."""

from __future__ import annotations

import pytest

from tests.kernels.source_mutation import Change, Kernel, kernel_of, verify

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
KERNELS = {
    "hopper": {"arch": "sm_90a", "dtype": "fp16", "depth": 64},
    "blackwell": {"arch": "sm_100a", "dtype": "fp16", "depth": 64},
}
CASE = "chunked/70x230"
"""The last 30 rows are of the second chunk: the first block of keys is hidden from them alone."""
CHANGES = {
    "a block is skipped": Change(r"/ kBN, end\)", "/ kBN + 1, end)"),
    "a block counts as full": Change(r"cuts_left \|\| ", ""),
    "a chunk begins a key early": Change(r"(column|key) < (first(\[\w+\(i\)\])?)", r"\1 + 1 < \2"),
}


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request) -> Kernel:
    return kernel_of({**KERNELS[request.param], "mask": {"chunked": 200}})


def test_the_kernel_is_right(kernel) -> None:
    verdict, _ = verify(kernel, CASE, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_mistake_is_found_in_the_numbers(kernel, change) -> None:
    verdict, _ = verify(kernel.with_code(change.apply(kernel.code)), CASE, 3)
    assert verdict.num_cases == 1
    assert {failure.check for case in verdict.cases for failure in case.failures} == {"numbers"}
