"""Scales of blocks of a matrix product, read and written, as the C launcher passes them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_scales import OutputScales
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
    """Those of one operand, or of the output."""

    operand: str
    """a, b or out."""
    dtype: str
    """fp32, ue8m0 or ue4m3."""
    rows: int
    """Rows of a block of A or the output, or columns of one of B."""
    depth: int
    """Elements of a block along k, or along the columns of the output."""
    in_atoms: bool
    """Whether they are in the order of Blackwell's tensor cores, for TMA; else in any strides."""

    @property
    def name(self) -> str:
        """The argument of a call."""
        return OutputScales.name if self.operand == "out" else f"scale_{self.operand}"

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
        across, along = AXES[self.operand]
        extents = {across: self.rows, along: self.depth}
        return " x ".join(f"{extent} of {axis}" for axis, extent in extents.items())


AXES = {"a": ("m", "k"), "b": ("n", "k"), "out": ("m", "n")}
"""The extents that a block covers, by operand."""


def passed_output_scales(plan: GemmPlan) -> PassedScales | None:
    """Return the scales that a call writes, None where the output has none."""
    scales = plan.output_scales
    if scales is None:
        return None
    return PassedScales("out", scales.dtype, 1, scales.columns, scales.in_atoms)


def passed_scales(plan: GemmPlan) -> tuple[PassedScales, ...]:
    """Return the scales of a call."""
    return tuple(
        PassedScales(row.operand, row.dtype, row.rows, row.columns, row.in_atoms)
        for row in plan.scales
    )
