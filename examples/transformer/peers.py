# SPDX-License-Identifier: Apache-2.0
"""The same attention by PyTorch and by FlashAttention-3: what the kernels are timed beside."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from pathlib import Path

    from attention import Offsets


class Sdpa:
    """PyTorch's scaled_dot_product_attention.

    It knows neither ragged batches nor pages: sequences are prefilled one by one, and a cache for
    it has one page a sequence, as long as its capacity.
    """

    def prefill(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        offsets: Offsets,
        scale: float,
    ) -> torch.Tensor:
        """See Attention."""
        out = torch.empty_like(query)
        for a, b in pairwise(offsets.host):
            parts = (x[a:b].transpose(0, 1)[None] for x in (query, key, value))
            found = scaled_dot_product_attention(
                *parts, is_causal=True, scale=scale, enable_gqa=True
            )
            out[a:b] = found[0].transpose(0, 1)
        return out

    def decode(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        lengths: torch.Tensor,
        page_table: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """See Attention; the page of a sequence is that of its number."""
        if page_table.shape[1] != 1:
            raise ValueError("page_table: this needs one page for each sequence")
        seen = torch.arange(keys.shape[1], device=keys.device) < lengths[:, None]
        heads_first = (x.transpose(1, 2) for x in (query, keys, values))
        out = scaled_dot_product_attention(
            *heads_first, attn_mask=seen[:, None, None], scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2)


class Upcast(Sdpa):
    """That in float32: what the logits of both are compared with."""

    def prefill(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        offsets: Offsets,
        scale: float,
    ) -> torch.Tensor:
        """See Attention."""
        out = super().prefill(query.float(), key.float(), value.float(), offsets, scale)
        return out.to(query.dtype)


class Fa3:
    """FlashAttention-3, from a library that registers torch.ops.flash_attn_3.fwd."""

    def __init__(self, library: Path, cudart: Path | None = None) -> None:
        """Load the library; ``cudart`` is a CUDA runtime that it needs, if not PyTorch's."""
        if cudart is not None:
            ctypes.CDLL(str(cudart), mode=ctypes.RTLD_GLOBAL)
        torch.ops.load_library(str(library))
        self._operator: Any = torch.ops.flash_attn_3.fwd

    def prefill(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        offsets: Offsets,
        scale: float,
    ) -> torch.Tensor:
        """See Attention."""
        return self._run(
            *(query, key, value, scale),
            cu_seqlens_q=offsets.device,
            cu_seqlens_k=offsets.device,
            max_seqlen_q=offsets.longest,
            max_seqlen_k=offsets.longest,
        )

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
        where = {"seqused_k": lengths, "page_table": page_table, "num_splits": 0}
        return self._run(query, keys, values, scale, **where)

    def _run(self, *tensors: Any, **options: Any) -> torch.Tensor:
        *inputs, scale = tensors
        result = self._operator(*inputs, softmax_scale=scale, is_causal=True, **options)
        out: torch.Tensor = result[0] if isinstance(result, (tuple, list)) else result
        return out
