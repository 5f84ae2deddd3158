"""The plan of attention forward on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.schema import BlackwellAttentionConfig
    from fa4gen.plan.attention_model import FA4Config


def plan_attention_sm100(config: BlackwellAttentionConfig) -> FA4Config:
    """Plan attention forward for sm_100a or sm_103a.

    Raises ConfigError with the arithmetic and ways out for what cannot work.
    """
    raise NotImplementedError
