"""What kernels with shares of the keys decide alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionConfig, BlackwellAttentionConfig
    from fa4gen.designs.shared.choices import ChoiceLog


def note_shares(
    config: AttentionConfig | BlackwellAttentionConfig, log: ChoiceLog, who: str = "CTA"
) -> None:
    """Record how the keys are shared, and what follows from that; ``who`` takes a share."""
    split = config.split_keys
    if split == "auto":
        log.note("split_keys", "even", "auto", f"each {who} reads the same number of blocks")
    else:
        log.note("split_keys", f"{{keys: {split.keys}}}", "config")
    log.note("scheduler", "static", "derived", "shares of the line of blocks are even")
    log.note("epilogue", "direct", "derived", "the rows of a tile are few")
