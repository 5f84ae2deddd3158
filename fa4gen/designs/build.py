"""The one door from a config to its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.config.gemm import BlackwellGemmConfig, HopperGemmConfig
from fa4gen.config.schema import BlackwellAttentionConfig
from fa4gen.designs.attention_sm90.plan import plan_attention_sm90
from fa4gen.designs.attention_sm90_depth512.plan import plan_attention_sm90_depth512
from fa4gen.designs.attention_sm90_depth512.values import DEPTH
from fa4gen.designs.attention_sm100.plan import plan_attention_sm100
from fa4gen.designs.attention_sm100_depth512.plan import plan_attention_sm100_depth512
from fa4gen.designs.gemm_sm90.plan import plan_gemm_sm90
from fa4gen.designs.gemm_sm100.plan import plan_gemm_sm100

if TYPE_CHECKING:
    from fa4gen.config.schema import Config
    from fa4gen.designs.shared.plans import Plan


def build_plan(config: Config) -> Plan:
    """Return everything that follows from ``config``.

    Raises ConfigError, with the arithmetic and the key to change, for what cannot work.
    """
    if isinstance(config, HopperGemmConfig):
        return plan_gemm_sm90(config)
    if isinstance(config, BlackwellGemmConfig):
        return plan_gemm_sm100(config)
    if isinstance(config, BlackwellAttentionConfig):
        if config.depth == 512:
            return plan_attention_sm100_depth512(config)
        return plan_attention_sm100(config)
    if config.depth == DEPTH:
        return plan_attention_sm90_depth512(config)
    return plan_attention_sm90(config)
