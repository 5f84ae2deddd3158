"""From a Blackwell config of a matrix product to one value for every key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.gemm_model import accumulator_layout
from fa4gen.designs.common.gemm_scales import OperandScales
from fa4gen.designs.common.gemm_values import GemmValues
from fa4gen.designs.common.shared_memory import align_up
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES, SHARED_BYTE, take_out_dtype
from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
from fa4gen.designs.gemm_sm100.scaling import FORMS, MOST_SCALE_STAGES, block_scales
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.gemm_model import AccumulatorLayout
    from fa4gen.designs.common.model import Choice
    from fa4gen.designs.common.values import Scheduler
    from fa4gen.designs.gemm_sm100.scaling import BlockScales

LANES = 128
"""Lanes of tensor memory, and threads of the epilogue."""
PREFERRED_COLUMNS = (256, 128, 64)
OVERLAP = 64
"""Columns, and twice as many, that two accumulators may have in common where scales need room."""
ENOUGH_SCALE_STAGES = 2
"""Slots of scales: one is copied to while products read another."""
ENOUGH_STAGES = 3
"""Slots that let loads run ahead of the products for about as long as a load takes."""


@dataclass(frozen=True)
class Values(GemmValues[BlackwellGemmConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    num_accum_stages: int
    stage_stride_cols: int
    num_out_stages: int
    scheduler: Scheduler
    num_scale_stages: int = 0
    """Slots of scales in tensor memory, beside the accumulators."""

    @property
    def scales(self) -> BlockScales:
        """The scales of a block of k."""
        return block_scales(
            self.config.scales,
            self.config.dtype,
            mma_k=self.mma_k,
            block_k=self.BK,
            columns=self.BN,
        )

    @property
    @override
    def operand_scales(self) -> tuple[OperandScales, ...]:
        name = self.config.scales
        if name is None:
            return ()
        form, columns = FORMS[name], FORMS[name].columns
        scale = "ue8m0" if form.powers_of_two else "ue4m3"
        return (
            OperandScales("a", name, scale, 1, columns),
            OperandScales("b", name, scale, 1, columns),
        )

    @property
    def stage_bytes(self) -> int:
        """Bytes of a slot of the ring: A, B and their scales."""
        return self.a_bytes + self.b_bytes + self.scales.a_bytes + self.scales.b_bytes

    @property
    def layout(self) -> AccumulatorLayout:
        """The arrangement of a CTA's rows in tensor memory."""
        return accumulator_layout(self.BM, self.cta_group)

    @property
    def accumulator_columns(self) -> int:
        """Columns of tensor memory of one accumulator."""
        return self.BN // 2 if self.layout == "halves" else self.BN

    @property
    def overlap_columns(self) -> int:
        """Columns that an accumulator has in common with the next."""
        return max(0, self.accumulator_columns - self.stage_stride_cols)

    @property
    def accumulators_end(self) -> int:
        """The first column after the accumulators."""
        return self.num_accum_stages * self.stage_stride_cols + self.overlap_columns

    @property
    def may_overlap(self) -> bool:
        """Whether two accumulators may have panels in common, which the epilogue reads first."""
        panels = self.overlap_columns % self.out_panel_columns == 0
        half = 2 * self.overlap_columns <= self.accumulator_columns
        return bool(self.scales.kind) and self.num_accum_stages == 2 and panels and half

    @property
    def num_accum_slots(self) -> int:
        """Accumulators that are passed on independently of each other."""
        return 1 if self.overlap_columns else self.num_accum_stages

    @property
    def b_columns(self) -> int:
        """Columns of the tile whose part of B a CTA loads."""
        return self.BN // self.cta_group

    @property
    def a_panel_bytes(self) -> int:
        """Bytes in a row of a swizzled panel of A."""
        if self.config.a_major == "k":
            return panel_bytes(self.line_bytes(self.BK))
        return panel_bytes(self.BM * self.element_bytes)

    @property
    def b_panel_bytes(self) -> int:
        """Bytes in a row of a swizzled panel of B."""
        if self.config.b_major == "k":
            return panel_bytes(self.line_bytes(self.BK))
        return panel_bytes(self.b_columns * self.element_bytes)

    @property
    def b_bytes(self) -> int:
        """Bytes of B in a slot of the ring."""
        return self.b_columns * self.line_bytes(self.BK)

    @property
    def out_panel_columns(self) -> int:
        """Columns of a swizzled panel of the output: whole panels in each half of the lanes."""
        return panel_bytes(self.accumulator_columns * self.out_element_bytes) // (
            self.out_element_bytes
        )

    @property
    def out_panel_bytes(self) -> int:
        """Bytes of a panel of the output, BM rows of it."""
        return self.BM * self.out_panel_columns * self.out_element_bytes

    @property
    def slot_panels(self) -> int:
        """Panels that the epilogue works on together: one of each half of the lanes."""
        return 2 if self.layout == "halves" else 1

    @property
    def out_bytes(self) -> int:
        """Bytes of a slot of the output."""
        return self.slot_panels * self.out_panel_bytes

    @property
    def residual_copies(self) -> int:
        """TMA loads of C that a step of the epilogue needs: one of each panel's columns."""
        return self.slot_panels if "n" in self.c.axes else 1

    @property
    def residual_copy_bytes(self) -> int:
        """Bytes that TMA brings into a slot of the residual."""
        elements = self.c.elements(self.BM, self.out_panel_columns)
        return self.residual_copies * elements * self.out_element_bytes

    @property
    def residual_bytes(self) -> int:
        """Bytes of a slot of the residual: TMA writes to multiples of 128 bytes."""
        copies = self.residual_copies
        return copies * align_up(self.residual_copy_bytes // copies, PANEL_BYTES)

    @property
    def num_warps(self) -> int:
        """Epilogue, scheduler, load, mma, residual: those that there are."""
        return 4 + (self.scheduler == "dynamic") + 2 + self.c.exists


def panel_bytes(line: int) -> int:
    """Return the widest row of a swizzled panel that tiles a line of ``line`` bytes."""
    return next(row for row in (PANEL_BYTES, 64, 32) if line % row == 0)


def decide(
    config: BlackwellGemmConfig, most_stages: Callable[[Values], int]
) -> tuple[Values, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here.

    ``most_stages`` says how many slots of the ring of A and B fit shared memory with the rest.
    """
    log = ChoiceLog(config)
    take_out_dtype(config, log)
    row = PANEL_BYTES // ELEMENT_BYTES[config.dtype] * SHARED_BYTE.get(config.dtype, 1)
    draft = Values(
        config=config,
        cta_group=log.take(
            "cta_group", config.cta_group, 2, "a pair halves what each CTA loads of B"
        ),
        BM=log.take("BM", config.BM, LANES, "a row for each lane of tensor memory"),
        BN=PREFERRED_COLUMNS[-1],
        BK=log.take("BK", config.BK, row, "one row of the 128-byte swizzle"),
        num_stages=1,
        num_accum_stages=1,
        stage_stride_cols=32,
        num_epi_stages=_epi_stages(config, log),
        num_out_stages=log.take(
            "num_out_stages", config.num_out_stages, 2, "one is stored while one is filled"
        ),
        scheduler=log.take(
            "scheduler", config.scheduler, "static", "tiles take equally long: a fixed round does"
        ),
    )
    draft = replace(draft, BN=_columns(draft, most_stages, log))
    draft = _accumulators(draft, log)
    draft = replace(draft, num_stages=_stages(draft, most_stages, log))
    return replace(draft, num_scale_stages=_scale_stages(draft)), log.rows


def _epi_stages(config: BlackwellGemmConfig, log: ChoiceLog) -> int:
    if not config.c.exists:
        log.note("num_epi_stages", 0, "derived", "there is no residual to wait for")
        return 0
    return log.take("num_epi_stages", config.num_epi_stages, 2, "one is loaded while one is added")


def _columns(draft: Values, most_stages: Callable[[Values], int], log: ChoiceLog) -> int:
    """Return the widest tile with which enough stages fit, and the requested accumulators."""
    config = draft.config
    wanted = ENOUGH_STAGES if config.num_stages == "auto" else config.num_stages
    total = draft.arch.tensor_memory_columns

    def works(columns: int) -> bool:
        tried = replace(draft, BN=columns)
        given, stride = config.stage_stride_cols, _own_stride(tried)
        accumulators = 2 if config.num_accum_stages == "auto" else config.num_accum_stages
        if given != "auto":
            stride = given
            if config.num_accum_stages == "auto" and given >= tried.accumulator_columns:
                accumulators = 1
        tried = replace(tried, stage_stride_cols=stride, num_accum_stages=accumulators)
        taken = tried.accumulators_end + ENOUGH_SCALE_STAGES * tried.scales.tensor_columns
        fits = (tried.may_overlap or not tried.overlap_columns) and taken <= total
        return fits and most_stages(tried) >= wanted

    columns = next(filter(works, PREFERRED_COLUMNS), PREFERRED_COLUMNS[-1])
    reason = "the widest product: the fewest bytes for each multiplication"
    if columns != PREFERRED_COLUMNS[0]:
        reason = f"the widest beside which {wanted} stages and the accumulators fit"
    return log.take("BN", config.BN, columns, reason)


def _own_stride(draft: Values) -> int:
    """Return the width of an accumulator, or what leaves room for scales beside two of them."""
    columns = draft.accumulator_columns
    if draft.config.num_accum_stages not in ("auto", 2):
        return columns
    left = draft.arch.tensor_memory_columns
    left -= ENOUGH_SCALE_STAGES * draft.scales.tensor_columns
    for stride in (columns, columns - OVERLAP, columns - 2 * OVERLAP):
        tried = replace(draft, stage_stride_cols=stride, num_accum_stages=2)
        if tried.accumulators_end <= left and (stride == columns or tried.may_overlap):
            return stride
    return columns


def _accumulators(draft: Values, log: ChoiceLog) -> Values:
    config, total = draft.config, draft.arch.tensor_memory_columns
    columns, own = draft.accumulator_columns, _own_stride(draft)
    reason = "as wide as an accumulator"
    if own < columns:
        reason = f"room for scales: accumulators share {columns - own} columns, read first"
    elif draft.layout == "halves":
        reason = "an accumulator: half of the tile's columns, twice as many lanes"
    stride = log.take("stage_stride_cols", config.stage_stride_cols, own, reason)
    fit = (total - draft.scales.tensor_columns - max(0, columns - stride)) // stride
    stages = log.take(
        "num_accum_stages",
        config.num_accum_stages,
        max(1, min(2, fit)),
        "one is read while the next is filled"
        if fit > 1
        else f"no two of {stride} columns fit the {total} of tensor memory",
    )
    return replace(draft, stage_stride_cols=stride, num_accum_stages=stages)


def _scale_stages(draft: Values) -> int:
    """Return as many slots of scales as fit beside the accumulators, and a use; 1 at least."""
    if not draft.scales.kind:
        return 0
    left = draft.arch.tensor_memory_columns - draft.accumulators_end
    fit = left // max(1, draft.scales.tensor_columns)
    return max(1, min(fit, draft.num_stages, MOST_SCALE_STAGES))


def _stages(draft: Values, most_stages: Callable[[Values], int], log: ChoiceLog) -> int:
    fit = most_stages(draft)
    rest = draft.num_out_stages * draft.out_bytes + draft.num_epi_stages * draft.residual_bytes
    scales = draft.scales.a_bytes + draft.scales.b_bytes
    beside = f" + {scales}" * bool(scales)
    reason = (
        f"{fit} of {draft.a_bytes} + {draft.b_bytes}{beside} bytes fit the "
        f"{draft.arch.shared_bytes} of shared memory beside {rest} for the "
        f"{'residual and the ' * draft.c.exists}output"
    )
    return log.take("num_stages", draft.config.num_stages, max(1, fit), reason)
