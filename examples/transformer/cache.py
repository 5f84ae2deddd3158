# SPDX-License-Identifier: Apache-2.0
"""Keys and values in pages: a sequence has pages anywhere in the cache, and a table of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from decoder import Shape
    from transformers import LlamaConfig


class PagedCache:
    """The keys and values of all layers; what kernels read of it is on the device.

    keys, values: (layers, pages, page_size, key heads, depth)
    page_table: int32 (sequences, most pages of a sequence)
    lengths: int32 (sequences), the keys that count
    """

    def __init__(
        self,
        config: LlamaConfig | Shape,
        sequences: int,
        capacity: int,
        *,
        page_size: int = 64,
        dtype: torch.dtype,
        device: str,
        order: Iterable[int] | None = None,
    ) -> None:
        """Make room for ``sequences`` of up to ``capacity`` keys; pages are taken in ``order``."""
        most = -(-capacity // page_size)
        pages = sequences * most
        shape = (config.num_hidden_layers, pages, page_size, config.num_key_value_heads)
        self.page_size = page_size
        self.keys = torch.zeros(*shape, config.head_dim, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.page_table = torch.zeros(sequences, most, dtype=torch.int32, device=device)
        self.lengths = torch.zeros(sequences, dtype=torch.int32, device=device)
        self._free = list(range(pages) if order is None else order)[::-1]
        self._held: list[list[int]] = [[] for _ in range(sequences)]

    @property
    def sequences(self) -> int:
        """How many sequences there can be."""
        return len(self._held)

    @property
    def free_pages(self) -> int:
        """Pages that no sequence has."""
        return len(self._free)

    def reserve(self, sequence: int, keys: int) -> None:
        """Give the sequence pages for as many keys; RuntimeError when there are none left."""
        held = self._held[sequence]
        needed = -(-keys // self.page_size) - len(held)
        if needed <= 0:
            return
        if needed > len(self._free) or len(held) + needed > self.page_table.shape[1]:
            raise RuntimeError(f"no room for {keys} keys of sequence {sequence}")
        new = [self._free.pop() for _ in range(needed)]
        first = len(held)
        held += new
        row = torch.tensor(new, dtype=torch.int32)
        self.page_table[sequence, first : first + needed] = row.to(self.page_table.device)

    def release(self, sequence: int) -> None:
        """Take the sequence's pages back."""
        self._free += self._held[sequence][::-1]
        self._held[sequence].clear()
        self.lengths[sequence] = 0

    def slots(self, sequences: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Return where the keys at ``positions`` of ``sequences`` are, counted over all pages."""
        positions = positions.long()
        pages = self.page_table[sequences, positions // self.page_size]
        return pages.long() * self.page_size + positions % self.page_size

    def write(
        self, layer: int, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        """Put rows of (rows, key heads, depth) into their slots."""
        self.keys[layer].flatten(0, 1).index_copy_(0, slots, key)
        self.values[layer].flatten(0, 1).index_copy_(0, slots, value)
