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

    @property
    def name(self) -> Literal["scale_a", "scale_b"]:
        """The argument of a call."""
        return "scale_a" if self.operand == "a" else "scale_b"

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
    def strides(self) -> tuple[str, ...]:
        """The kernel's parameters with the strides of batches, of ``across`` and of k."""
        return tuple(f"{self.name}_{axis}_stride" for axis in ("batch", self.across, "k_blocks"))

    def extents(self, m: int, n: int, k: int) -> dict[str, int]:
        """Return the extents of ``axes`` for a product, but for the batch."""
        across = m if self.operand == "a" else n
        return {self.across: -(-across // self.rows), "k_blocks": -(-k // self.columns)}

    @property
    def words(self) -> str:
        """The operand, the form and the type."""
        return f"{self.operand.upper()} {self.form} {self.dtype}"
