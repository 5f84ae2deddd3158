"""The plan of a matrix product on sm_100a: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.gemm import BlackwellGemmConfig
    from fa4gen.plan.gemm_model import BlackwellGemmPlan


def plan_gemm_sm100(config: BlackwellGemmConfig) -> BlackwellGemmPlan:
    """Plan the matrix product of ``config``."""
    raise NotImplementedError(config.name)
