"""Keys that do not go together with the amax of an output, on every architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

Exclusion = tuple[str, object, bool, str]
"""A key, the value that it may have, whether the plan has another one, and the reason."""
PAIR_BYTES = 2
"""Bytes of an element of the output, of which two are packed at once."""


def amax_excludes(plan: GemmPlan) -> tuple[Exclusion, ...]:
    """Return the exclusions that all products have."""
    return (
        ("activation", None, plan.gated, "values are those of gate and up apart"),
        (
            "out_dtype",
            "auto",
            plan.out_element_bytes != PAIR_BYTES,
            "pairs of 16 bits are looked at",
        ),
    )
