"""The candidates at depth 512 on Hopper: another split of the registers, another order of tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90_depth512.config import HopperPairAttentionConfig
    from fa4gen.designs.common.candidates import Changes

SPLITS: tuple[Changes, ...] = (
    {"registers": {"producer": 24, "consumer": 240}},
    {"registers": {"producer": 56, "consumer": 224}},
)


def candidates(config: HopperPairAttentionConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    del config
    yield from SPLITS
    for split in ({}, *SPLITS):
        yield {"scheduler": "static", **split}
