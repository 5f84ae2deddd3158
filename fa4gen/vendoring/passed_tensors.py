"""Tensors that the C launcher passes on: read ones, those that a launch raises, and lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.declared import MOST_TENSORS
from fa4gen.errors import ConfigError, Problem
from fa4gen.runtime.declared_arguments import ALIGNMENTS

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan

MOST_AXES = 4
"""The most extents of a tensor in C."""
LISTS = 3
"""Tensors of a kernel that walks lists of blocks, its last ones."""


@dataclass(frozen=True)
class PassedTensor:
    """A contiguous tensor of a call."""

    name: str
    dtype: str
    """fp32 or int32."""
    shape: tuple[str | int, ...]
    """Extents: numbers, or by name those of the call; tiles and entries are those of lists."""
    alignment: int = 4
    """Bytes that its address is a multiple of."""
    raised: bool = False
    """The launch raises its numbers."""

    @property
    def c_extents(self) -> tuple[str, ...]:
        """At most MOST_AXES extents in the words of C: numbers at the end are multiplied."""
        shape, last = self.shape, MOST_AXES - 1
        if len(shape) > MOST_AXES:
            shape = (*shape[:last], math.prod(int(one) for one in shape[last:]))
        return tuple(str(one) if isinstance(one, int) else f"OF_{one.upper()}" for one in shape)


def passed_tensors(plan: AttentionPlan) -> tuple[PassedTensor, ...]:
    """Return the tensors of a call in their order; ConfigError for too many."""
    raised = plan.config.raised_tensors
    found = [
        PassedTensor(one.name, one.dtype, one.shape, raised=one in raised)
        for one in plan.named_tensors
    ]
    if plan.lists_blocks:
        found += _lists(plan)
    if len(found) > MOST_TENSORS:
        raise ConfigError(
            Problem(
                f"parameters: {len(found)} tensors with the lists of blocks, and the C launcher "
                f"passes {MOST_TENSORS} at most",
                remedy=f"declare {len(found) - MOST_TENSORS} less, call the kernel by fa4gen.load, "
                "or use blocks: walked",
                key="parameters",
            )
        )
    return tuple(found)


def _lists(plan: AttentionPlan) -> list[PassedTensor]:
    """Return those of ``masks.block_lists``, in the order of the kernel's parameters."""
    from fa4gen.masks.block_lists import PAIRS, list_axes  # of few kernels

    by_batch, by_head = list_axes(plan.mask)
    axes = "batch" if by_batch else 1, "query_heads" if by_head else 1
    shapes: dict[str, tuple[str | int, ...]] = {
        "block_ranges": (*axes, "tiles", PAIRS, 2),
        "block_entries": ("entries",),
        "row_keys": (*axes, "rows", 2),
    }
    return [
        PassedTensor(name, "int32", shape, ALIGNMENTS.get(name, 4))
        for name, shape in shapes.items()
    ]
