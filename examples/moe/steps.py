# SPDX-License-Identifier: Apache-2.0
"""The layer's steps between products as kernels of PyTorch: eager, or one compiled kernel each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import silu

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK = 128
FP8 = torch.float8_e4m3fn
LARGEST = 448.0
"""Of fp8_e4m3."""
LEAST_SCALE = 2.0**-100

if TYPE_CHECKING:
    Quantised = tuple[torch.Tensor, torch.Tensor]
    """Elements of fp8_e4m3, and scales in float32."""


def gated(both: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * up of the columns of gate, then up."""
    gate, up = both.chunk(2, dim=-1)
    return silu(gate) * up


def combined(rows: torch.Tensor, places: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Return the weighted sum of each token's rows; the sum has a fixed order."""
    weighted: torch.Tensor = rows[places] * factors[..., None].to(rows.dtype)
    return weighted.sum(1)


def quantised_rows(values: torch.Tensor) -> Quantised:
    """Quantise (..., rows, k) with a scale for each row, (..., rows)."""
    elements, scales = _quantised(values.float()[..., None, :])
    return elements.squeeze(-2), scales.squeeze(-1)


def quantised_blocks(values: torch.Tensor) -> Quantised:
    """Quantise (..., rows, k) with a scale for each BLOCK columns, (..., rows, blocks of k)."""
    elements, scales = _quantised(values.float().unflatten(-1, (-1, BLOCK)))
    return elements.flatten(-2), scales


def _quantised(blocks: torch.Tensor) -> Quantised:
    """Quantise with a scale for all of the last axis."""
    scales = (blocks.abs().amax(-1) / LARGEST).clamp_min(LEAST_SCALE)
    return (blocks / scales[..., None]).to(FP8), scales


def quantised_tiles(weights: torch.Tensor) -> Quantised:
    """Quantise (experts, n, k) with a scale for each BLOCK x BLOCK."""
    experts, n, k = weights.shape
    tiles = weights.float().view(experts, n // BLOCK, BLOCK, k // BLOCK, BLOCK).transpose(2, 3)
    elements, scales = _quantised(tiles.flatten(-2))
    elements = elements.view(tiles.shape).transpose(2, 3).reshape(weights.shape)
    return elements, scales


def dequantised(elements: torch.Tensor, scales: torch.Tensor, rows: int) -> torch.Tensor:
    """Return elements with scales of ``rows`` x BLOCK in float32."""
    spread = scales.repeat_interleave(rows, -2) if rows > 1 else scales
    return elements.float() * spread.repeat_interleave(BLOCK, -1)


class Steps(NamedTuple):
    """The functions of this module that a layer calls between products."""

    gated: Callable[[torch.Tensor], torch.Tensor] = gated
    combined: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor] = combined
    quantised_rows: Callable[[torch.Tensor], Quantised] = quantised_rows
    quantised_blocks: Callable[[torch.Tensor], Quantised] = quantised_blocks


EAGER = Steps()


def compiled_steps() -> Steps:
    """Return the steps compiled by torch.compile, for any number of tokens."""
    return Steps(*(torch.compile(step, dynamic=True) for step in EAGER))
