"""Masks written as conditions: their interval, their test, and what kernels make of them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fa4gen.config.load import load_mapping
from fa4gen.errors import ConfigError
from fa4gen.masks import Causal, Chunked, SlidingWindow, mask_in, mask_of
from fa4gen.masks.expression import ExpressionMask, parse_mask
from tests.expressions.drawn import CONDITIONS, meaning
from tests.masks.kernel_text import COMPILER, build_mask
from tests.masks.test_kernel_text import DESIGNS

CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
MASKS = [
    "key <= query and (query - key < 100 or key < 4)",
    "key <= query or key < 150",
    "query - key < 100",
    "key >= 70",
    "key % 3 == 0",
    "query % 3 == 0",
    "key >= 70 and key < 300",
    "(query - key) % 3 == 0 and key <= query",
    "query // 100 == key // 100 or key % 128 == 0",
    "query % 70 != key % 30 and abs(query - key) < 200",
    "key // 64 <= query // 64 - 1 or key // 64 == query // 64 and key % 2 == 0",
    "key <= 2147483647",
    "key >= -2147483647 and key <= query",
    "key <= query + 1879048191 and key >= query - 1879048191",
]


def parsed(text: str) -> ExpressionMask:
    try:
        return parse_mask(text)
    except ValueError:
        assume(False)
        raise


@given(text=CONDITIONS)
def test_no_visible_key_is_outside_the_hull_and_an_exact_hull_is_the_mask(text) -> None:
    mask, sees = parsed(text), meaning(text)
    first_before, end_before = mask.bounds(-31, 30)
    for query in range(-30, 40, 3):
        first, end = mask.bounds(query, 30)
        assert first >= first_before
        assert end >= end_before
        first_before, end_before = first, end
        seen = [key for key in range(30) if sees(query, key)]
        assert all(first <= key < end for key in seen)
        within = list(range(max(0, first), min(end, 30)))
        visible = mask.sees_within(query, np.array(within, np.int64), np)
        tested = np.array(within)[np.broadcast_to(visible, len(within)).astype(bool)].tolist()
        assert tested == seen
        if mask.TEST is None:
            assert within == seen


@given(text=CONDITIONS, rows=st.integers(1, 12), keys=st.integers(1, 12))
def test_all_of_a_rectangle_is_seen_where_that_is_said(text, rows, keys) -> None:
    mask, sees = parsed(text), meaning(text)
    positions, columns = range(3, 3 + rows), range(2, 2 + keys)
    if mask.TEST is not None and mask.sees_all(positions, columns):
        first, end = mask.bounds(positions[0], 50)[0], mask.bounds(positions[-1], 50)[1]
        assert all(
            sees(query, key) for query in positions for key in columns
            if mask.bounds(query, 50)[0] <= key < mask.bounds(query, 50)[1]
        )  # fmt: skip
        # a condition that no key meets may have ends in any order
        assert first <= end or not any(sees(query, key) for query in positions for key in range(50))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("key <= query", Causal()),
        ("not (key > query)", Causal()),
        ("query - key >= 0", Causal()),
        ("key < query + 1", Causal()),
        ("key <= query and query - key < 128", SlidingWindow(127, 0)),
        ("0 <= query - key <= 64", SlidingWindow(64, 0)),
        ("abs(query - key) <= 30", SlidingWindow(30, 30)),
        ("-8 < key - query < 3", SlidingWindow(7, 2)),
        ("key <= query and key // 512 == query // 512", Chunked(512)),
        ("query // 96 == key // 96 and query >= key", Chunked(96)),
    ],
)
def test_a_condition_that_means_a_named_mask_is_that_mask(text, named) -> None:
    assert mask_of(text) == named
    plain = load_mapping({**CONFIG, "mask": text}, "x").config
    assert plain.resolved_mask == named


@pytest.mark.parametrize(
    ("text", "first", "last", "tested"),
    [
        ("key <= query or key < 16", None, "max({position}, 15)", None),
        ("key // 100 <= query // 100", None, "100 * floor_divide({position}, 100) + 99", None),
        ("key < 2 * query", None, "2 * ({position}) - 1", None),
        ("key < 5 and key >= query - 3", "{position} - 3", "4", None),
        ("key <= query and key % 2 == 0", None, "{position}", "{key} % 2 == 0"),
        ("key <= query and (query - key < 9 or key < 4)", None, "{position}",
         "{query} - {key} < 9 || {key} < 4"),
        ("query - key < 9 or query - key > 20", None, None,
         "{query} - {key} < 9 || {query} - {key} > 20"),
        ("key >= -query", None, None, "{key} >= -{query}"),
        ("key <= query or key <= query + 3 or key < 16", None, "max({position} + 3, 15)", None),
        ("key < 9 or key <= query or key // 1 <= query // 1", None, "max(8, {position})", None),
        ("key <= query and key < 9 and key < query - 4", None, "min({position} - 5, 8)", None),
    ],
)  # fmt: skip
def test_what_bounds_the_keys_is_not_tested_again(text, first, last, tested) -> None:
    mask = parse_mask(text)
    assert [first, last, tested] == [mask.FIRST, mask.LAST, mask.TEST]


@pytest.mark.parametrize(
    ("text", "by_blocks"),
    [
        ("seen[row // 128, key // 128] != 0", True),
        ("seen[row // 256, key // 128] != 0 or head < 2", True),
        ("seen[row // 64, key // 128] != 0", False),
        ("seen[row // 128, key // 128] != 0 and key < 500", False),
        # a query's index is that of its diagonal, which may be anywhere in a block
        ("seen[query // 128, key // 128] != 0", False),
    ],
)
def test_masks_by_whole_blocks_are_known(text: str, by_blocks: bool) -> None:
    assert parse_mask(text).is_by_blocks(128, 128) is by_blocks


def test_pairs_are_counted() -> None:
    text = "key <= query and (query - key < 10 or key < 4)"
    sees = meaning(text)
    assert parse_mask(text).pairs(50) == sum(sees(q, k) for q in range(50) for k in range(50))


def test_a_recorded_condition_is_read_again() -> None:
    mask = mask_of("key <= query or key < 16")
    assert mask_in({"mask": mask.name, **mask.numbers()}) == mask
    assert mask.words == "key <= query or key < 16"


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ("key =< query", "is not an expression"),
        ("key <= qury", "did you mean query?"),
        ("casual", "causal"),
        ("key * key > 3", "32 bits"),
    ],
)
def test_a_wrong_condition_is_refused_at_its_place(mask, words) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        load_mapping({**CONFIG, "mask": mask}, "x")


# ---- in kernels ----

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a host compiler for C++")


@needs_compiler
@pytest.mark.parametrize("design", ["hopper", "blackwell depth 512"])
@pytest.mark.parametrize("text", MASKS)
def test_kernels_hide_what_the_condition_hides(design, text, tmp_path) -> None:
    built = build_mask({"kernel": "attention", **DESIGNS[design], "mask": text}, tmp_path)
    assert disagreements(built, text) == []


@needs_compiler
@pytest.mark.parametrize("design", ["hopper depth 512", "blackwell"])
def test_all_designs_have_the_same_text(design, tmp_path) -> None:
    built = build_mask({"kernel": "attention", **DESIGNS[design], "mask": MASKS[0]}, tmp_path)
    assert disagreements(built, MASKS[0]) == []


MISTAKES = [
    ("key <= query and (query - key < 250 or key < 4)", "last_query - first_key < 250",
     "last_query - first_key < 300", "needs_mask"),
    ("key <= query and (query - key < 100 or key < 4)", "last_key < 4", "first_key < 4",
     "needs_mask"),
    ("key <= query and (query - key < 100 or key < 4)", "query - key < 100 ||",
     "query - key < 101 ||", "mask_scores"),
    ("(query - key) % 3 == 1", "left + (left < 0 ? divisor : 0)", "left",
     "mask_scores"),
    ("key <= query or key < 150", "max(last_row + diagonal, 149)", "max(last_row + diagonal, 90)",
     "visible_blocks"),
]  # fmt: skip


@needs_compiler
@pytest.mark.parametrize(("text", "old", "new", "function"), MISTAKES)
def test_a_mistake_in_the_text_is_found(text, old, new, function, tmp_path) -> None:
    config = {"kernel": "attention", **DESIGNS["hopper"], "mask": text}
    assert function in disagreements(build_mask(config, tmp_path, (old, new)), text)


@cache
def seen_by(text: str, query_rows: int, key_rows: int, first_row: int, rows: int):
    """(rows, keys): the condition of every pair, also for rows past the end."""
    sees = meaning(text)
    return np.array(
        [[bool(sees(row + key_rows - query_rows, key)) for key in range(key_rows)]
         for row in range(first_row, first_row + rows)]
    )  # fmt: skip


def disagreements(built, text: str) -> list[str]:
    """Which functions of a kernel are not as the condition has it, over several sizes."""
    found = set()
    n = built.block_keys
    for query_rows, key_rows, first_row in (
        (500, 500, 0), (500, 500, 190), (300, 650, 128), (650, 300, 320), (90, 411, 64),
    ):  # fmt: skip
        rows = range(first_row, min(first_row + built.rows, query_rows))
        seen = seen_by(text, query_rows, key_rows, first_row, built.rows)
        in_blocks = {int(key) // n for key in np.flatnonzero(seen[: len(rows)].any(axis=0))}
        if not in_blocks <= set(built.blocks(query_rows, key_rows, first_row, built.rows)):
            found.add("visible_blocks")
        for block in range(-(-key_rows // built.keys)):
            keys = slice(block * built.keys, min((block + 1) * built.keys, key_rows))
            whole = keys.stop - keys.start == built.keys and seen[:, keys].all()
            if not whole and not built.needs_mask(query_rows, key_rows, first_row, block):
                found.add("needs_mask")
            hidden = built.hidden(query_rows, key_rows, first_row, block)
            shown = ~hidden[:, : keys.stop - keys.start]
            if (shown != seen[:, keys]).any() or not hidden[:, keys.stop - keys.start :].all():
                found.add("mask_scores")
    return sorted(found)
