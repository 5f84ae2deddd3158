from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.designs.common.model import SharedRegion
from fa4gen.designs.common.shared_memory import align_up, lay_out

alignments = st.sampled_from([1, 8, 16, 128, 1024])
regions = st.builds(
    lambda alignment, slots, slot_bytes: SharedRegion(
        "any", 0, slots * slot_bytes, alignment, slots, ""
    ),
    alignments,
    st.integers(1, 4),
    st.integers(1, 5000),
)


@pytest.mark.parametrize(("value", "aligned"), [(0, 0), (1, 16), (15, 16), (16, 16), (17, 32)])
def test_align_up(value: int, aligned: int) -> None:
    assert align_up(value, 16) == aligned


@given(st.lists(regions, min_size=1, max_size=6))
def test_regions_are_packed_in_order_each_at_its_alignment(given_: list[SharedRegion]) -> None:
    laid_out = lay_out(given_)
    assert [(r.bytes, r.alignment, r.slots) for r in laid_out] == [
        (r.bytes, r.alignment, r.slots) for r in given_
    ]
    assert laid_out[0].offset == 0
    for before, behind in itertools.pairwise(laid_out):
        assert behind.offset % behind.alignment == 0
        assert 0 <= behind.offset - before.end < behind.alignment
