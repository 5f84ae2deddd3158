"""The plan of a matrix product on Blackwell, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_model import (
    AccumulatorLayout,
    GemmPlan,
    accumulator_layout,
    costly_calls,
)
from fa4gen.designs.gemm_sm100.scaling import block_scales
from fa4gen.designs.gemm_sm100.values import panel_bytes
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.model import (
        Barrier,
        Parameter,
        Role,
        SharedRegion,
        TensorMapPlan,
        TensorMemoryRegion,
    )
    from fa4gen.designs.common.plan_fields import Tables
    from fa4gen.designs.gemm_sm100.scaling import BlockScales


@dataclass(frozen=True, kw_only=True)
class BlackwellGemmPlan(GemmPlan):
    """A matrix product by tcgen05, accumulators in tensor memory (sm_100a, sm_103a)."""

    RECORDED = (
        *GemmPlan.RECORDED, "num_accum_stages", "stage_stride_cols", "num_out_stages",
        "tensor_memory", "tensor_memory_columns", "num_scale_stages",
        "elements_per_byte",
    )  # fmt: skip

    tables: Tables
    num_accum_stages: int
    stage_stride_cols: int
    """Columns of tensor memory from one accumulator to the next."""
    num_out_stages: int
    """Slots through which the output passes to global memory."""
    overlap_columns: int
    """Columns that an accumulator has in common with the next."""
    num_scale_stages: int
    """Slots of scales in tensor memory."""

    @property
    def block_scales(self) -> BlockScales:
        """The scales of a block of k."""
        form = self.scales[0].form if self.scales else None
        return block_scales(form, self.dtype, mma_k=self.mma_k, block_k=self.BK, columns=self.BN)

    @property
    @override
    def scaled_kind(self) -> str:
        return self.block_scales.kind

    @property
    def accumulator_layout(self) -> AccumulatorLayout:
        """The arrangement of a CTA's rows in tensor memory."""
        return accumulator_layout(self.BM, self.cta_group)

    @property
    def loads_in_parts(self) -> bool:
        """Whether the epilogue loads the sums of a step in parts of 32 columns.

        Measured: of 64 at once ptxas computes two functions ahead and spills, where no matrix C is
        loaded in between.
        """
        wide = self.out_element_bytes == 2 and self.accumulator_layout != "quarters"
        return wide and costly_calls(self.activation or "") > 1 and not self.c.is_matrix

    @property
    def slot_panels(self) -> int:
        """Panels of the output that the epilogue works on together: one of each half of lanes."""
        return 2 if self.accumulator_layout == "halves" else 1

    @property
    @override
    def out_panel_columns(self) -> int:
        halves = self.accumulator_layout == "halves"
        columns, size = self.BN // 2 if halves else self.BN, self.out_element_bytes
        return panel_bytes(columns * size) // size

    @property
    @override
    def named_barriers(self) -> tuple[tuple[str, int], ...]:
        return self.tables.named_barriers

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        return self.tables.summary

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        return self.tables.roles

    @property
    @override
    def shared(self) -> tuple[SharedRegion, ...]:
        return self.tables.regions

    @property
    @override
    def barrier_rows(self) -> Sequence[Barrier]:
        return self.tables.barriers

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        return self.tables.tensor_maps

    @property
    @override
    def tensor_memory(self) -> tuple[TensorMemoryRegion, ...]:
        return self.tables.tensor_memory

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        return self.tables.parameters

    @property
    @override
    def threads(self) -> int:
        return self.tables.threads

    @property
    @override
    def grid(self) -> str:
        return self.tables.grid

    @property
    @override
    def cluster(self) -> int:
        return self.tables.cluster or self.cta_group
