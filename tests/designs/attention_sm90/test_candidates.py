"""What is tried of attention on Hopper, and in which order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from fa4gen.designs.build import build_plan, candidates_of
from fa4gen.designs.common.candidates import changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.config.schema import AttentionConfig

    ConfigOf = Callable[..., AttentionConfig]


def test_the_first_is_the_tuned_one_and_blocks_get_narrower(config_of: ConfigOf) -> None:
    first, *others = candidates_of(config_of(mask="causal"))
    assert first == {}
    wide = [one for one in others if "num_consumer_warpgroups" not in one]
    assert {"BN": 96, "num_pv_chunks_in_flight": 2} in wide
    assert all(one["BN"] >= two["BN"] for one, two in pairwise(wide))
    assert wide[-1]["BN"] == 16
    fewer = others[len(wide) :]
    assert all(one["num_consumer_warpgroups"] == 2 for one in fewer)


@pytest.mark.parametrize("keys", [{"BN": 64}, {"registers": {"producer": 32, "consumer": 160}}])
def test_what_is_given_stays(config_of: ConfigOf, keys: dict[str, object]) -> None:
    tried = list(candidates_of(config_of(**keys)))
    assert not any(key in changes for key in keys for changes in tried)
    assert len({str(changes) for changes in tried}) == len(tried) > 1


@pytest.mark.parametrize("depth", [64, 96, 128, 192, 256])
def test_what_leaves_the_most_room_has_a_plan(config_of: ConfigOf, depth: int) -> None:
    config = config_of(depth=depth)
    for changes in candidates_of(config):
        plan = build_plan(config, changes)
        assert build_plan(changed(config, changes)).BN == plan.BN
