"""Sizes and roundings of each kernel, for the self-test of a vendored folder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SelftestFacts:
    """Numbers of one kernel; those of the other family are 0."""

    rows: int
    """Rows of the output's tile; of a pair of CTAs that share one, its rows."""
    columns: int
    """Keys of a block, or columns of the output's tile."""
    stage_depth: int
    """Elements along k of a stage."""
    ring: int
    """Keys, or elements along k, that more than fill the ring of stages."""
    descales: bool
    kv_dtype: str
    """C name of the type of key and value."""
    operand: str
    rescale_threshold: float
    probability_shift: int
    exp2_error: float
    products_per_step: int
    alignment_bits: int
    activation: str | None
    """The activation as an expression of C over ``double x``, or ``gate`` and ``up``."""
    activation_float: str | None
    """That expression over ``float``."""
    condition: str | None
    """A mask as a condition over ``int64_t query, key, row, head, key_head, batch``."""
    gated: bool = False
    """Whether the activation is over gate and up."""
    score: str | None = None
    """A score function as an expression over ``double score`` and the names of conditions."""
    mask: str = ""
    """Attention: the header's word for a mask with a name."""
    scales_elements: bool = False
    """Matrix product: elements have scales, and not the sums of blocks."""
    cut_units: float = 0.0
    """Attention: units of 2^-23 by which sums of fewer bits may move a score, in addition."""
    part_rows: int = 0
    """Attention: rows of a tile that lists of blocks name by themselves."""
