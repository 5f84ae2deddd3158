# SPDX-License-Identifier: Apache-2.0
"""A step of decoding of a Llama-shaped model in plain PyTorch, with blocks that may be exchanged.

The tests compare its tokens with those of transformers. It needs PyTorch alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attention import Attention
    from cache import PagedCache
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Shape:
    """The extents of a model, by the names that transformers has for them."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int = 128
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0

    @property
    def qkv(self) -> tuple[int, int, int]:
        """Columns of query, key and value."""
        keys = self.num_key_value_heads * self.head_dim
        return self.num_attention_heads * self.head_dim, keys, keys


LLAMA_8B = Shape(128256, 4096, 14336, 32, 32, 8, rope_theta=500000.0)
SMALL = Shape(256, 256, 384, 2, 4, 2)


@dataclass(frozen=True)
class Layer:
    """The weights of a layer; those of products are (n, k)."""

    input_norm: torch.Tensor
    qkv: torch.Tensor
    """Rows of query, key, value."""
    out: torch.Tensor
    after_norm: torch.Tensor
    gate_up: torch.Tensor
    """Rows of gate, then of up."""
    down: torch.Tensor


@dataclass(frozen=True)
class Weights:
    """The weights of a model."""

    embedding: torch.Tensor
    layers: tuple[Layer, ...]
    norm: torch.Tensor
    head: torch.Tensor

    @classmethod
    def random(cls, shape: Shape, seed: int, dtype: torch.dtype, device: str) -> Weights:
        """Draw all weights from the seed; products keep the size of numbers."""
        generator = torch.Generator(device).manual_seed(seed)

        def weight(n: int, k: int) -> torch.Tensor:
            drawn = torch.empty(n, k, dtype=dtype, device=device)
            return drawn.normal_(0, k**-0.5, generator=generator)

        def norm() -> torch.Tensor:
            drawn = torch.empty(shape.hidden_size, dtype=dtype, device=device)
            return drawn.uniform_(0.5, 1.5, generator=generator)

        hidden, inner = shape.hidden_size, shape.intermediate_size
        layers = tuple(
            Layer(
                norm(),
                weight(sum(shape.qkv), hidden),
                weight(hidden, shape.qkv[0]),
                norm(),
                weight(2 * inner, hidden),
                weight(hidden, inner),
            )
            for _ in range(shape.num_hidden_layers)
        )
        words = shape.vocab_size
        return cls(weight(words, hidden), layers, norm(), weight(words, hidden))

    @classmethod
    def of(cls, model: PreTrainedModel) -> Weights:
        """Return those of a Llama of transformers; query, key, value and gate, up are copied."""
        named: Mapping[str, torch.Tensor] = model.state_dict()

        def layer(number: int) -> Layer:
            def weight(*names: str) -> torch.Tensor:
                found = [named[f"model.layers.{number}.{name}.weight"] for name in names]
                return found[0] if len(found) == 1 else torch.cat(found)

            return Layer(
                weight("input_layernorm"),
                weight(*(f"self_attn.{name}_proj" for name in "qkv")),
                weight("self_attn.o_proj"),
                weight("post_attention_layernorm"),
                weight("mlp.gate_proj", "mlp.up_proj"),
                weight("mlp.down_proj"),
            )

        layers = tuple(map(layer, range(model.config.num_hidden_layers)))
        embedding, norm = named["model.embed_tokens.weight"], named["model.norm.weight"]
        return cls(embedding, layers, norm, named["lm_head.weight"])


class Blocks(Protocol):
    """What a layer computes before its attention and after it; x is (rows, hidden size).

    Weights come one by one: torch.compile makes one kernel for all layers.
    """

    def opened(self, x: torch.Tensor, norm: torch.Tensor, qkv: torch.Tensor) -> torch.Tensor:
        """Return the rows' query, key and value, (rows, columns of all three)."""

    def rotated(
        self,
        qkv: torch.Tensor,
        cosines: torch.Tensor,
        sines: torch.Tensor,
        slots: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        """Return the rotated query (rows, heads, depth); key and value go to their slots.

        keys and values are (slots, key heads, depth).
        """

    def closed(
        self,
        attended: torch.Tensor,
        x: torch.Tensor,
        out: torch.Tensor,
        norm: torch.Tensor,
        gate_up: torch.Tensor,
        down: torch.Tensor,
    ) -> torch.Tensor:
        """Return the layer's output, (rows, hidden size)."""

    def logits(self, x: torch.Tensor, norm: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """Return the logits, (rows, words)."""


class Decoder:
    """A model that appends a token to every sequence of a cache."""

    def __init__(
        self,
        shape: Shape,
        weights: Weights,
        blocks: Blocks,
        attention: Attention,
        cache: PagedCache,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Take what a step consists of; ``dtype``: of the rows, if not that of the weights."""
        self._shape, self._weights, self._blocks = shape, weights, blocks
        self._attention, self._cache = attention, cache
        self._dtype = weights.embedding.dtype if dtype is None else dtype
        device = weights.embedding.device
        self._every = torch.arange(cache.sequences, device=device)
        powers = torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim
        self._frequencies = shape.rope_theta**-powers
        self.tokens = torch.zeros(cache.sequences, dtype=torch.int64, device=device)
        """The last token of each sequence: a step reads it and writes the next one."""

    @torch.no_grad()
    def step(self) -> torch.Tensor:
        """Append ``tokens``; return the logits after them. The host reads nothing."""
        cache, blocks, weights = self._cache, self._blocks, self._weights
        positions = cache.lengths.long()
        cache.lengths.add_(1)
        slots = cache.slots(self._every, positions)
        rotation = self._rotation(positions)
        x = weights.embedding[self.tokens].to(self._dtype)
        scale = self._shape.head_dim**-0.5
        for number, layer in enumerate(weights.layers):
            keys, values = cache.keys[number], cache.values[number]
            flat = keys.flatten(0, 1), values.flatten(0, 1)
            qkv = blocks.opened(x, layer.input_norm, layer.qkv)
            query = blocks.rotated(qkv, *rotation, slots, *flat)
            attended = self._attention.decode(
                query[:, None], keys, values, cache.lengths, cache.page_table, scale
            )
            more = layer.out, layer.after_norm, layer.gate_up, layer.down
            x = blocks.closed(attended.flatten(1), x, *more)
        logits = blocks.logits(x, weights.norm, weights.head)
        self.tokens.copy_(logits.argmax(-1))
        return logits

    def _rotation(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cosines and sines, (rows, 1, depth)."""
        angles = (positions[:, None].float() * self._frequencies).repeat(1, 2)[:, None]
        return angles.cos().to(self._dtype), angles.sin().to(self._dtype)
