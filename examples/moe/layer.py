# SPDX-License-Identifier: Apache-2.0
"""A mixture-of-experts layer: routes of tokens, products of all experts, their sum for each token.

Nothing here waits for the GPU, and no shape depends on the routes: a call can be captured into a
CUDA graph and replayed with other tokens.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from torch.nn.functional import silu

if TYPE_CHECKING:
    from collections.abc import Mapping

VENDORED = Path(__file__).parent / "third_party/moe/adapters/torch"


@dataclass(frozen=True)
class Shape:
    """The sizes of a layer."""

    hidden: int
    inner: int
    """Columns of gate, of up, and rows of the second weights."""
    experts: int
    chosen: int
    """Experts of a token."""


OLMOE = Shape(hidden=2048, inner=1024, experts=64, chosen=8)
"""OLMoE-1B-7B."""
FEW = 32
"""Rows of a tile of the kernels for few rows an expert."""
SMALL = Shape(hidden=64, inner=32, experts=8, chosen=2)


@dataclass(frozen=True)
class Routes:
    """Rows of the products: a token for each of its experts, in the order of experts."""

    row_index: torch.Tensor
    """int32 (tokens * chosen): the token of each row."""
    row_offsets: torch.Tensor
    """int32 (experts + 1): the first row of each expert, and the end of the last one's."""
    places: torch.Tensor
    """(tokens, chosen): the rows of each token."""
    factors: torch.Tensor
    """(tokens, chosen): how much each of them counts, float32."""


def routes_of(logits: torch.Tensor, chosen: int) -> Routes:
    """Return the routes of tokens to the experts with the largest logits (tokens, experts)."""
    factors, experts = logits.float().softmax(-1).topk(chosen)
    order = experts.flatten().argsort(stable=True)
    first = torch.arange(logits.shape[1] + 1, device=logits.device)
    offsets = torch.searchsorted(experts.flatten()[order], first)
    places = torch.empty_like(order)
    places[order] = torch.arange(order.numel(), device=order.device)
    return Routes((order // chosen).int(), offsets.int(), places.view_as(experts), factors)


class Experts(Protocol):
    """The two products of all experts, whose weights are (experts, columns, k)."""

    def hidden(self, tokens: torch.Tensor, gate_up: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Return silu(gate) * up, (rows, inner), where rows of gate_up are gate's, then up's."""

    def out(self, hidden: torch.Tensor, down: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Return the rows of the output, (rows, hidden)."""


class Kernels:
    """The vendored kernels: no copy of permuted tokens, and no gate and up in memory."""

    def __init__(self) -> None:
        """Import them; they run on Hopper, in bf16."""
        sys.path.insert(0, str(VENDORED))
        import moe_torch

        self._gate_up = moe_torch.gate_up_few, moe_torch.gate_up
        self._down = moe_torch.down_few, moe_torch.down

    def hidden(self, tokens: torch.Tensor, gate_up: torch.Tensor, routes: Routes) -> torch.Tensor:
        """See Experts."""
        where = {"row_offsets": routes.row_offsets, "row_index": routes.row_index}
        kernel = self._gate_up[has_many_rows(routes)]
        made: torch.Tensor = kernel(tokens, gate_up.mT, **where)
        return made

    def out(self, hidden: torch.Tensor, down: torch.Tensor, routes: Routes) -> torch.Tensor:
        """See Experts."""
        kernel = self._down[has_many_rows(routes)]
        made: torch.Tensor = kernel(hidden, down.mT, row_offsets=routes.row_offsets)
        return made


def has_many_rows(routes: Routes) -> bool:
    """Return whether an expert has more than FEW rows on average, which no route changes."""
    experts = len(routes.row_offsets) - 1
    return len(routes.row_index) > FEW * experts


class GroupedMm:
    """torch._grouped_mm, with kernels of their own for permuted tokens and for the gate."""

    def hidden(self, tokens: torch.Tensor, gate_up: torch.Tensor, routes: Routes) -> torch.Tensor:
        """See Experts."""
        permuted = tokens[routes.row_index]
        both = torch._grouped_mm(permuted, gate_up.mT, offs=routes.row_offsets[1:])
        return gated(both)

    def out(self, hidden: torch.Tensor, down: torch.Tensor, routes: Routes) -> torch.Tensor:
        """See Experts."""
        return torch._grouped_mm(hidden, down.mT, offs=routes.row_offsets[1:])


class Loop:
    """Plain PyTorch: a loop over experts, which waits for the offsets."""

    def hidden(self, tokens: torch.Tensor, gate_up: torch.Tensor, routes: Routes) -> torch.Tensor:
        """See Experts."""
        return gated(self.out(tokens[routes.row_index], gate_up, routes))

    def out(self, hidden: torch.Tensor, down: torch.Tensor, routes: Routes) -> torch.Tensor:
        """See Experts."""
        sizes = routes.row_offsets.diff().tolist()
        parts = zip(hidden.split(sizes), down, strict=True)
        return torch.cat([rows @ weight.T for rows, weight in parts])


def gated(both: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * up of the columns of gate, then up."""
    gate, up = both.chunk(2, dim=-1)
    return silu(gate) * up


def random_weights(
    shape: Shape, seed: int, dtype: torch.dtype, device: str
) -> dict[str, torch.Tensor]:
    """Return the router's weights and those of all experts, (experts, columns, k)."""
    generator = torch.Generator(device).manual_seed(seed)

    def weight(*extents: int) -> torch.Tensor:
        made = torch.randn(extents, generator=generator, dtype=torch.float32, device=device)
        return (made / extents[-1] ** 0.5).to(dtype)

    return {
        "router": weight(shape.experts, shape.hidden),
        "gate_up": weight(shape.experts, 2 * shape.inner, shape.hidden),
        "down": weight(shape.experts, shape.hidden, shape.inner),
    }


def layer(
    tokens: torch.Tensor, weights: Mapping[str, torch.Tensor], chosen: int, experts: Experts
) -> torch.Tensor:
    """Return the layer's output for tokens (tokens, hidden)."""
    return routed(tokens, weights, routes_of(tokens @ weights["router"].T, chosen), experts)


def routed(
    tokens: torch.Tensor, weights: Mapping[str, torch.Tensor], routes: Routes, experts: Experts
) -> torch.Tensor:
    """Return the output for tokens with these routes; the sum has a fixed order.

    Factors are rounded to the rows' type: products in float32 would be written to memory.
    """
    rows = experts.out(experts.hidden(tokens, weights["gate_up"], routes), weights["down"], routes)
    return (rows[routes.places] * routes.factors[..., None].to(rows.dtype)).sum(1)
