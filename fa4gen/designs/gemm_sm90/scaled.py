"""Rules of products with scales of blocks, and suggested fixes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.gemm_sm90.tile import SCALED_K, WGMMA_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile


def scaled_rules(plan: HopperGemmTile, automatic: Changes) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``scales``.

    ``automatic``: the changes that leave every size to the plan.
    """
    config = plan.config
    if config.scales is None:
        if plan.multiply_ahead:
            message = "multiply_ahead: true, which is for products with scales"
            remedy: list[Changes] = [{"multiply_ahead": "auto"}]
            yield Refusal("ahead", message, ("multiply_ahead", "scales"), (remedy,), remedy)
        return
    last_resort: list[Changes] = [automatic, {**automatic, "scales": None}]

    def fault(kind: str, message: str, key: str, fixes: list[Changes]) -> Refusal:
        return Refusal(kind, message, (key, "scales"), (fixes, [{"scales": None}]), last_resort)

    if plan.element_bytes > 1:
        message = f"scales: those of blocks are for fp8 operands, and dtype is {config.dtype}"
        yield fault("scales of dtype", message, "dtype", [{"dtype": "fp8_e4m3"}])
    if plan.multiply_ahead and plan.warpgroup_rows != WGMMA_ROWS:
        message = (
            f"multiply_ahead: true, but a warpgroup has {plan.warpgroup_rows} rows of the tile, "
            f"and two sets of products are for {WGMMA_ROWS}"
        )
        yield fault("ahead", message, "multiply_ahead", [{"multiply_ahead": "auto"}])
    if plan.multiply_ahead and plan.multiplies_halves:
        message = "multiply_ahead: true, but gate's and up's products are in the same registers"
        yield fault("ahead of up", message, "multiply_ahead", [{"multiply_ahead": "auto"}])
    if plan.multiply_ahead and plan.BK != SCALED_K:
        message = (
            f"multiply_ahead: true, but a stage brings {plan.BK} of k, and products are of 128"
        )
        yield fault("ahead of a stage", message, "multiply_ahead", [{"multiply_ahead": "auto"}])
    if plan.multiply_ahead and plan.num_stages == 1:
        message = (
            "multiply_ahead: true, but num_stages is 1, and the next products are issued before "
            "the slot of the last ones is free"
        )
        fixes: list[Changes] = [{"multiply_ahead": "auto"}]
        yield fault("ahead in one slot", message, "multiply_ahead", fixes)
    if config.scales.b == "128x128" and not config.swap_operands and plan.gated:
        apart = plan.multiplies_halves and config.gate_layout == "halves"
        if SCALED_K % plan.BN and not apart:
            message = (
                f"BN: {plan.BN} columns of B, and a scale of B is for 128: gate is to have one, "
                "and up"
            )
            yield fault("scales of gate", message, "BN", [{"BN": 128}, {"BN": 64}])
    elif config.scales.b == "128x128" and not config.swap_operands:
        first = SCALED_K - math.gcd(plan.BN, SCALED_K)
        if first + plan.BN > 2 * SCALED_K:
            message = (
                f"BN: {plan.BN} columns begin up to {first} after those of a scale of B, and "
                "reach into the blocks of three: at most two are kept"
            )
            yield fault("scales of columns", message, "BN", [{"BN": 128}, {"BN": 64}])
