"""The candidates of a compile walk for attention on Blackwell, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.designs.build import build_plan, candidates_of
from fa4gen.designs.registry import design_for
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.common.candidates import Changes

    ConfigOf = Callable[..., BlackwellAttentionConfig]


def tried(config: BlackwellAttentionConfig) -> list[Changes]:
    """Those that can be planned."""
    found = []
    for changes in candidates_of(config):
        try:
            build_plan(config, changes)
        except ConfigError:
            continue
        found.append(changes)
    return found


def test_two_wide_tiles_come_first(config_of: ConfigOf) -> None:
    first, same, fewer, loader, narrower, *rest = tried(config_of())
    assert (first, same) == ({}, {"BM": 256, "BN": 128})
    assert fewer == {"BM": 256, "BN": 128, "exp2_fma_share": 0.0}
    assert loader["registers"] == {"softmax": 200, "correction": 56, "other": 56}
    assert narrower == {"BM": 256, "BN": 96}
    rows = [changes["BM"] for changes in rest]
    single = rows.index(128)
    assert rows == [256] * single + [128] * (len(rows) - single)


@pytest.mark.parametrize(
    ("keys", "shares"),
    [
        ({}, {0.0}),
        ({"dtype": "fp8_e4m3"}, {0.125, 0.0}),
        ({"arch": "sm_103a"}, {0.0}),  # only with other registers: it is the plan's own
    ],
)
def test_shares_are_smaller_than_the_plans(
    config_of: ConfigOf, keys: dict[str, object], shares: set[float]
) -> None:
    changes = tried(config_of(**keys))
    assert {one["exp2_fma_share"] for one in changes if "exp2_fma_share" in one} == shares


GIVEN: dict[str, object] = {
    "BN": 64,
    "BM": 128,
    "exp2_fma_share": 0.5,
    "registers": {"softmax": 184, "correction": 64, "other": 80},
}


@pytest.mark.parametrize("key", GIVEN)
def test_what_the_config_gives_stays(config_of: ConfigOf, key: str) -> None:
    config = config_of(**{key: GIVEN[key]})
    assert not any(key in changes for changes in tried(config))


def test_nothing_is_tried_where_all_is_given(config_of: ConfigOf) -> None:
    assert set(GIVEN) == set(design_for(config_of()).tuned_keys)
    assert tried(config_of(**GIVEN)) == [{}]


@pytest.mark.parametrize("keys", [{}, {"depth": 256}, {"dtype": "fp8_e4m3"}, {"BN": 64}])
def test_lists_are_short(config_of: ConfigOf, keys: dict[str, object]) -> None:
    assert 4 <= len(tried(config_of(**keys))) <= 32
