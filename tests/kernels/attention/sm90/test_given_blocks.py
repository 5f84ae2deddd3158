"""Kernels over blocks that a call names: right, and refused with a mistake in bits or walk."""

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
    program_of,
    ptx_of,
    verify,
)

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
KEYS = {"arch": "sm_90a", "dtype": "fp16", "depth": 64, "blocks": {"rows": 64, "keys": 64}}
PAGED = {"batching": "ragged", "keys": "paged", "page_size": 64}
KINDS = {
    "key heads, rows of 128": {"blocks": {"rows": 128, "keys": 64, "heads": "key"}},
    "blocks of 128, causal": {"blocks": {"rows": 128, "keys": 128}, "mask": "causal"},
    "ragged": {"batching": "ragged"},
    "pages of key heads": {**PAGED, "blocks": {"rows": 64, "keys": 64, "heads": "key"}},
    "lengths and sinks": {"key_lengths": True, "sinks": True, "mask": {"sliding_window": 100}},
}
SQUARE, GQA = "tiles/square*", "gqa/3"
IN_NUMBERS = {
    "the bit of the block after": Change(r"1u << block % kBlocksOfWord",
                                         "1u << (block + 1) % kBlocksOfWord"),
    "the list of other rows": Change(r"(sequence\.lists) \+ unit\.row / kListRows",
                                     r"\1 + max(0, unit.row / kListRows - 1)"),
    "the list of another head": Change(r"head = first_head \+ unit\.head;", "head = first_head;"),
    "a block twice counts twice": Change(r"atomicOr\(", "atomicAdd("),
    "a block past the keys": Change(r"block < seen\.end && ", ""),
    "the end of the keys not masked": Change(r"return ends;", "return false;"),
    "a block too low": Change(r"block = word \* kBlocksOfWord \+ bit;",
                              "block = max(0, word * kBlocksOfWord + bit - 1);"),
    "values of another block": Change(r"load_values\(named\);", "load_values(max(0, named - 1));"),
}  # fmt: skip
REFUSED = {
    "rows of the unit before": Change(r"last \? sequence\.number : unit\.row;",
                                      "last ? sequence.number : max(0, unit.row - 64);"),
    "others' blocks not counted": Change(r"others \+= __popc\(all\);", ""),
    "blocks in front not counted": Change(r"others \+= __popc\(all >> bit\) - 1;", ""),
    "only the last warpgroup's loaded": Change(r"own\[kAllWarpgroups\] \|= own\[w\];",
                                               "own[kAllWarpgroups] = own[w];"),
    "others' keys not released": Change(r"(void skip_block[^}]*?)release\(keys\(\)\);", r"\1"),
    "others' values not released": Change(r"(void skip_block[^}]*?)release\(values\(\)\);", r"\1"),
    "blocks at the end not passed": Change(r"while \(kv\.uses != end_use\) skip_block\(\);", ""),
    "P.V in flight at a jump": Change(r"(void step_over[^}]*?)finish_value\(\);", r"\1"),
}  # fmt: skip


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_of(KEYS)


@pytest.mark.parametrize("case", [SQUARE, GQA, "blocks/2181", "empty/no_keys"])
def test_the_kernel_is_right(kernel, case) -> None:
    assert_right(kernel, case)


@pytest.mark.parametrize("keys", KINDS.values(), ids=KINDS)
def test_a_kind_is_right(keys) -> None:
    kernel = kernel_of({**KEYS, **keys})
    for case in ("gqa/3", "ragged/edges") if kernel.plan.has_tile_lengths else (GQA, SQUARE):
        assert_right(kernel, case)


@pytest.mark.parametrize("change", IN_NUMBERS.values(), ids=IN_NUMBERS)
def test_a_mistake_is_found_in_the_numbers(kernel, change) -> None:
    assert_numbers_differ(kernel, change, (SQUARE, GQA))


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_a_mistake_of_the_walk_is_refused(kernel, change) -> None:
    """In the numbers, or by a finding: the walk decides which slot is waited for."""
    changed = kernel.with_code(change.apply(kernel.code))
    for case in (SQUARE, "blocks/2181"):
        verdict, _ = verify(changed, case, 3)
        assert verdict.num_cases == 1
        if not verdict.passed:
            return
    raise AssertionError("passed")


def test_no_list_names_a_block(kernel, monkeypatch) -> None:
    draw = attention.draw_blocks

    def nothing(*arguments):
        lists = draw(*arguments)
        lists["block_indices"][...] = -1
        lists[attention.SEEN_BLOCKS][...] = False
        return lists

    monkeypatch.setattr(attention, "draw_blocks", nothing)
    assert_right(kernel, SQUARE)


def bits_of(plan, offsets, indices, *, rows: int, keys: int) -> np.ndarray:
    """Return what the launch before sets for one head, by NumPy: (tiles, words, 4)."""
    warpgroups, blocks, units = plan.BM // 64, -(-keys // plan.BN), -(-rows // 64)
    tiles = -(-units // warpgroups)
    seen = np.zeros((tiles * warpgroups, -(-blocks // 32) * 32), np.bool_)
    for unit in range(units):
        named = indices[offsets[unit] : offsets[unit + 1]]
        seen[unit, named[(named >= 0) & (named < blocks)]] = True
    each = np.packbits(seen, axis=-1, bitorder="little").view(np.uint32)
    each = each.reshape(tiles, warpgroups, -1)
    words = np.zeros((tiles, each.shape[2], 4), np.uint32)
    words[..., :warpgroups] = each.swapaxes(1, 2)
    words[..., 3] = np.bitwise_or.reduce(each, axis=1)
    return words[::-1]  # the last rows go first


@pytest.mark.parametrize("keys", [1, 64 * 31, 64 * 33 + 5, 64 * 32 * 128 + 1, 64 * 9000])
def test_the_launch_before_sets_the_bits_of_numpy(kernel, keys) -> None:
    plan, rng, rows = kernel.plan, np.random.default_rng(keys), 400
    offsets = np.cumsum([0, *rng.integers(0, 60, 7)]).astype(np.int32)
    indices = rng.integers(-3, keys // 64 + 9, offsets[-1]).astype(np.int32)
    expected = bits_of(plan, offsets, indices, rows=rows, keys=keys)
    tiles, words = expected.shape[:2]
    found = np.full(tiles * (12 + 4 * words), -1, np.int32)
    values = {
        "given_block_offsets": offsets, "given_block_indices": indices, "tile_list": found,
        "batch": 1, "query_heads": 1, "heads_per_key_head": 1, "query_rows": rows,
        "key_rows": keys, "num_tiles": tiles,
    }  # fmt: skip
    listing = plan.tile_list
    report = program_of(ptx_of(kernel)).launch(
        listing.entry_point,
        grid=tiles,
        block=listing.threads,
        args=[
            value if isinstance(value, np.ndarray) else np.int32(value)
            for value in (values[row.name] for row in listing.parameters)
        ],
    )
    assert not report.findings
    assert (found[12 * tiles :].view(np.uint32).reshape(expected.shape) == expected).all()
    counts = found[: 12 * tiles].reshape(tiles, 3, 4)[:, 2]
    assert (counts == np.bitwise_count(expected).sum(axis=1)).all()
