"""The tile of a matrix product on Blackwell: what is decided of it, and the sizes that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.gemm_model import GemmPlan
from fa4gen.designs.common.shared_memory import align_up
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.designs.gemm_sm100.scaling import block_scales
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
    from fa4gen.designs.gemm_sm100.scaling import BlockScales

AccumulatorLayout = Literal["rows", "quarters", "halves"]
"""rows: a row in each of the 128 lanes. quarters: 64 rows, 16 in the first lanes of each quarter.
halves: 64 rows twice, lanes 64 to 127 with the second half of the columns."""
LANES = 128
"""Lanes of tensor memory, and threads of the epilogue."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class BlackwellGemmTile(GemmPlan):
    """The tile and its sizes."""

    config: BlackwellGemmConfig
    num_accum_stages: int = 1
    stage_stride_cols: int = 32
    """Columns of tensor memory from one accumulator to the next."""
    num_out_stages: int
    """Slots through which the output passes to global memory."""
    num_scale_stages: int = 0
    """Slots of scales in tensor memory, beside the accumulators."""

    @property
    def block_scales(self) -> BlockScales:
        """The scales of a block of k."""
        form = self.scales[0].form if self.scales else None
        return block_scales(
            form,
            self.dtype,
            mma_k=self.mma_k,
            block_k=self.BK,
            columns=self.BN,
            family=self.hardware.is_family,
        )

    @property
    @override
    def scaled_kind(self) -> str:
        return self.block_scales.kind

    @property
    def arranges_scales(self) -> bool:
        """Whether warps bring row-major scales into the order of the tensor cores."""
        return bool(self.scales) and not self.scales[0].in_atoms

    @property
    def arrange_warps(self) -> int:
        """Warps that do so: one for each 128 rows of A and columns of B."""
        return (1 + self.block_scales.b_atoms) * self.arranges_scales

    @property
    def loaded_bytes(self) -> int:
        """Bytes that TMA brings into a slot of the ring: A, B and arranged scales."""
        scales = (
            0 if self.arranges_scales else self.block_scales.a_bytes + self.block_scales.b_bytes
        )
        return self.a_bytes + self.b_bytes + scales

    @property
    def accumulator_layout(self) -> AccumulatorLayout:
        """The arrangement of a CTA's rows in tensor memory."""
        if self.BM == LANES:
            return "rows"
        return "halves" if self.is_pair else "quarters"

    @property
    def accumulator_columns(self) -> int:
        """Columns of tensor memory of one accumulator."""
        return self.BN // 2 if self.accumulator_layout == "halves" else self.BN

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
        return bool(self.block_scales.kind) and self.num_accum_stages == 2 and panels and half

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
        if self.a_major == "k":
            return panel_bytes(self.line_bytes(self.BK))
        return panel_bytes(self.BM * self.element_bytes)

    @property
    def b_panel_bytes(self) -> int:
        """Bytes in a row of a swizzled panel of B."""
        if self.b_major == "k":
            return panel_bytes(self.line_bytes(self.BK))
        columns = min(self.b_columns, self.out_columns)  # a panel is of gate or of up
        return panel_bytes(columns * self.element_bytes)

    @property
    def b_bytes(self) -> int:
        """Bytes of B in a slot of the ring."""
        return self.b_columns * self.line_bytes(self.BK)

    @property
    @override
    def out_panel_columns(self) -> int:
        size = self.out_element_bytes  # whole panels in each half of the lanes
        return panel_bytes(min(self.accumulator_columns, self.out_columns) * size) // size

    @property
    def out_panel_bytes(self) -> int:
        """Bytes of a panel of the output, BM rows of it."""
        return self.BM * self.out_line_bytes(self.out_panel_columns)

    @property
    def slot_panels(self) -> int:
        """Panels that the epilogue works on together: one of each half of the lanes."""
        return 2 if self.accumulator_layout == "halves" else 1

    @property
    def out_bytes(self) -> int:
        """Bytes of a slot of the output."""
        return self.slot_panels * self.out_panel_bytes

    @property
    @override
    def c_panel_columns(self) -> int:
        if not self.c.is_matrix or self.output_scales is None:
            return self.out_panel_columns
        return PANEL_BYTES // self.c_element_bytes

    @property
    def c_panels(self) -> int:
        """Panels of a matrix C that come for a panel of the output."""
        return self.out_panel_columns // self.c_panel_columns

    @property
    def residual_copies(self) -> int:
        """TMA loads of C that a step of the epilogue needs: one of each panel's columns."""
        if self.gated and self.c.axes == ("n",):
            return 2  # gate's columns and up's
        return self.slot_panels if "n" in self.c.axes else 1

    @property
    def residual_copy_bytes(self) -> int:
        """Bytes that TMA brings into a slot of the residual."""
        elements = self.c.elements(self.BM, self.out_panel_columns)
        return self.residual_copies * elements * self.c_element_bytes

    @property
    def residual_bytes(self) -> int:
        """Bytes of a slot of the residual: TMA writes to multiples of 128 bytes."""
        copies = self.residual_copies
        return copies * align_up(self.residual_copy_bytes // copies, PANEL_BYTES)


def panel_bytes(line: int) -> int:
    """Return the widest row of a swizzled panel that tiles a line of ``line`` bytes."""
    return next(row for row in (PANEL_BYTES, 64, 32) if line % row == 0)
