"""Fixes of several keys, for Blackwell attention configs that no change of one key makes work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.common.refusal import Changes

DECIDED_TOGETHER = (
    "num_kv_stages",
    "BN",
    "num_pv_stages",
    "registers",
    "output_staging",
    "kv_ring",
    "num_qk_stages",
    "BM",
)
"""Keys that share out memory and registers; each may be left to the plan."""


def back_to_auto(config: BlackwellAttentionConfig) -> Iterator[Changes]:
    """Yield changes that leave keys to the plan, fewest first; all of them always suffice.

    But for values too deep for tensor memory, which are left to the plan last.
    """
    yield from limits.back_to_auto(config, DECIDED_TOGETHER)
    if config.value_depth != "auto":
        yield from limits.back_to_auto(config, (*DECIDED_TOGETHER, "value_depth"))
