"""Kernels that walk lists of blocks: right, and refused with mistakes in kernel or lists."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify import attention
from tests.kernels.source_mutation import Change, Kernel, kernel_of, verify

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
HOPPER = {"arch": "sm_90a", "dtype": "fp16", "depth": 64, "BN": 64, "num_consumer_warpgroups": 2}
MASKS = {
    "documents": {
        "mask": "key <= query and document[batch, query] == document[batch, key]",
        "parameters": {"document": {"dtype": "int32", "shape": ["batch", "keys"]}},
    },
    "blocks of each head": {
        "mask": "seen[head, row // 64, key // 64] != 0",
        "parameters": {"seen": {"dtype": "int32", "shape": [8, 8, 8]}},
    },
}
CASE = "tiles/square*"
CHANGES = {
    "the list of another tile": Change(r"problem\.tiles_per_head \+ tile\.first_row / kBM",
                                       "problem.tiles_per_head + tile.first_row / kBM / 2"),
    "a block beside the listed one": Change(r"return entry >> 3;",
                                            "return max(0, (entry >> 3) - 1);"),
    "partial blocks called full": Change(r"return !\(entry >> part & 1\);", "return false;"),
    "the bit of another part": Change(r"entry >> part & 1", "entry >> (part ^ 1) & 1"),
    "the range of another part": Change(r"part % 2 == 0", "part % 2 != 5"),
}  # fmt: skip


@pytest.fixture(scope="module", params=MASKS)
def kernel(request) -> Kernel:
    return kernel_of({**HOPPER, **MASKS[request.param], "blocks": "listed"})


@pytest.fixture(scope="module")
def documents() -> Kernel:
    return kernel_of({**HOPPER, **MASKS["documents"], "blocks": "listed"})


@pytest.fixture(scope="module")
def sparse() -> Kernel:
    return kernel_of({**HOPPER, **MASKS["blocks of each head"], "blocks": "listed"})


@pytest.mark.parametrize("case", [CASE, "expression/300x190", "batch/5"])
def test_the_kernel_is_right(kernel, case) -> None:
    verdict, _ = verify(kernel, case, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_mistake_is_found_in_the_numbers(sparse, change) -> None:
    verdict, _ = verify(sparse.with_code(change.apply(sparse.code)), CASE, 3)
    assert verdict.num_cases == 1
    assert {failure.check for case in verdict.cases for failure in case.failures} == {"numbers"}


def one_entry_less(ranges, entries):
    ends = np.maximum(ranges[..., 1] - 1, ranges[..., 0])
    return np.stack([ranges[..., 0], ends], axis=-1), entries


def all_called_full(ranges, entries):
    return ranges, entries | 7


def of_the_neighbour(ranges, entries):
    return np.ascontiguousarray(np.roll(ranges, 1, axis=2)), entries


def nothing(ranges, entries):
    return np.zeros_like(ranges), entries


def a_block_further(ranges, entries):
    return ranges, entries + 8


@pytest.mark.parametrize(
    "change", [one_entry_less, all_called_full, of_the_neighbour, nothing, a_block_further]
)
def test_wrong_lists_are_found_in_the_numbers(documents, change, monkeypatch) -> None:
    made = attention.list_blocks
    monkeypatch.setattr(
        attention,
        "list_blocks",
        lambda *given: tuple(np.asarray(one, np.int32) for one in change(*made(*given))),
    )
    verdict, _ = verify(documents, CASE, 3)
    assert verdict.num_cases == 1
    assert {failure.check for case in verdict.cases for failure in case.failures} == {"numbers"}
