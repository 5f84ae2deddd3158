"""From a Blackwell config of a matrix product to its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.fitting import most_slots
from fa4gen.designs.common.gemm_scales import OperandScales
from fa4gen.designs.common.grouped import least_groups, take_most_groups
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES, SHARED_BYTE, take_gemm_output
from fa4gen.designs.gemm_sm100.limits import exceeded_limits
from fa4gen.designs.gemm_sm100.model import BlackwellGemmPlan
from fa4gen.designs.gemm_sm100.rules import broken_rules
from fa4gen.designs.gemm_sm100.scaling import FORMS, MOST_SCALE_STAGES
from fa4gen.designs.gemm_sm100.tile import LANES

if TYPE_CHECKING:
    from fa4gen.designs.common.refusal import Refusal
    from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig

MAX_STAGES = 16
"""The schema's limit."""
PREFERRED_COLUMNS = (256, 128, 64)
OVERLAP = 64
"""Columns, and twice as many, that two accumulators may have in common where scales need room."""
ENOUGH_SCALE_STAGES = 2
"""Slots of scales: one is copied to while products read another."""
ENOUGH_STAGES = 3
"""Slots that let loads run ahead of the products for about as long as a load takes."""


def decide(config: BlackwellGemmConfig) -> BlackwellGemmPlan:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_gemm_output(config, log)
    row = PANEL_BYTES // ELEMENT_BYTES[config.dtype] * SHARED_BYTE.get(config.dtype, 1)
    draft = BlackwellGemmPlan(
        config=config,
        cta_group=log.take(
            "cta_group", config.cta_group, 2, "a pair halves what each CTA loads of B"
        ),
        BM=log.take("BM", config.BM, LANES, "a row for each lane of tensor memory"),
        BN=PREFERRED_COLUMNS[-1],
        BK=log.take("BK", config.BK, row, "one row of the 128-byte swizzle"),
        scales=_scales(config),
        num_epi_stages=_epi_stages(config, log),
        num_out_stages=log.take(
            "num_out_stages", config.num_out_stages, 2, "one is stored while one is filled"
        ),
        scheduler=log.take(
            "scheduler", config.scheduler, "static", "tiles take equally long: a fixed round does"
        ),
    )
    draft = replace(draft, most_groups=least_groups(config))
    draft = replace(draft, BN=_columns(draft, log))
    draft = _accumulators(draft, log)
    draft = replace(draft, most_groups=take_most_groups(draft, log, MAX_STAGES))
    draft = replace(draft, num_stages=_stages(draft, log))
    return replace(draft, num_scale_stages=_scale_stages(draft), choices=log.rows)


def find_faults(plan: BlackwellGemmPlan) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return [*broken_rules(plan), *exceeded_limits(plan)]


def _scales(config: BlackwellGemmConfig) -> tuple[OperandScales, ...]:
    """Return the scales of A and of B, or none."""
    if config.scales is None:
        return ()
    form = FORMS[config.scales]
    scale = "ue8m0" if form.powers_of_two else "ue4m3"
    in_atoms = config.scale_order == "arranged"
    return (
        OperandScales("a", config.scales, scale, 1, form.columns, in_atoms=in_atoms),
        OperandScales("b", config.scales, scale, 1, form.columns, in_atoms=in_atoms),
    )


def _epi_stages(config: BlackwellGemmConfig, log: ChoiceLog) -> int:
    if not config.c.exists:
        log.note("num_epi_stages", 0, "derived", "there is no residual to wait for")
        return 0
    return log.take("num_epi_stages", config.num_epi_stages, 2, "one is loaded while one is added")


