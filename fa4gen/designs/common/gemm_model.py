"""The plan of all matrix products: D = activation(alpha * A . B + beta * C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.kernel_model import KernelPlan
from fa4gen.epilogues import residual_of
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.gemm_config import GemmKeys
    from fa4gen.designs.common.gemm_scales import Operand, OperandScales
    from fa4gen.designs.common.model import (
        Barrier,
        Parameter,
        Role,
        SharedRegion,
        TensorMapPlan,
        TensorMemoryRegion,
    )
    from fa4gen.designs.common.plan_fields import Tables
    from fa4gen.epilogues import Residual

AccumulatorLayout = Literal["rows", "quarters", "halves"]
"""rows: a row in each of the 128 lanes. quarters: 64 rows, 16 in the first lanes of each quarter.
halves: 64 rows twice, lanes 64 to 127 with the second half of the columns."""

COSTLY = ("exp(", "tanh(", "sigmoid(", "silu(", "gelu(", "erf(", "log(", "sqrt(")
"""The calls of an activation that need registers of their own."""


def costly_calls(activation: str) -> int:
    """Count the calls in an activation that take registers of their own."""
    return sum(map(activation.count, COSTLY))


def accumulator_layout(rows: int, cta_group: int) -> AccumulatorLayout:
    """Return how ``rows`` of a CTA, 64 or 128, are arranged in tensor memory."""
    if rows == 128:
        return "rows"
    return "halves" if cta_group == 2 else "quarters"


@dataclass(frozen=True, kw_only=True)
class GemmPlan(KernelPlan):
    """The plan of a matrix product.

    ``dtype`` is that of A and B, ``out_dtype`` that of C and D.
    """

    RECORDED = (
        *KernelPlan.RECORDED, "a_major", "b_major", "residual", "activation", "activation_cuda",
        "BM", "BN", "BK", "num_stages", "num_epi_stages", "mma_k", "panel_columns",
        "out_panel_columns",
    )  # fmt: skip

    config: GemmKeys
    tables: Tables
    a_major: str
    """"k" or "m": the extent of A whose elements are contiguous."""
    b_major: str
    """"k" or "n"."""
    residual: str
    """The name of what C is; see ``c``."""
    activation: str | None
    """The activation of alpha * A . B + beta * C, as the config writes it."""
    activation_cuda: str | None
    """The activation as a C++ expression over ``float x``."""
    BM: int
    """Rows of a CTA's tile of the output."""
    BN: int
    """Columns of the tile; a pair has ``cta_group * BM`` rows of as many columns."""
    BK: int
    """Elements along k of one stage."""
    num_stages: int
    num_epi_stages: int
    """Slots for the residual; on Hopper the output passes through the same ones."""
    panel_columns: int
    """Elements of A and B in a row of 128 bytes, which the swizzle permutes."""
    out_panel_columns: int
    """Columns of the output that pass through shared memory together, a swizzled panel."""
    scales: tuple[OperandScales, ...]
    """Those of blocks of A and of B, or none."""

    def scales_of(self, operand: Operand) -> OperandScales | None:
        """Return the scales of A or B, None where they have none."""
        return next((row for row in self.scales if row.operand == operand), None)

    @property
    @override
    def out_dtype(self) -> str:
        return self.config.resolved_out_dtype

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

    @property
    def c(self) -> Residual:
        """The residual C."""
        return residual_of(self.residual)

    @property
    def ctas_per_tile(self) -> int:
        """CTAs of a cluster that work on the same rows of the output."""
        return self.launch.cluster // self.cta_group

    @property
    def tile_rows(self) -> int:
        """Rows of the output that the CTAs of a cluster work on together."""
        return self.cta_group * self.BM

    @property
    def tile_columns(self) -> int:
        """Columns of the output that the CTAs of a cluster work on together."""
        return self.BN

    @property
    def operation(self) -> str:
        """The kernel's function, in a line."""
        scaled = "A . B" if not self.scales else "(scale_a * A) . (scale_b * B)"
        sums = f"alpha * {scaled}" + " + beta * C" * self.c.exists
        output = f"activation({sums})" if self.activation else sums
        return f"matrix product, D = {output}{self.c.operation}"

    @property
    def keeps_addresses(self) -> bool:
        """The epilogue has registers left."""
        return True

    @property
    def output_rings(self) -> tuple[str, ...]:
        """Barriers of the rings in which panels of every tile's output pass between roles."""
        return ()

    @property
    def panels_per_ring(self) -> int:
        """Panels of a tile that pass through each of ``output_rings``."""
        return 0

    @property
    def tile_per_ring(self) -> bool:
        """Whether each of ``output_rings`` has tiles of its own; else they share every tile."""
        return False
