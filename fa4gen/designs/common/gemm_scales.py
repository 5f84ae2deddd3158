"""Scales of blocks of A and B, and of a quantised output, in the plan of a matrix product."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Operand = Literal["a", "b"]
ATOM_AXES, ATOM_EXTENTS = ("line", "group", "byte"), (32, 4, 4)
"""The axes of an atom: scales of 128 rows and 4 blocks of k (``fa4gen.scales.atoms``)."""
ATOM_ROWS = 128
TENSOR_CORE_FORMS = ("mxfp8", "mxfp4", "nvfp4")
"""Forms that Blackwell's tensor cores multiply elements with."""
ARRANGED_OUTPUTS = ("mxfp8", "nvfp4")
"""Forms of an output for Blackwell's tensor cores: their scales may be arranged for them."""
ROWS: dict[Operand, str] = {"a": "m", "b": "n"}
"""The extent of an operand that is not summed over."""


def atoms_of_rows(rows: int, groups: int | None = None) -> int:
    """Return how many atoms rows have; each of ``groups`` begins one, so that they are at most."""
    return -(-rows // ATOM_ROWS) if groups is None else rows // ATOM_ROWS + groups


@dataclass(frozen=True)
class OperandScales:
    """The scales of one operand: one for each block of its elements, along k and across."""

    operand: Operand
    form: str
    """A name of ``fa4gen.scales.forms``: "1x128", "128x128", "mxfp8", "mxfp4", "nvfp4"."""
    dtype: str
    """"fp32", "ue8m0" or "ue4m3": the type of a scale."""
    rows: int
    """Rows of A, or columns of B, of a block."""
    columns: int
    """Elements along k of a block."""
    in_atoms: bool = False
    """Whether they are passed in the order of Blackwell's tensor cores."""
    gathered: bool = False
    """Whether A has another number of rows than the output: an index names them."""

    @property
    def name(self) -> Literal["scale_a", "scale_b"]:
        """The argument of a call."""
        return "scale_a" if self.operand == "a" else "scale_b"

    @property
    def across(self) -> str:
        """The name of the axis across k: m or n, or of blocks of them."""
        if self.gathered:
            return "rows"
        extent = ROWS[self.operand]
        return extent if self.rows == 1 else f"{extent}_blocks"

    @property
    def in_tensor_cores(self) -> bool:
        """Whether tensor cores multiply elements with them."""
        return self.form in TENSOR_CORE_FORMS

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the argument's axes."""
        if self.in_atoms:
            return ("batch", f"{self.across}_atoms", "k_atoms", *ATOM_AXES)
        return self.block_axes

    @property
    def loaded_axes(self) -> tuple[str, ...]:
        """The axes as TMA takes the argument: an atom is a line of words of 4 bytes."""
        return (*self.axes[:3], "word") if self.in_atoms else self.axes

    @property
    def block_axes(self) -> tuple[str, ...]:
        """The axes of the blocks, in the order of the operand's own."""
        inner = (self.across, "k_blocks") if self.operand == "a" else ("k_blocks", self.across)
        return ("batch", *inner)

    @property
    def strides(self) -> tuple[str, ...]:
        """The kernel's parameters with the strides of batches, of ``across`` and of k."""
        return tuple(f"{self.name}_{axis}_stride" for axis in ("batch", self.across, "k_blocks"))

    def extents(self, m: int, n: int, k: int, groups: int | None = None) -> dict[str, int]:
        """Return the extents of ``axes`` and of blocks for a product, but for the batch.

        ``groups``: those that the rows of A are divided into, None for those of one matrix.
        """
        across = m if self.operand == "a" else n
        blocks = {self.across: -(-across // self.rows), "k_blocks": -(-k // self.columns)}
        if not self.in_atoms:
            return blocks
        rows = atoms_of_rows(across, groups if self.operand == "a" else None)
        columns = -(-blocks["k_blocks"] // ATOM_EXTENTS[-1])
        atoms = {f"{self.across}_atoms": rows, "k_atoms": columns}
        return blocks | atoms | dict(zip(ATOM_AXES, ATOM_EXTENTS, strict=True))

    def count_bytes(self, m: int, n: int, k: int) -> int:
        """Return the bytes of the argument for a product without a batch."""
        extents = self.extents(m, n, k)
        return math.prod(extents[axis] for axis in self.axes[1:]) * (
            4 if self.dtype == "fp32" else 1
        )

    @property
    def words(self) -> str:
        """The operand, the form and the type."""
        arranged = ", arranged" * self.in_atoms
        return f"{self.operand.upper()} {self.form} {self.dtype}{arranged}"


@dataclass(frozen=True)
class OutputScales:
    """The scales of a quantised output: one for each block of consecutive columns of a row."""

    form: str
    """A name of ``fa4gen.scales.forms``: "1x128", "mxfp8" or "nvfp4"."""
    element: str
    """The type of the output's elements."""
    dtype: str
    """"fp32", "ue8m0" or "ue4m3": the type of a scale."""
    columns: int
    """Columns of a block."""
    in_atoms: bool = False
    """Whether they are written in the order of Blackwell's tensor cores."""
    has_tensor_scale: bool = False
    """Whether a float32 of the whole tensor, an input of the call, divides the output first."""

    name = "out_scales"
    """The argument of a call."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the argument's axes."""
        if self.in_atoms:
            return ("batch", "m_atoms", "block_atoms", *ATOM_AXES)
        return ("batch", "m", "blocks")

    @property
    def strides(self) -> tuple[str, ...]:
        """The kernel's parameters with the strides of batches, rows and blocks, or atoms."""
        return tuple(f"{self.name}_{axis}_stride" for axis in self.axes[:3])

    def extents(self, m: int, n: int, groups: int | None = None) -> dict[str, int]:
        """Return the extents of ``axes`` for an output of (m, n), but for the batch.

        ``groups``: those that its rows are divided into, None for those of one matrix.
        """
        if not self.in_atoms:
            return {"m": m, "blocks": self.blocks(n)}
        atoms = {
            "m_atoms": atoms_of_rows(m, groups),
            "block_atoms": -(-self.blocks(n) // ATOM_EXTENTS[-1]),
        }
        return atoms | dict(zip(ATOM_AXES, ATOM_EXTENTS, strict=True))

    def blocks(self, n: int) -> int:
        """Count the blocks of a row of ``n`` columns."""
        return -(-n // self.columns)

    @property
    def words(self) -> str:
        """The form and the type."""
        return f"{self.form} {self.dtype}" + ", arranged" * self.in_atoms


OUTPUT_FORMS: Mapping[str, OutputScales] = {
    form.form: form
    for form in (
        OutputScales("1x128", "fp8_e4m3", "fp32", 128),
        OutputScales("mxfp8", "fp8_e4m3", "ue8m0", 32),
        OutputScales("nvfp4", "fp4_e2m1", "ue4m3", 16, has_tensor_scale=True),
    )
}
"""The forms of a quantised output."""
