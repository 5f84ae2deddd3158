# SPDX-License-Identifier: Apache-2.0
"""A mixture-of-experts layer: routes of tokens, products of all experts, their sum for each token.

Nothing here waits for the GPU, and no shape depends on the routes: a call can be captured into a
CUDA graph and replayed with other tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from steps import BLOCK, EAGER, dequantised, gated, quantised_tiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steps import Steps


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
SMALL = Shape(hidden=256, inner=128, experts=8, chosen=2)


@dataclass(frozen=True)
class Routes:
    """Rows of the products: a token for each of its experts, in the order of experts."""

    order: torch.Tensor
    """int32 (tokens * chosen): which choice each row is, numbered token by token."""
    row_offsets: torch.Tensor
    """int32 (experts + 1): the first row of each expert, and the end of the last one's."""
    factors: torch.Tensor
    """(tokens, chosen): the weights of the choices, float32."""

    @cached_property
    def row_index(self) -> torch.Tensor:
        """The token of each row, int32."""
        return self.order // self.factors.shape[1]

    @cached_property
    def row_weights(self) -> torch.Tensor:
        """The weight of each row, float32."""
        return self.factors.flatten()[self.order]

    @cached_property
    def places(self) -> torch.Tensor:
        """The rows of each token, (tokens, chosen)."""
        places = torch.empty_like(self.order)
        places[self.order] = torch.arange(len(self.order), dtype=places.dtype, device=places.device)
        return places.view_as(self.factors)

    @property
    def has_many_rows(self) -> bool:
        """Whether an expert has more than FEW rows on average, which no route changes."""
        return len(self.order) > FEW * (len(self.row_offsets) - 1)


def routes_of(logits: torch.Tensor, chosen: int) -> Routes:
    """Return the routes of tokens to the experts with the largest logits (tokens, experts)."""
    factors, experts = logits.float().softmax(-1).topk(chosen)
    sorted_experts, order = experts.flatten().sort(stable=True)
    first = torch.arange(logits.shape[1] + 1, device=logits.device)
    offsets = torch.searchsorted(sorted_experts, first)
    return Routes(order.int(), offsets.int(), factors)


