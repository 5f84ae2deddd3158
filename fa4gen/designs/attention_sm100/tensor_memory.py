"""The tensor-memory map of the Blackwell attention kernel. Columns of 128 lanes x 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.values import TILE_ROWS
from fa4gen.designs.common.model import TensorMemoryRegion

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.values import Values

SCORE_BUFFERS = 2
"""One for each of two query tiles; for one query tile, blocks take turns."""


def has_columns_for_probabilities(values: Values) -> bool:
    """Whether P has columns of its own: its MMA then need not be complete before the next Q.K."""
    apart = _columns(values) + SCORE_BUFFERS * values.probability_columns
    return apart <= values.arch.tensor_memory_columns


def columns_needed(values: Values) -> int:
    """Return the columns of the smallest map: probabilities over their scores."""
    return _columns(values)


def tensor_memory_regions(values: Values) -> tuple[TensorMemoryRegion, ...]:
    """Return scores, outputs and probabilities, each with its first column."""
    rows, dtype = TILE_ROWS, values.config.dtype
    whose = "query tile" if values.num_qo == 2 else "every other block, from"
    scores = [
        TensorMemoryRegion(
            f"scores_{i}", i * values.BN, values.BN,
            f"scores of {whose} {i}: {rows} x {values.BN} float32",
        )
        for i in range(SCORE_BUFFERS)
    ]  # fmt: skip
    column = SCORE_BUFFERS * values.BN
    outputs = [
        TensorMemoryRegion(
            f"output_{i}", column + i * values.value_depth, values.value_depth,
            f"output of query tile {i}: {rows} x {values.value_depth} float32",
        )
        for i in range(values.num_qo)
    ]  # fmt: skip
    apart = has_columns_for_probabilities(values)
    after = outputs[-1].end
    probabilities = [
        TensorMemoryRegion(
            f"probabilities_{i}",
            after + i * values.probability_columns if apart else scores[i].column,
            values.probability_columns,
            f"probabilities of {whose} {i}: {rows} x {values.BN} {dtype}"
            + ("" if apart else ", over the scores they came from"),
        )
        for i in range(SCORE_BUFFERS)
    ]
    return (*scores, *outputs, *probabilities)


def _columns(values: Values) -> int:
    return SCORE_BUFFERS * values.BN + values.num_qo * values.value_depth
