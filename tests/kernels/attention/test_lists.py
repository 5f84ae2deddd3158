"""Kernels that walk lists of blocks: right, and refused with mistakes in kernel or lists."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify import attention
from tests.kernels.source_mutation import (
    Change,
    Kernel,
    assert_numbers_differ,
    assert_right,
    kernel_of,
    verify,
)

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
HOPPER = {"arch": "sm_90a", "dtype": "fp16", "depth": 64, "BN": 64, "BM": 128}
MASKS = {
    "documents": {
        "mask": "key <= query and document[batch, query] == document[batch, key]",
        "parameters": {"document": {"dtype": "int32", "shape": ["batch", "keys"]}},
    },
    "blocks of each head": {
        "mask": "seen[head, row // 64, key // 64] != 0",
        "parameters": {"seen": {"dtype": "int32", "shape": [8, 8, 8]}},
    },
    "parts of blocks": {  # with gaps between the first and the last key of a row
        "mask": "seen[head, row // 40, key // 40] != 0",
        "parameters": {"seen": {"dtype": "int32", "shape": [8, 16, 16]}},
    },
}
BLACKWELL = {"arch": "sm_100a", "dtype": "fp16", "depth": 64}
CASE = "tiles/square*"
CHANGES = {
    "another last block": Change(r"last_block = numbers\.y;",
                                 "last_block = max(0, numbers.y - 1);"),
    "keys of the row before": Change(r"tile, thread_row \+ 8 \* r\)",
                                     "tile, max(0, thread_row + 8 * r - 1))"),
    "a key too many": Change(r"scores_before\(keys\.y\)", "scores_before(keys.y + 1)"),
    "another block read ahead": Change(r"max\(block - 1, own\.begin\)",
                                       "max(block - 2, own.begin)", times=2),
    "tested keys in another order": Change(r"own / 2 \* 8 \+ own % 2;", "own;"),
    "a block beside the listed one": Change(r"return entry >> 6;",
                                            "return max(0, (entry >> 6) - 1);"),
    "partial blocks not tested": Change(r"return !\(entry >> part & 8\);", "return false;"),
    "the bits of another part": Change(r"entry >> part & ", "entry >> (part ^ 1) & ", times=2),
}  # fmt: skip


@pytest.fixture(scope="module", params=MASKS)
def kernel(request) -> Kernel:
    return kernel_of({**HOPPER, **MASKS[request.param], "blocks": "listed"})


@pytest.fixture(scope="module")
def documents() -> Kernel:
    return kernel_of({**HOPPER, **MASKS["documents"], "blocks": "listed"})


@pytest.fixture(scope="module")
def sparse() -> Kernel:
    return kernel_of({**HOPPER, **MASKS["parts of blocks"], "blocks": "listed"})


@pytest.mark.parametrize("case", [CASE, "expression/300x190", "batch/5"])
def test_the_kernel_is_right(kernel, case) -> None:
    assert_right(kernel, case)


@pytest.fixture(scope="module")
def blackwell() -> Kernel:
    return kernel_of({**BLACKWELL, **MASKS["blocks of each head"], "blocks": "listed"})


@pytest.mark.parametrize("case", ["ring/*", "gqa/3"])
def test_the_kernel_for_blackwell_is_right(blackwell, case) -> None:
    assert_right(blackwell, case)


@pytest.mark.parametrize(
    "change",
    [
        Change(r"return !\(entry >> part & 1\);", "return false;"),
        Change(r"listed = next;", "listed = max(0, next - 1);"),
    ],
    ids=["partial blocks called full", "a block beside"],
)
def test_a_mistake_for_blackwell_is_found_in_the_numbers(blackwell, change) -> None:
    assert_numbers_differ(blackwell, change, ("ring/*",))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_mistake_is_found_in_the_numbers(sparse, change) -> None:
    assert_numbers_differ(sparse, change, (CASE,))


def test_the_list_of_another_head_is_found_in_the_numbers(sparse) -> None:
    change = Change(r"const int64 list = [^;]*;", "const int64 list = 0;", times=2)
    assert_numbers_differ(sparse, change, ("gqa/3",))


def one_entry_less(lists):
    ranges = lists["block_ranges"][..., 2:, :]
    ranges[..., 1] = np.maximum(ranges[..., 1] - 1, ranges[..., 0])


def all_called_full(lists):
    lists["block_entries"] |= 63


def all_keys_of_rows(lists):
    lists["row_keys"][...] = 0, 1 << 20


def of_the_neighbour(lists):
    ranges = lists["block_ranges"][..., 2:, :]
    ranges[...] = np.roll(ranges, 1, axis=2)


def of_the_next_row(lists):
    lists["row_keys"][...] = np.roll(lists["row_keys"], -1, axis=2)


def nothing(lists):
    lists["block_ranges"][..., 2:, :] = 0


def a_block_further(lists):
    lists["block_entries"] += 64


def a_tile_twice(lists):
    ranges = lists["block_ranges"]
    ranges[..., 0, :, :] = ranges[..., 1, :, :]


CHANGED = [
    one_entry_less,
    all_called_full,
    all_keys_of_rows,
    of_the_neighbour,
    of_the_next_row,
    nothing,
    a_block_further,
    a_tile_twice,
]


@pytest.mark.parametrize("change", CHANGED)
def test_wrong_lists_are_found_in_the_numbers(documents, change, monkeypatch) -> None:
    made = attention.list_blocks

    def changed(*given):
        lists = made(*given)
        change(lists)
        return lists

    monkeypatch.setattr(attention, "list_blocks", changed)
    verdict, _ = verify(documents, CASE, 3)
    assert verdict.num_cases == 1
    found = {failure.check for case in verdict.cases for failure in case.failures}
    # Two CTAs that write the same tile are a race, found before any number is compared.
    assert found == {"emulator" if change is a_tile_twice else "numbers"}


def test_any_order_of_tiles_is_right(sparse, monkeypatch) -> None:
    made = attention.list_blocks

    def reversed_order(*given):
        lists = made(*given)
        lists["block_ranges"] = np.ascontiguousarray(lists["block_ranges"][..., ::-1, :, :])
        return lists

    monkeypatch.setattr(attention, "list_blocks", reversed_order)
    assert_right(sparse, CASE)
