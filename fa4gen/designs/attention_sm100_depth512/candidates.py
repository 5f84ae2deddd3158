"""The candidates at depth 512 on Blackwell: other splits of the registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
    from fa4gen.designs.common.candidates import Changes

SPLITS = (
    {"softmax": 224, "correction": 128, "other": 64},
    {"softmax": 200, "correction": 128, "other": 64},
    {"softmax": 232, "correction": 80, "other": 48},
)
"""After the plan's own: more for the softmax, or fewer, with which ptxas loads less far ahead."""


def candidates(config: BlackwellPairAttentionConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    del config
    for registers in SPLITS:
        yield {"registers": registers}
