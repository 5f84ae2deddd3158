# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding: a ragged prefill, then steps over a paged cache, captured as a CUDA graph."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from attention import NAME, Attention, Decode, Offsets, Prefill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache import PagedCache
    from transformers import PreTrainedModel

WARM_UP = 2
"""Steps before a capture: libraries allocate and choose in them."""


class Generator:
    """Continues prompts, all of a batch at the same time."""

    def __init__(self, model: PreTrainedModel, attention: Attention, cache: PagedCache) -> None:
        """Generate with ``model``, whose attention this sets, into ``cache``."""
        model.set_attn_implementation(NAME)
        self._model = model
        self._attention = attention
        self._cache = cache
        self._lengths = [0] * cache.sequences
        self._tokens = torch.zeros_like(cache.lengths, dtype=torch.int64)
        self._every = torch.arange(cache.sequences, device=cache.lengths.device)
        self._graph: torch.cuda.CUDAGraph | None = None

    @torch.no_grad()
    def prefill(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return the token that follows each prompt, (sequences); what was before is forgotten."""
        cache = self._cache
        for sequence, prompt in enumerate(prompts):
            cache.release(sequence)
            cache.reserve(sequence, len(prompt))
        self._lengths = list(map(len, prompts))
        device = cache.lengths.device
        which, positions = _places(self._lengths, device)
        last = torch.tensor(list(accumulate(self._lengths)), device=device) - 1
        offsets = Offsets.of(self._lengths, device)
        step = Prefill(self._attention, cache, cache.slots(which, positions), offsets)
        logits = _logits(self._model, prompts, positions, last, step)
        cache.lengths.copy_(torch.tensor(self._lengths, dtype=torch.int32))
        self._tokens.copy_(logits.argmax(-1))
        return self._tokens.clone()

    @torch.no_grad()
    def decode(self, count: int) -> torch.Tensor:
        """Return the next ``count`` tokens of each sequence, (sequences, count)."""
        found = torch.empty(
            self._cache.sequences, count, dtype=torch.int64, device=self._tokens.device
        )
        for number in range(count):
            for sequence, length in enumerate(self._lengths):
                self._cache.reserve(sequence, length + 1)
            if self._tokens.is_cuda and self._graph is None:
                self._capture()
            if self._graph is None:
                self._step()
            else:
                self._graph.replay()
            self._lengths = [length + 1 for length in self._lengths]
            found[:, number] = self._tokens
        return found

    def _step(self) -> None:
        """Append one token to every sequence; everything it reads is on the device."""
        cache = self._cache
        positions = cache.lengths.long()
        cache.lengths.add_(1)
        step = Decode(self._attention, cache, cache.slots(self._every, positions))
        logits = self._model(
            input_ids=self._tokens[:, None],
            position_ids=positions[:, None],
            use_cache=False,
            step=step,
        ).logits
        self._tokens.copy_(logits[:, -1].argmax(-1))

    def _capture(self) -> None:
        state = (self._tokens, self._cache.lengths)
        before = [x.clone() for x in state]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):  # each writes the slots of the first step
                self._step()
                for x, old in zip(state, before, strict=True):
                    x.copy_(old)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self._graph = graph


@torch.no_grad()
def logits_of(
    model: PreTrainedModel,
    attention: Attention,
    texts: Sequence[Sequence[int]],
    last: int,
) -> torch.Tensor:
    """Return the logits after each of the last ``last`` tokens of texts, (texts, last, words)."""
    model.set_attn_implementation(NAME)
    lengths = list(map(len, texts))
    device = model.device
    _, positions = _places(lengths, device)
    ends = torch.tensor(list(accumulate(lengths)), device=device)
    keep = (ends[:, None] + torch.arange(-last, 0, device=device)).flatten()
    step = Prefill(attention, None, None, Offsets.of(lengths, device))
    return _logits(model, texts, positions, keep, step).unflatten(0, (len(texts), last))


def _places(lengths: Sequence[int], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sequence of every row of a ragged batch, and its position there."""
    rows = torch.tensor(lengths)
    which = torch.arange(len(lengths)).repeat_interleave(rows)
    positions = torch.arange(len(which)) - (rows.cumsum(0) - rows)[which]
    return which.to(device), positions.to(device)


def _logits(
    model: PreTrainedModel,
    texts: Sequence[Sequence[int]],
    positions: torch.Tensor,
    rows: torch.Tensor,
    step: Prefill,
) -> torch.Tensor:
    """Return the logits at ``rows`` of a ragged batch of texts."""
    tokens = torch.tensor([token for text in texts for token in text], device=positions.device)
    logits: torch.Tensor = model(
        input_ids=tokens[None],
        position_ids=positions[None],
        use_cache=False,
        logits_to_keep=rows,
        step=step,
    ).logits
    return logits[0]
