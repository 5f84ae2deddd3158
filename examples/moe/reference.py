# SPDX-License-Identifier: Apache-2.0
"""The same layer in NumPy, whose two products may be any functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class NumpyRoutes(NamedTuple):
    """The fields of ``layer.Routes``, and what follows from them."""

    order: NDArray[np.int32]
    row_offsets: NDArray[np.int32]
    factors: Floats

    @property
    def row_index(self) -> NDArray[np.int32]:
        """The token of each row."""
        return self.order // np.int32(self.factors.shape[1])

    @property
    def row_weights(self) -> Floats:
        """The weight of each row."""
        return self.factors.ravel()[self.order]

    @property
    def places(self) -> NDArray[np.int64]:
        """The rows of each token, (tokens, chosen)."""
        return np.argsort(self.order).reshape(self.factors.shape)


class Products(Protocol):
    """The two products of all experts."""

    def hidden(self, tokens: Floats, gate_up: Floats, routes: NumpyRoutes) -> Any:
        """Return silu(gate) * up, (rows, inner), in any form that ``weighted`` takes."""

    def weighted(self, hidden: Any, down: Floats, routes: NumpyRoutes) -> Floats:
        """Return the weighted rows of each token, (tokens, chosen, hidden)."""


class Loops:
    """A loop over experts, in float32."""

    def hidden(self, tokens: Floats, gate_up: Floats, routes: NumpyRoutes) -> Floats:
        """Multiply rows of tokens by an index."""
        gate, up = np.split(self.multiply(tokens[routes.row_index], gate_up, routes), 2, axis=1)
        made: Floats = gate / (1 + np.exp(-gate)) * up
        return made

    def weighted(self, hidden: Floats, down: Floats, routes: NumpyRoutes) -> Floats:
        """Multiply, and find the rows of each token."""
        rows = self.multiply(hidden, down, routes)
        return rows[routes.places] * routes.factors[..., None]

    def multiply(self, a: Floats, weights: Floats, routes: NumpyRoutes) -> Floats:
        """Return rows of A, in the order of experts, times the weights of their experts."""
        parts = np.split(a, routes.row_offsets[1:-1])
        return np.concatenate(
            [rows @ weight.T for rows, weight in zip(parts, weights, strict=True)]
        )


def numpy_routes(logits: Floats, chosen: int) -> NumpyRoutes:
    """Return the routes of tokens to the experts with the largest logits (tokens, experts)."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    shares = powers / powers.sum(1, keepdims=True)
    experts = np.argsort(-shares, axis=1, kind="stable")[:, :chosen]
    order = np.argsort(experts.ravel(), kind="stable")
    offsets = np.searchsorted(experts.ravel()[order], np.arange(logits.shape[1] + 1))
    factors = np.take_along_axis(shares, experts, 1)
    return NumpyRoutes(order.astype(np.int32), offsets.astype(np.int32), factors)


def numpy_layer(
    tokens: Floats, weights: Mapping[str, Floats], chosen: int, products: Products
) -> Floats:
    """Return the layer's output for tokens (tokens, hidden)."""
    routes = numpy_routes(tokens @ weights["router"].T, chosen)
    hidden = products.hidden(tokens, weights["gate_up"], routes)
    made: Floats = products.weighted(hidden, weights["down"], routes).sum(1)
    return made
