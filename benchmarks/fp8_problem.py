"""Attention in fp8 on a GPU: shapes, random inputs in e4m3, and rows of exact outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """A dense batch; as many keys as query rows."""

    batch: int
    rows: int
    heads: int
    key_heads: int
    depth: int
    causal: bool

    @property
    def words(self) -> str:
        """The shape in words, as in results."""
        mask = "causal" if self.causal else "dense"
        heads = f"{self.heads}/{self.key_heads}"
        return f"{self.batch}x{self.rows}, heads {heads}, depth {self.depth}, {mask}"

    @property
    def operations(self) -> float:
        """Operations by the usual count: half of all pairs where the mask is causal."""
        whole = 4.0 * self.batch * self.heads * self.rows**2 * self.depth
        return whole / 2 if self.causal else whole


@dataclass(frozen=True)
class Inputs:
    """Query, key and value in e4m3 with a scale each, and the same numbers in bf16."""

    narrow: tuple[Any, ...]
    scales: tuple[float, ...]
    wide: tuple[Any, ...]

    @classmethod
    def draw(cls, shape: Shape, rows: int, mean: float) -> Inputs:
        """Draw ``rows`` queries; values have this mean."""
        import torch

        torch.manual_seed(shape.rows)
        of_key = shape.rows, shape.key_heads
        sizes = ((rows, shape.heads, 0.0), (*of_key, 0.0), (*of_key, mean))
        drawn = [
            torch.randn(shape.batch, n, heads, shape.depth, device="cuda") + offset
            for n, heads, offset in sizes
        ]
        scales = tuple(float(x.abs().max()) / 448 for x in drawn)
        narrow = tuple(
            (x / scale).to(torch.float8_e4m3fn) for x, scale in zip(drawn, scales, strict=True)
        )
        wide = tuple(
            (x.float() * scale).to(torch.bfloat16) for x, scale in zip(narrow, scales, strict=True)
        )
        return cls(narrow, scales, wide)

    def head(self, batch: int, head: int, shape: Shape) -> tuple[Any, ...]:
        """Return query, key and value of a query head in float64."""
        of_key = head * shape.key_heads // shape.heads
        return tuple(
            x[batch, :, at].double() * scale
            for x, scale, at in zip(self.narrow, self.scales, (head, of_key, of_key), strict=True)
        )


def exact(inputs: Inputs, shape: Shape, rows: Any) -> Any:
    """Return the output of some rows of the last head in float64."""
    import torch

    query, key, value = inputs.head(shape.batch - 1, shape.heads - 1, shape)
    scores = query[rows] @ key.T * shape.depth**-0.5
    if shape.causal:
        place = torch.arange(shape.rows, device="cuda")
        scores = scores.masked_fill(place[None] > rows[:, None], -math.inf)
    return torch.softmax(scores, 1) @ value


def error(out: Any, wanted: Any, rows: Any) -> float:
    """Return the relative Frobenius error of these rows of the last head."""
    return float((out[-1, rows, -1].double() - wanted).norm() / wanted.norm())
