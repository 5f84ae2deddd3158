"""The plan of a matrix product on sm_90a: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.gemm import HopperGemmConfig
    from fa4gen.plan.gemm_model import HopperGemmPlan


def plan_gemm_sm90(config: HopperGemmConfig) -> HopperGemmPlan:
    """Plan the matrix product of ``config``."""
    raise NotImplementedError(config.name)
