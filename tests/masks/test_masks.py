"""The masks' Python against their definition, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.masks import MASKS, Causal, NoMask, SlidingWindow, mask_in, mask_of
from fa4gen.masks.mask import Mask
from tests.masks.definitions import SEES, VALUES, drawn, sees

SMALL = st.integers(1, 9)
ANY = drawn(SMALL)


def test_every_mask_has_a_definition_and_a_name_of_its_own() -> None:
    names = [kind.name for kind in MASKS]
    assert set(SEES) == set(VALUES) == set(names)
    assert len(set(names)) == len(names)
    assert len({kind.WORD for kind in MASKS}) == len(names)


@given(mask=ANY, rows=st.integers(0, 25), keys=st.integers(0, 25))
def test_a_row_sees_the_keys_of_the_definition(mask, rows, keys) -> None:
    for row in range(rows):
        expected = [key for key in range(keys) if sees(mask, row, key, rows, keys)]
        assert list(mask.seen(row, rows, keys)) == expected


@given(mask=ANY, rows=st.integers(0, 25), keys=st.integers(0, 25))
def test_arrays_give_what_numbers_give(mask, rows, keys) -> None:
    positions = np.arange(rows) + keys - rows
    first, end = mask.bounds(positions, keys)
    assert [mask.bounds(int(position), keys) for position in positions] == [
        *zip(first.tolist(), end.tolist(), strict=True)
    ]


@given(mask=ANY, position=st.integers(-30, 30))
def test_no_end_falls_from_one_position_to_the_next(mask, position) -> None:
    now, then = mask.bounds(position, 100), mask.bounds(position + 1, 100)
    assert now[0] <= then[0]
    assert now[1] <= then[1]


@given(mask=ANY, position=st.integers(0, 10**6))
def test_the_reach_and_the_span_bound_what_is_seen(mask, position) -> None:
    first, end = mask.bounds(position, position + 10**6)
    if mask.span is not None:
        assert end - first <= mask.span
    if mask.FIRST is not None:
        assert first >= min(0, position - mask.reach)
    if mask.LAST is not None:
        assert end - 1 <= position + mask.reach


@given(mask=ANY, rows=st.integers(1, 40))
def test_pairs_are_those_that_are_visible(mask, rows) -> None:
    counted = Mask.pairs(mask, rows)
    assert counted == sum(sees(mask, i, j, rows, rows) for i in range(rows) for j in range(rows))
    if not isinstance(mask, Causal):  # by convention half
        assert mask.pairs(rows) == counted


@given(mask=ANY)
def test_a_recorded_mask_is_read_again(mask) -> None:
    assert mask_in({"mask": mask.name, **mask.numbers(), "depth": 64}) == mask


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_words_name_the_mask(value) -> None:
    from fa4gen.designs.registry import validated

    keys = {"kernel": "attention", "name": "x", "arch": "sm_90a", "dtype": "bf16", "depth": 64}
    mask = validated({**keys, "mask": value}).resolved_mask
    assert mask_of("none") == NoMask()
    for number in mask.numbers().values():
        assert str(number) in mask.words
    assert mask.short
    assert mask.name in VALUES


def test_later_rows_see_more_where_that_is_said() -> None:
    assert [kind.name for kind in MASKS if kind.IN_ORDER] == ["causal"]
    assert SlidingWindow(3, 0).pairs(10) < Causal().pairs(10)
