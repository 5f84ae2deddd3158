"""The candidates of a compile walk at depth 512 on Blackwell, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.designs.attention_sm100_depth512.candidates import SPLITS
from fa4gen.designs.build import build_plan, candidates_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig

    ConfigOf = Callable[..., BlackwellPairAttentionConfig]

GIVEN: dict[str, object] = {
    "registers": {"softmax": 216, "correction": 96, "other": 48},
    "exp2_fma_share": 0.5,
}


@pytest.mark.parametrize("keys", [{}, {"dtype": "fp8_e4m3"}, {"key_lengths": True}])
def test_other_splits_are_tried(config_of: ConfigOf, keys: dict[str, object]) -> None:
    config = config_of(**keys)
    tried = list(candidates_of(config))
    assert tried == [{}, *({"registers": split} for split in SPLITS)]
    for changes in tried:
        assert build_plan(config, changes)


@pytest.mark.parametrize("key", GIVEN)
def test_what_the_config_gives_stays(config_of: ConfigOf, key: str) -> None:
    config = config_of(**{key: GIVEN[key]})
    assert not any(key in changes for changes in candidates_of(config))
