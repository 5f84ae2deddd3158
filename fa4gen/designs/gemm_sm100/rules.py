"""Rules between the keys of a Blackwell matrix product, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Refusal
from fa4gen.designs.gemm_sm100.limits import back_to_auto, narrower

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm100.values import Values


def broken_rules(values: Values) -> Iterator[Refusal]:
    """Yield the config's requests that do not go together."""
    yield from _stride(values)


def _stride(values: Values) -> Iterator[Refusal]:
    stride, needed = values.stage_stride_cols, values.accumulator_columns
    if stride >= needed:
        return
    halves = " (in a pair, 64 rows take half of the columns)" if values.layout == "halves" else ""
    yield Refusal(
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
