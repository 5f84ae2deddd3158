"""The candidates of attention on Blackwell: wide blocks first, each with cheaper settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.blocks import fma_share, preferred_blocks
from fa4gen.designs.attention_sm100.memory import TILE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.common.candidates import Changes

SHARES = (0.125, 0.0)
SPLITS: dict[int, tuple[Changes, ...]] = {
    2: (
        {"softmax": 200, "correction": 56, "other": 56},
        {"softmax": 184, "correction": 64, "other": 80},
        {"softmax": 208, "correction": 56, "other": 40},
    ),
    1: ({"softmax": 240, "correction": 144, "other": 120},),
}
"""By query tiles, after the plan's own: more for the loader, for products, for the softmax."""


def candidates(config: BlackwellAttentionConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    shares = [share for share in SHARES if share < fma_share(config)[0]]
    for tiles, splits in SPLITS.items():
        rows = TILE_ROWS * tiles
        if config.BM not in ("auto", rows):
            continue
        blocks = preferred_blocks(config)
        for block in blocks:
            tile: Changes = {"BM": rows, "BN": block}
            yield tile
            for share in shares if block == blocks[0] else shares[-1:]:
                yield {**tile, "exp2_fma_share": share}
            yield {**tile, "registers": splits[0]}
        for split in splits:
            yield {"BM": rows, "exp2_fma_share": SHARES[-1], "registers": split}
