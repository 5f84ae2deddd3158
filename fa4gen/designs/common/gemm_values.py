"""Values that follow directly from the config of a matrix product, in both designs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES, DesignValues, G

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_scales import OperandScales
    from fa4gen.epilogues import Residual


@dataclass(frozen=True)
class GemmValues(DesignValues[G]):
    """The decisions of both designs of a matrix product."""

    cta_group: int
    BM: int
    BN: int
    BK: int
    num_stages: int
    num_epi_stages: int
    """Slots for the residual; on Hopper the output passes through the same ones."""

    @property
    def is_pair(self) -> bool:
        """Whether two CTAs work together."""
        return self.cta_group == 2

    @property
    def operand_scales(self) -> tuple[OperandScales, ...]:
        """The scales of A and of B, or none."""
        return ()

    @property
    def c(self) -> Residual:
        """The residual C."""
        return self.config.c

    @property
    def activation_cuda(self) -> str | None:
        """The activation as a C++ expression over ``float x``."""
        text = self.config.activation
        if text is None:
            return None
        from fa4gen.epilogues.activation import parse_activation  # not for kernels without one

        return parse_activation(text).cuda()

    @property
    def out_element_bytes(self) -> int:
        """Bytes of an element of C and of the output."""
        return ELEMENT_BYTES[self.config.resolved_out_dtype]

    @property
    def panel_columns(self) -> int:
        """Elements of A and B in a row of a panel of 128 bytes."""
        return PANEL_BYTES // self.element_bytes * self.elements_per_byte

    @property
    def a_bytes(self) -> int:
        """Bytes of A in a slot of the ring."""
        return self.BM * self.line_bytes(self.BK)

    def line_bytes(self, elements: int) -> int:
        """Return the bytes of contiguous elements of A or B."""
        return elements * self.element_bytes // self.elements_per_byte
