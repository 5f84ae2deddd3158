"""Block scales of a product on Blackwell: its instructions, and where the scales of a block are.

Scales come in atoms of 512 bytes, those of 128 rows and 4 blocks of k (``fa4gen.scales.atoms``).
TMA brings the atoms of a block of k into shared memory, or warps make them of row-major scales;
``tcgen05.cp`` copies each into 4 columns
of tensor memory, and the products read them there: one of ``per_product`` scales of a row at a
time, from the byte that the instruction descriptor names.
"""

from __future__ import annotations

from dataclasses import dataclass

ATOM_ROWS, ATOM_COLUMNS = 128, 4
ATOM_BYTES = ATOM_ROWS * ATOM_COLUMNS
ATOM_TENSOR_COLUMNS = 4
"""Columns of tensor memory of an atom: its 32 lines are in the lanes of each quarter."""
MOST_SCALE_STAGES = 4
"""Slots of scales in tensor memory beyond which nothing is gained: two do the work."""
ELEMENT_CODES = {"fp8_e4m3": 0, "fp8_e5m2": 1, "fp4_e2m1": 1}
"""The types of A and B in the instruction descriptor, of their kinds."""


@dataclass(frozen=True)
class Form:
    """A form of block scales, as ``fa4gen.scales`` has it, and its instruction."""

    kind: str
    """The kind of tcgen05.mma."""
    dtypes: tuple[str, ...]
    """The types of elements."""
    columns: int
    """Elements along k that share a scale."""
    powers_of_two: bool
    """Whether scales are ue8m0, and not ue4m3."""


FORMS = {
    "mxfp8": Form("mxf8f6f4", ("fp8_e4m3", "fp8_e5m2"), 32, powers_of_two=True),
    "mxfp4": Form("mxf4", ("fp4_e2m1",), 32, powers_of_two=True),
    "nvfp4": Form("mxf4nvf4", ("fp4_e2m1",), 16, powers_of_two=False),
}


@dataclass(frozen=True)
class BlockScales:
    """The scales of a block of BK along k; of a product without scales, nothing."""

    kind: str
    """The kind of tcgen05.mma; "" without scales."""
    element_code: int
    powers_of_two: bool
    """Whether scales are ue8m0, and not ue4m3."""
    columns: int
    """Elements along k that share a scale."""
    per_product: int
    """Scales of a row that one product reads."""
    vector: str
    """The qualifier of the instruction for them. Both spellings make the same machine code:
    targets of families have the elements of a scale alone, CUDA before 12.9 the count alone."""
    k_atoms: int
    """Atoms along k."""
    b_atoms: int
    """Atoms along the columns of a tile of B; A's rows, 128 of them, are one."""

    @property
    def a_bytes(self) -> int:
        """Bytes of A's scales in a slot of the ring."""
        return self.k_atoms * ATOM_BYTES

    @property
    def b_bytes(self) -> int:
        """Bytes of B's scales in a slot of the ring."""
        return self.b_atoms * self.a_bytes

    @property
    def a_columns(self) -> int:
        """Columns of tensor memory that A's scales take."""
        return self.k_atoms * ATOM_TENSOR_COLUMNS

    @property
    def tensor_columns(self) -> int:
        """Columns of tensor memory that the scales of A and B take."""
        return (1 + self.b_atoms) * self.a_columns

    @property
    def atom_k(self) -> int:
        """Elements along k whose scales are in an atom."""
        return ATOM_COLUMNS * self.columns


NO_SCALES = BlockScales("", 0, False, 0, 0, "", 0, 0)


def block_scales(
    name: str | None, dtype: str, *, mma_k: int, block_k: int, columns: int, family: bool
) -> BlockScales:
    """Return the scales of a block of the form called ``name``, of nothing for None.

    ``block_k``: elements along k of the block; ``columns``: of a tile; ``family``: whether the
    kernel is for a family of architectures.
    """
    if name is None:
        return NO_SCALES
    form = FORMS[name]
    per_product = mma_k // form.columns
    return BlockScales(
        kind=form.kind,
        element_code=ELEMENT_CODES.get(dtype, 0),
        powers_of_two=form.powers_of_two,
        columns=form.columns,
        per_product=per_product,
        vector=f"block{form.columns}" if family else f"scale_vec::{per_product}X",
        k_atoms=block_k // (ATOM_COLUMNS * form.columns),
        b_atoms=-(-columns // ATOM_ROWS),
    )
