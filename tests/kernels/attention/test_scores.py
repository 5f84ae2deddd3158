"""Kernels with a score function and a declared tensor: right, and refused with mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify.inputs import KINDS
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


FULL = "tiles/square"
"""Rows of whole warpgroups, which see all of the first blocks, and random numbers."""
BY_COLUMN = {
    "a row's share is that of the row above": Change(r"ahead \+ 8 \* r", "ahead"),
    "a score moves a column": Change(r"kLastColumn - fragment_column\(i\)",
                                     "kLastColumn + 1 - fragment_column(i)"),
    "a block's keys are those of the one before": Change(r"ahead - block \* kBN, shift",
                                                         "ahead - (block + 1) * kBN, shift"),
    "a row's share is not in its exponents": Change(r" - shift\[0\]\)", ")"),
    "a lane's columns are the first lane's": Change(
        r"(ahead = [^;]*)2 \* \(threadIdx\.x % 4\)", r"\g<1>0"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def by_column() -> Kernel:
    """A number common to a row's scores is added to its maximum, where no key is hidden."""
    return kernel_of({**KERNELS["hopper"], "mask": "causal", "score": "alibi"})


def test_the_kernel_by_column_is_right(by_column) -> None:
    verdict, _ = verify(by_column, FULL, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1


@pytest.mark.parametrize("change", BY_COLUMN.values(), ids=BY_COLUMN)
def test_a_mistake_by_column_is_found_in_the_numbers(by_column, change) -> None:
    verdict, _ = verify(by_column.with_code(change.apply(by_column.code)), FULL, 3)
    assert {failure.check for case in verdict.cases for failure in case.failures} == {"numbers"}


TIED = {
    "rows are another distance apart": Change(r"rows\.max\[0\] \+ added_at\(terms, 8\.f\)",
                                              "rows.max[0] + added_at(terms, 7.f)"),
    "scores stay where maxima rise": Change(r"exponents\[i\] -= by\[fragment_row\(i\)\];", ";"),
    "the raised row's sums stay": Change(r"exp2_approx\(lowered\[1\]\)", "1.f"),
    "what is taken from exponents is not in the log-sum-exp": Change(
        r"scale_log2 \+ kRescaleThreshold \+ log2", "scale_log2 + log2"
    ),
    "it is not taken before rows are tied": Change(
        r"scale_log2 \+ kRescaleThreshold;", "scale_log2;"
    ),
    "a block's keys are those of the one before": Change(
        r"ahead - block \* kBN, rows", "ahead - (block + 1) * kBN, rows"
    ),
}  # fmt: skip
FALLING = "data/falling"
"""Maxima rise at every block."""


def parting(draft) -> None:
    """Every other eight rows see 160 powers of two more in the first keys, which come last."""
    rows = np.arange(draft.query.shape[1])
    draft.query[..., 0] = np.where(rows % 16 < 8, 0, 30)[None, :, None]
    draft.key[..., 0] = np.where(np.arange(draft.key.shape[1]) < 100, 30, 0)[None, :, None]


@pytest.fixture(scope="module")
def tied() -> Kernel:
    """Both rows of a thread share what a column adds to their exponents."""
    return kernel_of({**KERNELS["hopper"], "dtype": "bf16", "mask": "causal", "score": "alibi"})


@pytest.mark.parametrize("case", [FULL, FALLING, "data/rising", "rings/1x*"])
def test_the_kernel_with_tied_rows_is_right(tied, case) -> None:
    verdict, _ = verify(tied, case, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1


@pytest.mark.parametrize("change", TIED.values(), ids=TIED)
def test_a_mistake_with_tied_rows_is_found_in_the_numbers(tied, change) -> None:
    changed = tied.with_code(change.apply(tied.code))
    verdicts = [verify(changed, case, 3)[0] for case in (FULL, FALLING, "data/peaks")]
    failures = [
        failure for verdict in verdicts for case in verdict.cases for failure in case.failures
    ]
    assert {failure.check for failure in failures} == {"numbers"}


PARTS = 6
"""A seed with a slope so small that the first keys count for the rows that see more in them."""


def test_tied_rows_part_where_one_sees_far_more(tied, monkeypatch) -> None:
    monkeypatch.setitem(KINDS, "rising", parting)
    verdict, _ = verify(tied, "data/rising", PARTS)
    assert verdict.passed, verdict
    for change in (
        Change(r"stay \? both : raised\[r\]", "both"),
        Change(r"kLowest = -60\.f", "kLowest = -1000.f"),
        Change(
            r"return __all_sync\(0xffffffffu, static_cast<int32>\(both\) < 0\);", "return true;"
        ),
        Change(r"signs\[0\] & signs\[1\] & signs\[2\] & signs\[3\]", "signs[0] & signs[1]"),
    ):
        verdict, _ = verify(tied.with_code(change.apply(tied.code)), "data/rising", PARTS)
        found = {failure.check for case in verdict.cases for failure in case.failures}
        assert found == {"numbers"}
