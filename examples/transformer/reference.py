# SPDX-License-Identifier: Apache-2.0
"""The same attention in float32, sequence by sequence: what kernels are compared with."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from attention import Offsets


def exact(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
) -> torch.Tensor:
    """Return causal attention of one sequence, (rows, heads, depth), whose last row sees all."""
    q, k, v = (x.float().transpose(0, 1) for x in (query, key, value))
    groups = q.shape[0] // k.shape[0]
    k, v = (x.repeat_interleave(groups, dim=0) for x in (k, v))
    logits = q @ k.transpose(1, 2) * scale
    hidden = torch.ones_like(logits[0], dtype=torch.bool).triu(k.shape[1] - q.shape[1] + 1)
    weights = logits.masked_fill(hidden, -torch.inf).softmax(-1)
    return (weights @ v).transpose(0, 1).to(query.dtype)


class Reference:
    """Attention in float32; reads lengths and page table on the host."""

    def prefill(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        offsets: Offsets,
        scale: float,
    ) -> torch.Tensor:
        """See Attention."""
        parts = [slice(a, b) for a, b in pairwise(offsets.host)]
        return torch.cat([exact(query[p], key[p], value[p], scale) for p in parts])

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
        out = torch.empty_like(query)
        for sequence, length in enumerate(lengths.tolist()):
            pages = page_table[sequence, : -(-length // keys.shape[1])].long()
            key, value = (x[pages].flatten(0, 1)[:length] for x in (keys, values))
            out[sequence] = exact(query[sequence], key, value, scale)
        return out
