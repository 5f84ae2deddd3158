"""The keys that exclude exchanged operands, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.gemm_sm90.tile import GATED_ROWS, STORED_ROWS, WARPGROUP_ROWS, WGMMA_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile


def swapped_rules(plan: HopperGemmTile, automatic: Changes) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``swap_operands``.

    ``automatic``: the changes that leave every size to the plan.
    """
    last_resort = [automatic, {**automatic, "swap_operands": False}]

    def fault(key: str, message: str, change: Changes) -> Refusal:
        plain: list[Changes] = [
            {"swap_operands": False},
            {"swap_operands": False, "BM": "auto"},
        ]
        both = (key, "swap_operands")
        more = [{**automatic, **change}, {**automatic, "swap_operands": False}]
        return Refusal(key, message, both, ([change], plain), more)

    config, warpgroups = plan.config, plan.num_consumer_warpgroups
    for key, major in (("a_major", config.a_major), ("b_major", config.b_major)):
        if major != "k" and plan.element_bytes > 1:
            yield fault(
                key, f"{key}: {major}, but swap_operands is made for k contiguous", {key: "k"}
            )
    if plan.out_element_bytes != 2 and plan.output_scales is None:
        yield fault(
            "out_dtype",
            f"out_dtype: {config.resolved_out_dtype}, but with swap_operands pieces of 8 x 8 "
            "elements of 16 bits are transposed on their way out",
            {"out_dtype": "auto"},
        )
    if plan.c.is_matrix and plan.BM % STORED_ROWS:
        rows = plan.BM + STORED_ROWS // 2
        message = (
            f"BM: {plan.BM} rows, but with a matrix C a panel has whole groups of {STORED_ROWS} "
            "rows, which are read together"
        )
        yield fault("BM", message, {"BM": rows})
    if plan.ping_pong:
        message = "ping_pong: is not supported yet with swap_operands"
        yield fault("ping_pong", message, {"ping_pong": False})
    if plan.gated and GATED_ROWS * warpgroups != plan.BN:
        yield Refusal(
            kind="rows",
            message=f"BN: {plan.BN} columns for {warpgroups} consumer warpgroups, and with "
            f"swap_operands and a gated activation each computes {GATED_ROWS} of them: "
            f"{GATED_ROWS * warpgroups}",
            keys=("BN", "num_consumer_warpgroups"),
            remedies=(
                [{"BN": "auto"}, {"BN": GATED_ROWS * warpgroups}],
                [{"num_consumer_warpgroups": "auto"}],
            ),
            last_resort=last_resort,
        )
    elif plan.BN / warpgroups not in WARPGROUP_ROWS:
        yield Refusal(
            kind="rows",
            message=f"BN: {plan.BN} columns for {warpgroups} consumer warpgroups, and with "
            f"swap_operands each computes 64 or 128 of them: {WGMMA_ROWS * warpgroups} or "
            f"{2 * WGMMA_ROWS * warpgroups}",
            keys=("BN", "num_consumer_warpgroups"),
            remedies=(
                [{"BN": "auto"}, {"BN": WGMMA_ROWS * warpgroups}],
                [{"num_consumer_warpgroups": "auto"}],
            ),
            last_resort=last_resort,
        )
