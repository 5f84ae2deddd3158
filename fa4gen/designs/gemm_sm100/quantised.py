"""Rules of products on Blackwell whose output is quantised, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.amax_rules import amax_excludes
from fa4gen.designs.common.gemm_config import without_output_scales
from fa4gen.designs.common.gemm_scales import ARRANGED_OUTPUTS
from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.gemm_sm100.limits import back_to_auto
from fa4gen.designs.gemm_sm100.tile import LANES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm100.memory import BlackwellGemmMemory

STEP_COLUMNS = 128
"""Columns of a step of the epilogue, whole blocks of every form."""


def quantised_rules(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``output_scales``."""
    config, form = plan.config, plan.config.output_scales
    without: Changes = without_output_scales(config)

    def fault(kind: str, message: str, key: str, fixes: list[Changes]) -> Refusal:
        more = [{**changes, **without} for changes in back_to_auto(config)]
        return Refusal(kind, message, (key, "output_scales"), (fixes, [without]), more)

    if form != "1x128" and config.output_scale_dtype is not None:
        yield Refusal(
            kind="dtype of scales",
            message=f"output_scale_dtype: {config.output_scale_dtype}, which is for output_scales: "
            "1x128",
            keys=("output_scale_dtype", "output_scales"),
            remedies=([{"output_scale_dtype": None}], [{"output_scales": "1x128"}]),
        )
    if form not in ARRANGED_OUTPUTS and config.output_scale_order != "row_major":
        yield Refusal(
            kind="order of output scales",
            message=f"output_scale_order: {config.output_scale_order}, which is for output_scales: "
            f"{' and '.join(ARRANGED_OUTPUTS)}",
            keys=("output_scale_order", "output_scales"),
            remedies=([{"output_scale_order": "row_major"}],),
        )
    if form == "amax":
        rows = ("BM", LANES, plan.BM != LANES, f"a thread has a row of its own, {LANES} in all")
        for key, value, given, why in (rows, *amax_excludes(plan)):
            if given:
                said = plan.BM if key == "BM" else getattr(config, key)
                message = f"{key}: {said}, but with output_scales: amax {why}"
                yield fault(f"amax with {key}", message, key, [{key: value}])
    if plan.output_scales is None:
        return
    if plan.BM != LANES:
        message = (
            f"BM: {plan.BM} rows, but with output_scales: {form} a thread has a row of its own, "
            f"one in each of {LANES} lanes of tensor memory"
        )
        yield fault("rows of blocks", message, "BM", [{"BM": LANES}])
    if plan.out_columns % STEP_COLUMNS:
        half = f" of B, {plan.out_columns} of the output" * plan.gated
        message = (
            f"BN: {plan.BN} columns{half}, but with output_scales: {form} the epilogue quantises "
            f"{STEP_COLUMNS} at a time"
        )
        yield fault("whole blocks", message, "BN", [{"BN": 256}, {"BN": 128}])
    if config.out_dtype == "fp32" or (config.out_dtype != "auto" and not plan.c.exists):
        message = (
            f"out_dtype: {config.out_dtype}, but with output_scales: {form} it is the type of C"
        )
        message += ", of 16 bits" if plan.c.exists else ", and residual is none"
        yield fault("type of C", message, "out_dtype", [{"out_dtype": "auto"}])
