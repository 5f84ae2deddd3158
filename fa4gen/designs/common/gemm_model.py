"""The plan of all matrix products: D = activation(alpha * A . B + beta * C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.kernel_model import KernelPlan
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.epilogues import residual_of
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_config import GemmKeys
    from fa4gen.designs.common.gemm_scales import Operand, OperandScales
    from fa4gen.epilogues import Residual

COSTLY = ("exp(", "tanh(", "sigmoid(", "silu(", "gelu(", "erf(", "log(", "sqrt(")
"""The calls of an activation that need registers of their own."""


def costly_calls(activation: str) -> int:
    """Count the calls in an activation that take registers of their own."""
    return sum(map(activation.count, COSTLY))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
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
    keeps_addresses: bool = True
    """The epilogue has registers left."""
    BM: int
    """Rows of a CTA's tile of the output."""
    BN: int
    """Columns of the tile; a pair has ``cta_group * BM`` rows of as many columns."""
    BK: int
    """Elements along k of one stage."""
    num_stages: int = 1
    num_epi_stages: int = 1
    """Slots for the residual; on Hopper the output passes through the same ones."""
    scales: tuple[OperandScales, ...]
    """Those of blocks of A and of B, or none."""

    @property
    def a_major(self) -> str:
        """The extent of A whose elements are contiguous: "k" or "m"."""
        return self.config.a_major

    @property
    def b_major(self) -> str:
        """The extent of B whose elements are contiguous: "k" or "n"."""
        return self.config.b_major

    @property
    def residual(self) -> str:
        """The name of what C is; see ``c``."""
        return self.config.residual

    @property
    def activation(self) -> str | None:
        """The activation of alpha * A . B + beta * C, as the config writes it."""
        return self.config.activation

    @property
    def activation_cuda(self) -> str | None:
        """The activation as a C++ expression over ``float x``."""
        if self.activation is None:
            return None
        from fa4gen.epilogues.activation import parse_activation  # not for kernels without one

        return parse_activation(self.activation).cuda()

    @property
    def panel_columns(self) -> int:
        """Elements of A and B in a row of 128 bytes, which the swizzle permutes."""
        return PANEL_BYTES // self.element_bytes * self.elements_per_byte

    @property
    def out_panel_columns(self) -> int:
        """Columns of the output that pass through shared memory together, a swizzled panel."""
        raise NotImplementedError

    @property
    def a_bytes(self) -> int:
        """Bytes of A in a slot of the ring."""
        return self.BM * self.line_bytes(self.BK)

    def line_bytes(self, elements: int) -> int:
        """Return the bytes of contiguous elements of A or B."""
        return elements * self.element_bytes // self.elements_per_byte

    def scales_of(self, operand: Operand) -> OperandScales | None:
        """Return the scales of A or B, None where they have none."""
        return next((row for row in self.scales if row.operand == operand), None)

    @property
    def b_dtype(self) -> str:
        """The type of B; ``dtype`` is A's."""
        return self.config.resolved_b_dtype

    @property
    @override
    def out_dtype(self) -> str:
        return self.config.resolved_out_dtype

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
        scaled = "A . B" if not self.scales else "(scales * A) . (scales * B)"
        sums = f"alpha * {scaled}" + " + beta * C" * self.c.exists
        output = f"activation({sums})" if self.activation else sums
        return f"matrix product, D = {output}{self.c.operation}"

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
