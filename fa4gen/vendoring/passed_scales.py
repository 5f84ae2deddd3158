"""Scales of blocks of a matrix product, as the C launcher passes them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.runtime.gemm_axes import GEMM_DTYPES
from fa4gen.runtime.scale_arguments import SCALE_BYTES

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

C_TYPES = {
    "fp32": "float",
    "ue8m0": "unsigned char (ue8m0)",
    "ue4m3": "unsigned char (e4m3, none below 0)",
}


@dataclass(frozen=True)
class PassedScales:
    """Those of one operand."""

    operand: str
    """a or b."""
    dtype: str
    """fp32, ue8m0 or ue4m3."""
    rows: int
    """Rows of a block of A, or columns of one of B."""
    depth: int
    """Elements of a block along k."""
    in_atoms: bool
    """Whether they are in the order of Blackwell's tensor cores, for TMA; else in any strides."""

    @property
    def name(self) -> str:
        """The argument of a call."""
        return f"scale_{self.operand}"

    @property
    def element_bytes(self) -> int:
        """Bytes of a scale."""
        return SCALE_BYTES[GEMM_DTYPES[self.dtype]]

    @property
    def c_type(self) -> str:
        """The type in the words of the header."""
        return C_TYPES[self.dtype]

    @property
    def block(self) -> str:
        """A block in the words of the header."""
        extents = {"m" if self.operand == "a" else "n": self.rows, "k": self.depth}
        return " x ".join(f"{extent} of {axis}" for axis, extent in extents.items())


def passed_scales(plan: GemmPlan) -> tuple[PassedScales, ...]:
    """Return the scales of a call."""
    return tuple(
        PassedScales(row.operand, row.dtype, row.rows, row.columns, row.in_atoms)
        for row in plan.scales
    )