def _columns(draft: BlackwellGemmPlan, log: ChoiceLog) -> int:
    """Return the widest tile with which enough stages fit, and the requested accumulators."""
    config = draft.config
    wanted = ENOUGH_STAGES if config.num_stages == "auto" else config.num_stages
    total = draft.hardware.tensor_memory_columns

    def works(columns: int) -> bool:
        tried = replace(draft, BN=columns)
        given, stride = config.stage_stride_cols, _own_stride(tried)
        accumulators = 2 if config.num_accum_stages == "auto" else config.num_accum_stages
        if given != "auto":
            stride = given
            if config.num_accum_stages == "auto" and given >= tried.accumulator_columns:
                accumulators = 1
        tried = replace(tried, stage_stride_cols=stride, num_accum_stages=accumulators)
        taken = tried.accumulators_end + ENOUGH_SCALE_STAGES * tried.block_scales.tensor_columns
        fits = (tried.may_overlap or not tried.overlap_columns) and taken <= total
        return fits and most_slots(tried, "num_stages", MAX_STAGES) >= wanted

    columns = next(filter(works, PREFERRED_COLUMNS), PREFERRED_COLUMNS[-1])
    reason = "the widest product: the fewest bytes for each multiplication"
    if columns != PREFERRED_COLUMNS[0]:
        reason = f"the widest beside which {wanted} stages and the accumulators fit"
    return log.take("BN", config.BN, columns, reason)


def _own_stride(draft: BlackwellGemmPlan) -> int:
    """Return the width of an accumulator, or what leaves room for scales beside two of them."""
    columns = draft.accumulator_columns
    if draft.config.num_accum_stages not in ("auto", 2):
        return columns
    left = draft.hardware.tensor_memory_columns
    left -= ENOUGH_SCALE_STAGES * draft.block_scales.tensor_columns
    for stride in (columns, columns - OVERLAP, columns - 2 * OVERLAP):
        tried = replace(draft, stage_stride_cols=stride, num_accum_stages=2)
        if tried.accumulators_end <= left and (stride == columns or tried.may_overlap):
            return stride
    return columns


def _accumulators(draft: BlackwellGemmPlan, log: ChoiceLog) -> BlackwellGemmPlan:
    config, total = draft.config, draft.hardware.tensor_memory_columns
    columns, own = draft.accumulator_columns, _own_stride(draft)
    reason = "as wide as an accumulator"
    if own < columns:
        reason = f"room for scales: accumulators share {columns - own} columns, read first"
    elif draft.accumulator_layout == "halves":
        reason = "an accumulator: half of the tile's columns, twice as many lanes"
    stride = log.take("stage_stride_cols", config.stage_stride_cols, own, reason)
    fit = (total - draft.block_scales.tensor_columns - max(0, columns - stride)) // stride
    stages = log.take(
        "num_accum_stages",
        config.num_accum_stages,
        max(1, min(2, fit)),
        "one is read while the next is filled"
        if fit > 1
        else f"no two of {stride} columns fit the {total} of tensor memory",
    )
    return replace(draft, stage_stride_cols=stride, num_accum_stages=stages)


def _scale_stages(draft: BlackwellGemmPlan) -> int:
    """Return as many slots of scales as fit beside the accumulators, and a use; 1 at least."""
    if not draft.block_scales.kind:
        return 0
    left = draft.hardware.tensor_memory_columns - draft.accumulators_end
    fit = left // max(1, draft.block_scales.tensor_columns)
    return max(1, min(fit, draft.num_stages, MOST_SCALE_STAGES))


def _stages(draft: BlackwellGemmPlan, log: ChoiceLog) -> int:
    fit = most_slots(draft, "num_stages", MAX_STAGES)
    rest = draft.num_out_stages * draft.out_bytes + draft.num_epi_stages * draft.residual_bytes
    scales = draft.block_scales.a_bytes + draft.block_scales.b_bytes
    beside = f" + {scales}" * bool(scales)
    reason = (
        f"{fit} of {draft.a_bytes} + {draft.b_bytes}{beside} bytes fit the "
        f"{draft.hardware.shared_bytes} of shared memory beside {rest} for the "
        f"{'residual and the ' * draft.c.exists}output"
    )
    return log.take("num_stages", draft.config.num_stages, max(1, fit), reason)
