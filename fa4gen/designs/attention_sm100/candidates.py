"""What is tried of attention on Blackwell: wide blocks, then fewer polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.values import PREFERRED_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import BlackwellAttentionConfig
    from fa4gen.designs.shared.candidates import Changes

KEYS = ("BN", "exp2_fma_share", "registers", "BM")
SHARES: tuple[Changes, ...] = ({}, {"exp2_fma_share": 0.125}, {"exp2_fma_share": 0.0})
SPLITS: tuple[Changes, ...] = (
    {},
    {"registers": {"softmax": 200, "correction": 56, "other": 56}},
    {"registers": {"softmax": 184, "correction": 64, "other": 80}},
)


def candidates(config: BlackwellAttentionConfig) -> Iterator[Changes]:
    """Yield what to try, in order."""
    del config
    for block in PREFERRED_BLOCKS:
        for share in SHARES:
            for registers in SPLITS:
                yield {"BN": block, **share, **registers}
