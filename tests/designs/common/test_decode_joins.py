"""How many partial results a thread joins: as the kernels' loops have it, thread by thread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.find import find_configs
from fa4gen.designs.common.decode_joins import (
    joined_at_once,
    joined_by_thread,
    most_joined_by_neighbours,
    pieces_to_join,
)
from fa4gen.designs.common.decode_model import SharedKeysPlan
from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.verify.split_cases import small_split_cases
from tests.shipped import plan_of

DECODING = [path for path in find_configs([]) if "decode" in path.stem and "mla" not in path.stem]


def joined(quads: int, threads: int, *pieces: int) -> int:
    """Count the pieces of the thread with most, as ``Sharing`` and ``join_partials`` do it."""
    # the last slice is the largest, if one is
    items = sum(quads - quads * (count - 1) // count for count in pieces)
    log, parts = 0, max(pieces)
    while log < 5 and 1 << log < parts and items << (log + 1) <= threads:
        log += 1
    return max(len(range(own, parts, 1 << log)) for own in range(1 << log))


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([128, 256, 1024, 4096]))
def test_threads_share_pieces_as_in_the_kernels(a: int, b: int, quads: int) -> None:
    assert joined_by_thread(quads, 256, a, b) == joined(quads, 256, a, b)


def joined_by_turn(quads: int, threads: int, at_once: int, *pieces: int) -> int:
    """Return the least over the quads of a round of the most pieces, by the loops of a kernel."""
    slices = [quads - quads * (count - 1) // count for count in pieces]
    items, log, parts = sum(slices), 0, max(pieces)
    while log < 5 and 1 << log < parts and items << (log + 1) <= threads:
        log += 1
    width = threads >> log
    most = [0] * at_once
    for begin in range(0, items, at_once * width):
        for thread in range(threads):
            own, within = thread // width, thread % width
            for i in range(at_once):
                item = begin + i * width + within
                if item < items:
                    count = pieces[0] if item < slices[0] else pieces[1]
                    most[i] = max(most[i], len(range(own, count, 1 << log)))
    return min(most)


@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([128, 256, 1024]),
    st.sampled_from([1, 2, 4]),
)
def test_quads_of_a_round_have_turns_as_in_the_kernels(
    a: int, b: int, quads: int, at_once: int
) -> None:
    expected = joined_by_turn(quads, 256, at_once, a, b)
    assert joined_at_once(quads, 256, at_once, a, b) == expected


def test_the_fewest_pieces_are_taken() -> None:
    # 8 rows of 128 columns by 256 threads: tiles of 3 and 4 pieces leave 150 quads to a CTA
    assert most_joined_by_neighbours(256, 256, 8) == (4, 3)
    assert pieces_to_join(256, 256, 1, 8) == (2, 8)
    # 64 rows of 64 columns, two quads at once: next to two pieces only the first of them has four
    assert joined_at_once(1024, 256, 2, 2, 4) == 2
    assert pieces_to_join(1024, 256, 2, 4) == (3, 4)
    # twice the columns for half of the threads: all are joined, by slices of 7 and 8 pieces
    assert most_joined_by_neighbours(512, 128, 8) == (8, 7)


@pytest.mark.parametrize("path", DECODING, ids=lambda path: path.stem)
def test_the_case_has_tiles_of_these_pieces(path) -> None:
    plan = plan_of(path)
    assert isinstance(plan, SharedKeysPlan)
    (case,) = (one for one in small_split_cases(plan) if one.name == "split/joined")
    group = case.query_heads // case.key_heads
    size = ProblemSize(case.batch, case.query_heads, group, 1, case.key_rows)
    ctas = plan_schedule(plan, size, case.multiprocessors or 4).grid
    if plan.split_blocks:
        assert case.key_rows // (plan.split_blocks * plan.BN) > plan.partials_at_once
        return
    keys = [keys for _, keys in case.sequences for _ in range(case.key_heads)]
    share = sum(keys) // ctas
    assert share * ctas == sum(keys)
    begins = [sum(keys[:i]) for i in range(len(keys))]
    pieces = [
        (begin + count - 1) // share - begin // share + 1
        for begin, count in zip(begins, keys, strict=True)
    ]
    if plan.key_lengths:
        assert tuple(pieces[:2]) == plan.pieces_to_join
    else:
        _, least = plan.neighbours_joined
        assert pieces[:2] == [least, least + 1]
