"""The goals of further cases."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wanted:
    """The parts of a kernel that the cases did not reach, for choosing further ones."""

    rings: bool = False
    """Some did not wrap twice."""
    branches: bool = False
    """Some went one way only."""
    rescales_taken: bool = False
    rescales_skipped: bool = False
    several_tiles: bool = False
    """No CTA took more than one tile."""
    single_tile: bool = False
    """Every CTA took more than one."""
