# SPDX-License-Identifier: Apache-2.0
"""The same layer in NumPy, whose two products may be any functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class NumpyRoutes(NamedTuple):
    """The fields of ``layer.Routes``."""

    row_index: NDArray[np.int32]
    row_offsets: NDArray[np.int32]
    places: NDArray[np.int64]
    factors: Floats


class Products(Protocol):
    """The two products of all experts."""

    def hidden(self, tokens: Floats, gate_up: Floats, routes: NumpyRoutes) -> Floats:
        """Return silu(gate) * up, (rows, inner)."""

    def out(self, hidden: Floats, down: Floats, routes: NumpyRoutes) -> Floats:
        """Return the rows of the output, (rows, hidden)."""


class Loops:
    """A loop over experts, in float32."""

    def hidden(self, tokens: Floats, gate_up: Floats, routes: NumpyRoutes) -> Floats:
        """See Products."""
        gate, up = np.split(self.out(tokens[routes.row_index], gate_up, routes), 2, axis=1)
        made: Floats = gate / (1 + np.exp(-gate)) * up
        return made

    def out(self, hidden: Floats, down: Floats, routes: NumpyRoutes) -> Floats:
        """See Products."""
        parts = np.split(hidden, routes.row_offsets[1:-1])
        return np.concatenate([rows @ weight.T for rows, weight in zip(parts, down, strict=True)])


def numpy_routes(logits: Floats, chosen: int) -> NumpyRoutes:
    """Return the routes of tokens to the experts with the largest logits (tokens, experts)."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    shares = powers / powers.sum(1, keepdims=True)
    experts = np.argsort(-shares, axis=1, kind="stable")[:, :chosen]
    order = np.argsort(experts.ravel(), kind="stable")
    offsets = np.searchsorted(experts.ravel()[order], np.arange(logits.shape[1] + 1))
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return NumpyRoutes(
        (order // chosen).astype(np.int32),
        offsets.astype(np.int32),
        places.reshape(experts.shape),
        np.take_along_axis(shares, experts, 1),
    )


def numpy_layer(
    tokens: Floats, weights: Mapping[str, Floats], chosen: int, products: Products
) -> Floats:
    """Return the layer's output for tokens (tokens, hidden)."""
    routes = numpy_routes(tokens @ weights["router"].T, chosen)
    hidden = products.hidden(tokens, weights["gate_up"], routes)
    rows = products.out(hidden, weights["down"], routes)
    made: Floats = (rows[routes.places] * routes.factors[..., None]).sum(1)
    return made
