"""What the self-test of a vendored folder reads of each kernel: sizes, roundings, schedules."""

from __future__ import annotations

from dataclasses import dataclass

MULTIPROCESSORS = (132, 148, 78, 1)


@dataclass(frozen=True)
class SelftestFacts:
    """Numbers of one kernel; those of the other family are 0."""

    rows: int
    """Of the output's tile, of a pair of CTAs where they share one."""
    columns: int
    """Keys of a block, or columns of the output's tile."""
    stage_depth: int
    """Elements along k of a stage."""
    ring: int
    """Keys, or elements along k, that more than fill the ring of stages."""
    descales: bool
    rescale_threshold: float
    probability_shift: int
    exp2_error: float
    products_per_step: int
    alignment_bits: int
    activation: str | None
    """As an expression of C over ``double x``."""
    activation_float: str | None
    """The same over ``float x``."""
    schedules: tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]
    """Extents, multiprocessors, and the schedule that the launcher has to make of them."""
