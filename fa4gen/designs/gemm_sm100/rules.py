"""Rules between the keys of a Blackwell matrix product, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.gemm_sm100.limits import back_to_auto, narrower
from fa4gen.designs.shared.refusal import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm100.values import Values


TRANSCENDENTAL = ("exp(", "tanh(", "sigmoid(", "silu(", "gelu(", "erf(")
"""What an activation computes with registers of its own beside those of log."""


def broken_rules(values: Values) -> Iterator[Fault]:
    """Yield what the config asks for that does not go together."""
    yield from _stride(values)
    yield from _one_slot(values)


def _one_slot(values: Values) -> Iterator[Fault]:
    """Yield what was seen to spill: with two slots of the output it does not."""
    text = values.config.activation or ""
    if (
        "log(" in text
        and any(word in text for word in TRANSCENDENTAL)
        and values.num_out_stages == 1
    ):
        yield Fault(
            kind="one slot of the output",
            message="num_out_stages: 1 with log beside another function in the activation leaves "
            "too few registers",
            keys=("num_out_stages", "activation"),
            remedies=([{"num_out_stages": 2}, {"num_out_stages": "auto"}],),
            last_resort=back_to_auto(values.config),
        )


def _stride(values: Values) -> Iterator[Fault]:
    stride, needed = values.stage_stride_cols, values.accumulator_columns
    if stride >= needed:
        return
    halves = " (in a pair, 64 rows take half of the columns)" if values.layout == "halves" else ""
    yield Fault(
        kind="stride of the accumulators",
        message=f"stage_stride_cols: an accumulator of BN = {values.BN} takes {needed} columns of "
        f"tensor memory{halves}, the next one would begin after {stride}",
        keys=("stage_stride_cols", "BN"),
        remedies=(
            [{"stage_stride_cols": needed}, {"stage_stride_cols": "auto"}],
            narrower(values),
        ),
        last_resort=back_to_auto(values.config),
    )
