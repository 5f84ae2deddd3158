"""The blocks of keys, and the share of the FMA pipe, that the plan takes of its own accord."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.memory import KEY_STEP

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig

PREFERRED_BLOCKS = (128, 96, 64, 32)
"""Keys of a block that the plan takes: the widest that fits."""
LISTED_BLOCKS = (64, 32)
"""Block widths with lists of the blocks that are seen: of narrower blocks, fewer keys are
masked."""


def are_parts_of(block: int, parts: int) -> bool:
    """Whether ``block`` keys can be divided into ``parts`` parts; two may differ in size."""
    steps = block // KEY_STEP
    return steps >= 2 if parts == 2 else steps % parts == 0


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
