"""Scales of blocks of A and B, in the plan of a matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operand = Literal["a", "b"]
ROWS: dict[Operand, str] = {"a": "m", "b": "n"}
"""The extent of an operand that is not summed over."""


@dataclass(frozen=True)
class OperandScales:
    """The scales of one operand: one for each block of its elements, along k and across."""

    operand: Operand
    form: str
    """A name of ``fa4gen.scales.forms``: "1x128", "128x128"."""
    dtype: str
    """"fp32" or "ue8m0": the type of a scale."""
    rows: int
    """Rows of A, or columns of B, of a block."""
    columns: int
    """Elements along k of a block."""
    major: str
    """"k", "m" or "n": the extent whose blocks are contiguous in memory; "any" for 128x128."""

    @property
    def name(self) -> Literal["scale_a", "scale_b"]:
        """The argument of a call."""
        return "scale_a" if self.operand == "a" else "scale_b"

    @property
    def is_tensor_map(self) -> bool:
        """Whether TMA brings them; a kernel loads those of large blocks by itself."""
        return self.rows == 1

    @property
    def across(self) -> str:
        """The name of the axis across k: m or n, or of blocks of them."""
        extent = ROWS[self.operand]
        return extent if self.rows == 1 else f"{extent}_blocks"

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, in the order of the operand's own."""
        inner = (self.across, "k_blocks") if self.operand == "a" else ("k_blocks", self.across)
        return ("batch", *inner)

    @property
    def contiguous(self) -> str:
        """The axis that is contiguous; "" where any may be."""
        return {"k": "k_blocks", "any": ""}.get(self.major, self.across)

    def extents(self, m: int, n: int, k: int) -> dict[str, int]:
        """Return the extents of ``axes`` for a product, but for the batch."""
        across = m if self.operand == "a" else n
        return {self.across: -(-across // self.rows), "k_blocks": -(-k // self.columns)}

    @property
    def words(self) -> str:
        """The form and the order in memory."""
        order = f", {self.major}-major" if self.is_tensor_map else ""
        return f"{self.operand.upper()} {self.form} {self.dtype}{order}"
