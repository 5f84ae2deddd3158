"""Rules of gated activations in all matrix products, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.common.values import PANEL_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.designs.common.gemm_model import GemmPlan


def gated_rules(
    plan: GemmPlan, unit: int, why: str, last_resort: Sequence[Changes]
) -> Iterator[Refusal]:
    """Yield requests that do not go together with a gated activation.

    ``unit``: a tile's columns of B are a multiple of it, for the reason ``why``.
    """
    config = plan.config
    if not plan.gated:
        if config.gate_layout != "halves":
            message = (
                f"gate_layout: {config.gate_layout}, but the activation is not one over gate and up"
            )
            remedy: list[Changes] = [{"gate_layout": "halves"}]
            yield Refusal("gate", message, ("gate_layout", "activation"), (remedy,), remedy)
        return
    if config.gate_layout == "interleaved" and config.b_major != "k":
        yield Refusal(
            kind="interleaved",
            message="gate_layout: interleaved, but neighbouring columns of B come apart only where "
            "k is contiguous",
            keys=("gate_layout", "b_major"),
            remedies=([{"b_major": "k"}], [{"gate_layout": "halves"}]),
            last_resort=last_resort,
        )
    panel = 2 * plan.panel_columns
    if config.b_major != "k" and plan.BN % panel:
        yield _columns(
            plan,
            panel,
            f"where B has n contiguous, gate and up have whole panels of {panel // 2} columns "
            f"({PANEL_BYTES} bytes) each",
            last_resort,
            ([{"b_major": "k"}],),
        )
    elif plan.BN % unit:
        yield _columns(plan, unit, why, last_resort)


def _columns(
    plan: GemmPlan,
    unit: int,
    why: str,
    last_resort: Sequence[Changes],
    more: Sequence[Sequence[Changes]] = (),
) -> Refusal:
    whole = [unit * count for count in (plan.BN // unit, plan.BN // unit + 1) if count]
    return Refusal(
        kind="gated columns",
        message=f"BN: {plan.BN} columns of B, but with a gated activation {why}",
        keys=("BN", "activation"),
        remedies=([{"BN": columns} for columns in whole], *more),
        last_resort=last_resort,
    )
