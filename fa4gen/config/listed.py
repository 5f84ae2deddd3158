"""What ``blocks: listed`` goes with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionKeys

PAIR_DEPTH = 512


def check_lists(config: AttentionKeys) -> None:
    """Raise ValueError where lists of blocks are not possible, or not supported yet."""
    mask = config.resolved_mask
    if mask.TEST is None:
        raise ValueError(
            f"blocks: listed is for masks that are conditions tested key by key; of mask: "
            f"{mask.name} the blocks are known without lists: use blocks: walked"
        )
    refused = {
        f"arch: {config.arch}": config.arch != "sm_90a",
        f"depth: {PAIR_DEPTH}": config.depth == PAIR_DEPTH,
        "pack_heads: true": getattr(config, "pack_heads", False),
        "cta_group: 2": getattr(config, "cta_group", 1) == 2,
        f"batching: {config.batching}": config.batching != "dense",
        f"keys: {config.resolved_keys}": config.resolved_keys != "dense",
        "key_lengths: true": config.key_lengths,
    }
    found = [words for words, is_refused in refused.items() if is_refused]
    if found:
        raise ValueError(
            f"blocks: listed with {' and '.join(found)} is not supported yet: use blocks: walked"
        )
