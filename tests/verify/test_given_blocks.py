"""The lists that verify draws, and the mask that its reference makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.expressions.places import Places
from fa4gen.masks.given_blocks import SEEN_BLOCKS
from fa4gen.verify.given_blocks import draw_blocks

KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
LENGTHS = ((150, 200), (150, 0), (150, 333))


def plan_of(**keys):
    blocks = {"rows": 64, "keys": 128, **keys.pop("blocks", {})}
    return build_plan(load_mapping({**KEYS, "blocks": blocks, **keys}, "probe").config)


@pytest.mark.parametrize("keys", [{}, {"batching": "ragged"}, {"blocks": {"heads": "key"}}])
def test_lists_name_the_blocks_that_the_reference_sees(keys) -> None:
    plan = plan_of(**keys)
    drawn = draw_blocks(plan, LENGTHS, 4, 2, np.random.default_rng(5))
    offsets, indices, seen = drawn["block_offsets"], drawn["block_indices"], drawn[SEEN_BLOCKS]
    heads = 2 if "blocks" in keys else 4
    assert seen.shape == (3, heads, 3, 3)
    assert len(offsets) == 3 * heads * 3 + 1
    kinds = set()
    for number in range(3 * heads * 3):
        sequence, head, row = np.unravel_index(number, (3, heads, 3))
        if plan.is_ragged:
            head, sequence, row = np.unravel_index(number, (heads, 3, 3))
        blocks = -(-LENGTHS[sequence][1] // 128)
        entries = indices[offsets[number] : offsets[number + 1]]
        named = entries[(entries >= 0) & (entries < blocks)]
        assert set(named) == set(np.flatnonzero(seen[sequence, head, row]))
        kinds |= {"twice"} if len(set(named)) < len(named) else set()
        kinds |= {"none"} if len(named) < len(entries) else set()
        kinds |= {"out of order"} if (np.diff(named) < 0).any() else set()
        kinds |= {"empty"} if not len(named) and blocks else set()
        kinds |= {"all"} if len(set(named)) == blocks > 1 else set()
    assert kinds == {"twice", "none", "out of order", "empty", "all"}


def test_the_mask_of_a_reference_is_that_of_the_config_and_the_lists() -> None:
    plan = plan_of(mask="causal", blocks={"heads": "key"})
    seen = np.zeros((1, 2, 2, 2), np.bool_)
    seen[0, 1, 0, 0] = seen[0, 1, 1] = True
    row, key = np.arange(128)[:, None], np.arange(256)[None]
    places = Places(row + 128, key, row, 3, 1, 0, {SEEN_BLOCKS: seen})
    first, end = plan.seen_mask.bounds(row + 128, 256)
    found = plan.seen_mask.sees_at(places, np) & (first <= key) & (key < end)
    assert (found == ((key <= row + 128) & ((row >= 64) | (key < 128)))).all()
