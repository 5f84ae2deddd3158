"""The candidates of attention on Hopper, in their order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from fa4gen.designs.attention_sm90.candidates import candidates
from fa4gen.designs.attention_sm90.tuning import tuning_of
from fa4gen.designs.build import build_plan, candidates_of
from fa4gen.designs.common.candidates import changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_sm90.config import HopperAttentionConfig

    ConfigOf = Callable[..., HopperAttentionConfig]


def test_the_first_is_the_tuned_one_and_blocks_get_narrower(config_of: ConfigOf) -> None:
    first, *others = candidates_of(config_of(mask="causal"))
    assert first == {}
    wide = [one for one in others if "BM" not in one]
    assert {"BN": 96, "num_pv_chunks_in_flight": 2} in wide
    assert all(one["BN"] >= two["BN"] for one, two in pairwise(wide))
    assert wide[-1]["BN"] == 16
    fewer = others[len(wide) :]
    assert all(one["BM"] == 128 for one in fewer)


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


@pytest.mark.parametrize(("depth", "narrows_first"), [(64, False), (96, True)])
def test_a_narrower_block_or_registers_for_the_loader(
    config_of: ConfigOf, depth: int, narrows_first: bool
) -> None:
    """At depth 96, 96 keys took 1.36 ms, 112 with a larger loader 1.44; at 64 it is 6 % worse."""
    tried = list(candidates(config_of(depth=depth, mask="documents")))
    loader = next(i for i, one in enumerate(tried) if one["BN"] == 112 and "registers" in one)
    assert (tried.index({"BN": 96}) < loader) == narrows_first


@pytest.mark.parametrize("depth", [64, 96, 128])
def test_each_block_is_tried_with_both_sizes_of_loader(config_of: ConfigOf, depth: int) -> None:
    tried = list(candidates(config_of(depth=depth, mask="documents")))
    three = [one for one in tried if "BM" not in one]
    larger = {one["BN"] for one in three if "registers" in one}
    assert larger == {one["BN"] for one in three if "registers" not in one}


def test_causal_alibi_has_one_chunk_in_flight_at_depth_96(config_of: ConfigOf) -> None:
    scores = ("alibi", "score * 0.5")
    configs = [config_of(depth=96, mask="causal", score=score) for score in scores]
    assert [tuning_of(config).num_pv_chunks_in_flight for config in configs] == [1, 2]