class Experts(Protocol):
    """The products of all experts, with their weights."""

    def __call__(self, tokens: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Return the weighted sum of each token's rows, (tokens, hidden)."""


Weights = dict[str, torch.Tensor]
"""The router's weights, and gate_up and down of all experts, (experts, columns, k)."""


class Kernels:
    """fa4gen's kernels: no copy of permuted tokens, no gate and up in memory, weighted rows."""

    def __init__(
        self, weights: Weights, kernels: Mapping[str, Callable[..., torch.Tensor]]
    ) -> None:
        """Take the functions ``gate_up``, ``down`` and those for few rows; Hopper, bf16."""
        self._gate_up, self._down = weights["gate_up"].mT, weights["down"].mT
        self._kernels = kernels

    def __call__(self, tokens: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Multiply rows by an index, and store the second product's where each token sums them."""
        few = "" if routes.has_many_rows else "_few"
        offsets = routes.row_offsets
        hidden = self._kernels[f"gate_up{few}"](
            tokens, self._gate_up, row_offsets=offsets, row_index=routes.row_index
        )
        rows = self._kernels[f"down{few}"](
            hidden, self._down, **scattered(routes), out=new_rows(routes, self._down)
        )
        return rows.view(*routes.factors.shape, -1).sum(1)


class QuantisedKernels:
    """The kernels in fp8 with scales of blocks; the first quantises what the second reads."""

    def __init__(
        self, weights: Weights, kernels: Mapping[str, Callable[..., torch.Tensor]], steps: Steps
    ) -> None:
        """Quantise the weights; take the functions ``gate_up_fp8``, ``down_fp8`` and so on."""
        self._gate_up, self._gate_up_scales = quantised_tiles(weights["gate_up"])
        self._down, self._down_scales = quantised_tiles(weights["down"])
        self._kernels, self._steps = kernels, steps

    def __call__(self, tokens: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Quantise the tokens, once each; hidden values leave the first kernel quantised."""
        few = "" if routes.has_many_rows else "_few"
        elements, scales = self._steps.quantised_blocks(tokens)
        hidden, hidden_scales = self._kernels[f"gate_up_fp8{few}"](
            elements,
            self._gate_up.mT,
            scale_a=scales,
            scale_b=self._gate_up_scales.mT,
            row_offsets=routes.row_offsets,
            row_index=routes.row_index,
        )
        rows = self._kernels[f"down_fp8{few}"](
            hidden,
            self._down.mT,
            scale_a=hidden_scales,
            scale_b=self._down_scales.mT,
            **scattered(routes),
            out=new_rows(routes, self._down.mT),
        )
        return rows.view(*routes.factors.shape, -1).sum(1)


def scattered(routes: Routes) -> dict[str, torch.Tensor]:
    """Return the arguments of a product that stores weighted rows by token."""
    return {
        "row_offsets": routes.row_offsets,
        "out_index": routes.order,
        "row_weights": routes.row_weights,
    }


def new_rows(routes: Routes, b: torch.Tensor) -> torch.Tensor:
    """Return an output for a row of each choice."""
    return b.new_empty(len(routes.order), b.shape[-1], dtype=torch.bfloat16)


class GroupedMm:
    """torch._grouped_mm, with kernels of their own for permuted tokens, the gate and the sum."""

    def __init__(self, weights: Weights, steps: Steps) -> None:
        """Take the weights."""
        self._gate_up, self._down, self._steps = weights["gate_up"], weights["down"], steps

    def __call__(self, tokens: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Permute, multiply, gate, multiply, sum."""
        ends = routes.row_offsets[1:]
        both = torch._grouped_mm(tokens[routes.row_index], self._gate_up.mT, offs=ends)
        rows = torch._grouped_mm(self._steps.gated(both), self._down.mT, offs=ends)
        return self._steps.combined(rows, routes.places, routes.factors)


class ScaledGroupedMm:
    """torch._scaled_grouped_mm: fp8 with a scale for each row of A and each column of B."""

    def __init__(self, weights: Weights, steps: Steps) -> None:
        """Quantise the weights."""
        self._gate_up, self._gate_up_scales = EAGER.quantised_rows(weights["gate_up"])
        self._down, self._down_scales = EAGER.quantised_rows(weights["down"])
        self._steps = steps

    def __call__(self, tokens: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Quantise and permute, multiply, gate, quantise, multiply, sum."""
        elements, scales = self._steps.quantised_rows(tokens)
        a = elements.view(torch.uint8)[routes.row_index].view(elements.dtype)
        both = self._multiply(
            a, scales[routes.row_index], self._gate_up, self._gate_up_scales, routes
        )
        hidden, scales = self._steps.quantised_rows(self._steps.gated(both))
        rows = self._multiply(hidden, scales, self._down, self._down_scales, routes)
        return self._steps.combined(rows, routes.places, routes.factors)

    @staticmethod
    def _multiply(
        a: torch.Tensor,
        scale_a: torch.Tensor,
        weights: torch.Tensor,
        scale_b: torch.Tensor,
        routes: Routes,
    ) -> torch.Tensor:
        return torch._scaled_grouped_mm(
            a,
            weights.mT,
            scale_a,
            scale_b,
            offs=routes.row_offsets[1:],
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
        )


class Loop:
    """Plain PyTorch: a loop over experts, which waits for the offsets."""

    def __init__(self, weights: Weights, dtype: torch.dtype) -> None:
        """Take the weights, and the type of tokens, products and their sum."""
        self._weights = {name: weights[name].to(dtype) for name in ("gate_up", "down")}
        self._dtype = dtype

    def __call__(self, tokens: torch.Tensor, routes: Routes) -> torch.Tensor:
        """Multiply the rows of each expert."""
        a = self.rounded(tokens.to(self._dtype))[routes.row_index]
        hidden = self.rounded(gated(self._multiply(a, "gate_up", routes)))
        rows = self._multiply(hidden, "down", routes)
        return EAGER.combined(rows, routes.places, routes.factors)

    def rounded(self, values: torch.Tensor) -> torch.Tensor:
        """Return what a product reads of tokens or hidden values."""
        return values

    def _multiply(self, a: torch.Tensor, name: str, routes: Routes) -> torch.Tensor:
        sizes = routes.row_offsets.diff().tolist()
        parts = zip(a.split(sizes), self._weights[name], strict=True)
        return torch.cat([rows @ weight.T for rows, weight in parts])


class QuantisedLoop(Loop):
    """The loop with tokens, hidden values and weights rounded to fp8 with scales of blocks."""

    def __init__(self, weights: Weights, dtype: torch.dtype) -> None:
        """Round the weights."""
        rounded = {
            name: dequantised(*quantised_tiles(weights[name]), rows=BLOCK)
            for name in ("gate_up", "down")
        }
        super().__init__(rounded, dtype)

    def rounded(self, values: torch.Tensor) -> torch.Tensor:
        """Round to fp8 and back."""
        return dequantised(*EAGER.quantised_blocks(values), rows=1).to(values.dtype)


def random_weights(shape: Shape, seed: int, dtype: torch.dtype, device: str) -> Weights:
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
    tokens: torch.Tensor, router: torch.Tensor, chosen: int, experts: Experts
) -> torch.Tensor:
    """Return the layer's output for tokens (tokens, hidden)."""
    return experts(tokens, routes_of(tokens @ router.T, chosen))
