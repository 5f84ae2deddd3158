"""The candidates of attention on Blackwell: wide blocks first, each with cheaper settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.memory import TILE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.common.candidates import Changes

PREFERRED_BLOCKS = (128, 96, 64, 32)
"""Keys of a block that the plan takes: the widest that fits."""
LISTED_BLOCKS = (64, 32)
"""Block widths with lists of the blocks that are seen: of narrower blocks, fewer keys are
masked."""
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


def preferred_blocks(config: BlackwellAttentionConfig) -> tuple[int, ...]:
    """Return the keys of a block, in the order in which they are tried."""
    return LISTED_BLOCKS if config.lists_blocks else PREFERRED_BLOCKS


def fma_share(config: BlackwellAttentionConfig) -> tuple[float, str]:
    """Return the share of exponentials that the FMA pipe computes by default, and why."""
    if config.arch == "sm_103a":
        return 0.0, "ex2 is twice as fast as on sm_100a"
    if config.dtype == "fp8_e4m3":
        return 0.25, "fp8 products leave less time for exponentials"
    return 0.125, "ex2 is as slow as the products"
