# SPDX-License-Identifier: Apache-2.0
"""The blocks of a layer: by PyTorch, and by products of fa4gen with fused epilogues."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import rms_norm, silu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from decoder import Shape

    Step = Callable[..., torch.Tensor]


class PyTorch:
    """Operators of PyTorch; weights are rounded to the type of x."""

    def __init__(self, shape: Shape) -> None:
        """Take the model's extents."""
        self._epsilon, self._depth, self._columns = shape.rms_norm_eps, shape.head_dim, shape.qkv

    def normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return RMSNorm of x."""
        return rms_norm(x, x.shape[-1:], weight.to(x.dtype), self._epsilon)

    def opened(self, x: torch.Tensor, norm: torch.Tensor, qkv: torch.Tensor) -> torch.Tensor:
        """See Blocks."""
        return multiplied(self.normed(x, norm), qkv)

    def rotated(
        self,
        qkv: torch.Tensor,
        cosines: torch.Tensor,
        sines: torch.Tensor,
        slots: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        """See Blocks."""
        parts = qkv.split(self._columns, -1)
        query, key, value = (x.unflatten(-1, (-1, self._depth)) for x in parts)
        keys[slots] = turned(key, cosines, sines).to(keys.dtype)
        values[slots] = value.to(values.dtype)
        return turned(query, cosines, sines)

    def closed(
        self,
        attended: torch.Tensor,
        x: torch.Tensor,
        out: torch.Tensor,
        norm: torch.Tensor,
        gate_up: torch.Tensor,
        down: torch.Tensor,
    ) -> torch.Tensor:
        """See Blocks."""
        x = x + multiplied(attended, out)
        gate, up = multiplied(self.normed(x, norm), gate_up).chunk(2, -1)
        return x + multiplied(silu(gate) * up, down)

    def logits(self, x: torch.Tensor, norm: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """See Blocks."""
        return multiplied(self.normed(x, norm), head)


def multiplied(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return x times a weight (n, k), transposed."""
    return x @ weight.to(x.dtype).T


def turned(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Return rows (rows, heads, depth) rotated by their positions."""
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


class Steps(NamedTuple):
    """The functions of PyTorch's blocks, eager or compiled."""

    normed: Step
    opened: Step
    rotated: Step
    closed: Step
    logits: Step


def eager(shape: Shape) -> Steps:
    """Return the operators as they are."""
    blocks = PyTorch(shape)
    return Steps(blocks.normed, blocks.opened, blocks.rotated, blocks.closed, blocks.logits)


def compiled(shape: Shape, *, dependent: bool = False) -> Steps:
    """Return them compiled: one kernel for all that is between two products, in most cases.

    ``dependent``: Inductor's kernels have dependent launches, where ``inductor_overlaps()``.
    """
    options = {"triton.enable_pdl": True} if dependent else None
    return Steps(*(torch.compile(one, dynamic=False, options=options) for one in eager(shape)))


def inductor_overlaps() -> bool:
    """Whether this PyTorch's Inductor can give its kernels dependent launches."""
    from torch._inductor import config

    return hasattr(config.triton, "enable_pdl")


class Kernels:
    """fa4gen's products, which add residuals and gate in epilogues; norms and rotation by steps."""

    def __init__(self, steps: Steps, kernels: Mapping[str, Step]) -> None:
        """Take the functions ``qkv``, ``residual``, ``gate_up`` and ``head``."""
        self._normed, self._kernels = steps.normed, kernels
        self.rotated = steps.rotated

    def opened(self, x: torch.Tensor, norm: torch.Tensor, qkv: torch.Tensor) -> torch.Tensor:
        """See Blocks."""
        return self._kernels["qkv"](self._normed(x, norm), qkv.T)

    def closed(
        self,
        attended: torch.Tensor,
        x: torch.Tensor,
        out: torch.Tensor,
        norm: torch.Tensor,
        gate_up: torch.Tensor,
        down: torch.Tensor,
    ) -> torch.Tensor:
        """See Blocks."""
        x = self._kernels["residual"](attended, out.T, x)
        hidden = self._kernels["gate_up"](self._normed(x, norm), gate_up.T)
        return self._kernels["residual"](hidden, down.T, x)

    def logits(self, x: torch.Tensor, norm: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """See Blocks."""
        return self._kernels["head"](self._normed(x, norm), head.T)


class Paged:
    """fa4gen's attention over pages."""

    def __init__(self, kernels: Mapping[str, Step]) -> None:
        """Take the function ``decode``."""
        self._decode = kernels["decode"]

    def decode(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        lengths: torch.Tensor,
        page_table: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """See Attention."""
        where = {"key_lengths": lengths, "page_table": page_table}
        return self._decode(query, keys, values, **where, softmax_scale=scale)
