# SPDX-License-Identifier: Apache-2.0
"""Attention of transformers' models, computed by kernels of sequences of any lengths.

Importing this file registers the attention ``ragged``. A model that has it is called with
``step=``, a ``Prefill`` or a ``Decode``, which its layers pass on:

    model.set_attn_implementation("ragged")
    model(input_ids, position_ids=positions, use_cache=False, step=step)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from transformers import AttentionInterface

if TYPE_CHECKING:
    from cache import PagedCache

VENDORED = Path(__file__).parent / "third_party/llama/adapters/torch"
NAME = "ragged"


@dataclass(frozen=True)
class Offsets:
    """Where sequences begin in a ragged batch, and where the last one ends."""

    host: tuple[int, ...]
    device: torch.Tensor
    """int32."""

    @classmethod
    def of(cls, lengths: list[int], device: torch.device | str) -> Offsets:
        """Return the offsets of sequences of these lengths."""
        ends = [0]
        for length in lengths:
            ends.append(ends[-1] + length)
        return cls(tuple(ends), torch.tensor(ends, dtype=torch.int32, device=device))

    @property
    def longest(self) -> int:
        """Rows of the longest sequence."""
        return max(b - a for a, b in zip(self.host, self.host[1:], strict=False))


class Attention(Protocol):
    """Causal attention of a ragged batch, and of new rows over a paged cache."""

    def prefill(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        offsets: Offsets,
        scale: float,
    ) -> torch.Tensor:
        """Return (rows of all sequences, heads, depth) for a query of that shape."""

    def decode(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        lengths: torch.Tensor,
        page_table: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """Return (sequences, 1, heads, depth) for a query of that shape, the last row of each.

        keys and values are (pages, page size, key heads, depth).
        """


class Kernels:
    """The vendored kernels, one for each function; they need neither fa4gen nor a compiler."""

    def __init__(self) -> None:
        """Import them; they run on Hopper, at depth 128, in bf16."""
        sys.path.insert(0, str(VENDORED))
        import llama_torch

        self._prefill = llama_torch.d128_ragged_causal_bf16
        self._decode = llama_torch.decode_d128_paged64_bf16

    def prefill(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        offsets: Offsets,
        scale: float,
    ) -> torch.Tensor:
        """See Attention."""
        where = {"query_offsets": offsets.device, "key_offsets": offsets.device}
        out: torch.Tensor
        out, _ = self._prefill(query, key, value, **where, softmax_scale=scale)
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
        """See Attention."""
        where = {"key_lengths": lengths, "page_table": page_table}
        out: torch.Tensor
        out, _ = self._decode(query, keys, values, **where, softmax_scale=scale)
        return out


@dataclass(frozen=True)
class Prefill:
    """Prompts, one after the other: attention among themselves, keys and values to the cache."""

    attention: Attention
    cache: PagedCache | None
    """None: nothing is kept."""
    slots: torch.Tensor | None
    offsets: Offsets

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Return the layer's attention; all are (1, rows, heads, depth)."""
        if self.cache is not None and self.slots is not None:
            self.cache.write(layer, self.slots, key[0], value[0])
        return self.attention.prefill(query[0], key[0], value[0], self.offsets, scale)[None]


@dataclass(frozen=True)
class Decode:
    """One new row of every sequence, over its keys in the cache; host code reads nothing here."""

    attention: Attention
    cache: PagedCache
    slots: torch.Tensor

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Return the layer's attention; all are (sequences, 1, heads, depth)."""
        cache = self.cache
        cache.write(layer, self.slots, key[:, 0], value[:, 0])
        keys, values = cache.keys[layer], cache.values[layer]
        return self.attention.decode(query, keys, values, cache.lengths, cache.page_table, scale)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    *,
    step: Prefill | Decode,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Compute a layer's attention as transformers calls it: (batch, heads, rows, depth)."""
    if attention_mask is not None or dropout:
        raise ValueError("the step says which keys count: without mask and dropout")
    layer: int = module.layer_idx  # type: ignore[assignment]
    rows_first = (x.transpose(1, 2) for x in (query, key, value))
    return step.attend(layer, *rows_first, scaling), None


AttentionInterface.register(NAME, attend)
