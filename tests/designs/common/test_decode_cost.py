"""The cost of shares: what the busiest CTA reads, against shares that are counted one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from fa4gen.designs.common.decode_cost import MostKeys, cost_lines, most_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan


def dealt(tiles: int, keys: int, ctas: int, step: int) -> int:
    """Steps of all tiles, dealt to the CTAs one after the other, in keys."""
    shares = [0] * ctas
    for place in range(tiles * -(-keys // step)):
        shares[place % ctas] += step
    return max(shares)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 30))
def test_the_busiest_cta_of_dealt_steps(tiles: int, blocks: int, ctas: int) -> None:
    keys = 32 * blocks
    found = most_keys(tiles, keys, ctas, unit=32, split=keys)
    assert found.whole_tiles == found.fixed_splits == dealt(tiles, keys, ctas, keys)
    assert found.even_shares == dealt(tiles, keys, ctas, 32)
    assert found.even_shares <= found.whole_tiles


def test_one_long_sequence() -> None:
    assert most_keys(8, 8192, 132, unit=32, split=1024) == MostKeys(8192, 512, 1024)
    assert most_keys(1, 33, 132, unit=32, split=1024) == MostKeys(33, 32, 33)


def test_explain_shows_it(plan_of: Callable[..., AttentionPlan]) -> None:
    plan = plan_of(pack_heads=True, split_keys={"keys": 2048})
    *_, (title, lines) = plan.explained
    assert title == "Shares of the keys"
    assert lines == cost_lines(132, unit=32, split=2048)
    assert lines[1].split()[-2:] == ["of", "2048"]
    assert lines[2].split() == ["1", "x", "8192", "8192", "512", "2048"]
