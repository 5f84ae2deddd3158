"""Rules of products whose output is quantised, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.amax_rules import amax_excludes
from fa4gen.designs.common.gemm_config import without_output_scales
from fa4gen.designs.common.gemm_scales import ARRANGED_OUTPUTS
from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile


def quantised_rules(plan: HopperGemmTile, last_resorts: list[Changes]) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``output_scales``.

    ``last_resorts``: the changes that leave every size to the plan.
    """
    config, form = plan.config, plan.config.output_scales
    without: Changes = without_output_scales(config)

    def fault(kind: str, message: str, key: str, fixes: list[Changes]) -> Refusal:
        more = [{**changes, **without} for changes in last_resorts]
        return Refusal(kind, message, (key, "output_scales"), (fixes, [without]), more)

    if form != "1x128" and config.output_scale_dtype is not None:
        yield Refusal(
            kind="dtype of scales",
            message=f"output_scale_dtype: {config.output_scale_dtype}, which is for output_scales: "
            "1x128",
            keys=("output_scale_dtype", "output_scales"),
            remedies=([{"output_scale_dtype": None}], [{"output_scales": "1x128"}]),
            last_resort=[{**changes, **without} for changes in last_resorts],
        )
    if form not in ARRANGED_OUTPUTS and config.output_scale_order != "row_major":
        yield Refusal(
            kind="order of output scales",
            message=f"output_scale_order: {config.output_scale_order}, which is for output_scales: "
            f"{' and '.join(ARRANGED_OUTPUTS)}",
            keys=("output_scale_order", "output_scales"),
            remedies=([{"output_scale_order": "row_major"}],),
            last_resort=[{**changes, **without} for changes in last_resorts],
        )
    if form in ARRANGED_OUTPUTS:
        message = f"output_scales: {form}, which is for Blackwell; Hopper's products take 1x128"
        yield fault("form of scales", message, "output_scales", [{"output_scales": "1x128"}])
    if form == "amax":
        for key, value, given, why in (
            ("swap_operands", False, config.swap_operands, "a lane has two rows of each piece"),
            *amax_excludes(plan),
        ):
            if given:
                said = str(getattr(config, key)).lower() if given is True else given
                message = f"{key}: {said}, but with output_scales: amax {why}"
                yield fault(f"amax with {key}", message, key, [{key: value}])
    if plan.output_scales is None:
        return
    columns = plan.output_scales.columns
    if config.swap_operands:
        message = (
            f"swap_operands: true, but with output_scales: {form} the {columns} columns of a scale "
            "would be rows of wgmma, which several warpgroups or tiles have"
        )
        yield fault("scales of swapped", message, "swap_operands", [{"swap_operands": False}])
    elif plan.out_columns % columns:
        half = f" of B, {plan.out_columns} of the output" * plan.gated
        message = (
            f"BN: {plan.BN} columns{half}, but with output_scales: {form} a tile has whole blocks "
            f"of {columns}"
        )
        yield fault("whole blocks", message, "BN", [{"BN": 128}, {"BN": 256}])
    if config.out_dtype == "fp32" or (config.out_dtype != "auto" and not plan.c.exists):
        message = (
            f"out_dtype: {config.out_dtype}, but with output_scales: {form} it is the type of C"
        )
        message += ", of 16 bits" if plan.c.exists else ", and residual is none"
        yield fault("type of C", message, "out_dtype", [{"out_dtype": "auto"}])
