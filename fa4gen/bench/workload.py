"""The workload of attention: sequences of one length with fixed tokens and columns, or a batch."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.bench.batches import KEY_HEADS, Batch, named_batches, parse_batch, query_heads
from fa4gen.errors import ConfigError, Problem
from fa4gen.masks import mask_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.masks.mask import Mask

TOKENS = 16384
"""Batch times rows: as flash-attention's benchmarks have it."""
COLUMNS = 2048
"""Heads times depth."""
DEFAULT_SIZES = "1k,2k,4k,8k,16k"
RAGGED_SIZES = "lognormal,equal,giant,dwarfs"
KEPT_SIZES = "2x512x16k,2x4kx4k"
"""Sizes for kernels that read the number of keys on the device: chunks of prefill over a cache."""
DECODE_SIZES = "1x8k,1x128k,16x8k,64x4k,8x4x16k"
"""Sizes for kernels of few rows and many keys."""
LATENT_SIZES = "1x8k@128/1,1x128k@128/1,16x8k@128/1,64x4k@128/1,64x4k@64/1"
"""Sizes for kernels whose values are columns of the keys: one key head, many query heads."""
HEADS_SIZES = "32x300x300@64/8,16x500x1000@64/8,4x500x4k@64/8"
"""Sizes for kernels with tiles of several heads: short queries, eight heads to a key head."""
AUTO = "auto"
LARGEST_SIZE = 1 << 20


@dataclass(frozen=True)
class Workload:
    """One problem: query and key rows by sequence, heads and depths."""

    query_rows: tuple[int, ...]
    key_rows: tuple[int, ...]
    heads: int
    key_heads: int
    depth: int
    value_depth: int
    name: str = ""
    """The word for a batch; none where a number of rows says all."""

    @property
    def batch(self) -> int:
        """Sequences."""
        return len(self.query_rows)

    @property
    def rows(self) -> int:
        """Query rows of the longest sequence."""
        return max(self.query_rows)

    @property
    def most_keys(self) -> int:
        """Key rows of the sequence that has the most."""
        return max(self.key_rows)

    @property
    def word(self) -> str:
        """The size as ``--sizes`` takes it."""
        return self.name or size_word(self.rows)

    @property
    def at(self) -> str:
        """The size for a message."""
        return self.name or f"{self.rows} rows"

    @property
    def extents(self) -> dict[str, Any]:
        """The extents for the JSON file; of a batch those of its tokens and keys, too."""
        found: dict[str, Any] = {"rows": self.rows, "batch": self.batch, "heads": self.heads}
        if self.name:
            found |= {"word": self.name, "tokens": sum(self.query_rows)}
            found |= {"keys": self.most_keys, "key_heads": self.key_heads}
        return found

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a table."""
        return self.word, str(self.batch)


def make_workload(size: int | Batch, depth: int, value_depth: int | None = None) -> Workload:
    """Return the workload of a number of rows, or of a batch.

    Of rows: one sequence at least, one head at least, as many key as query heads. Of a batch:
    query heads that share 8 key heads, unless it has its own. Values are as deep as keys unless
    ``value_depth`` says otherwise.
    """
    value_depth = depth if value_depth is None else value_depth
    if isinstance(size, int):
        rows, heads = (size,) * max(1, TOKENS // size), max(1, COLUMNS // depth)
        return Workload(rows, rows, heads, heads, depth, value_depth)
    heads, key_heads = size.heads or (query_heads(depth), KEY_HEADS)
    return Workload(size.query_rows, size.key_rows, heads, key_heads, depth, value_depth, size.word)


def count_flop(plan: AttentionPlan, workload: Workload) -> float:
    """Count the floating-point operations of Q.K and P.V that the mask leaves.

    By the usual convention a causal mask leaves half of the pairs of a number of rows; other masks
    leave the pairs that are visible, and so do all masks of a batch.
    """
    columns = workload.depth + workload.value_depth
    if not workload.name:
        pairs = workload.batch * plan.mask.pairs(workload.rows)
    else:
        counts = Counter(zip(workload.query_rows, workload.key_rows, strict=True))
        pairs = sum(count * visible_pairs(plan.mask, *lengths) for lengths, count in counts.items())
    return 2.0 * workload.heads * columns * pairs


def visible_pairs(mask: Mask, rows: int, keys: int) -> float:
    """Count the pairs of a row and a key that it sees; the diagonal ends in the last corner."""
    import numpy as np

    first, end = mask.bounds(np.arange(rows, dtype=np.int64) + (keys - rows), keys)
    return float(np.maximum(np.clip(end, 0, keys) - np.clip(first, 0, keys), 0).sum())


def count_read_bytes(plan: AttentionPlan, workload: Workload) -> int:
    """Count the bytes of the keys that some row of their sequence sees, and of their values."""
    seen = 0
    for rows, keys in zip(workload.query_rows, workload.key_rows, strict=True):
        first, _ = plan.mask.bounds(keys - rows, keys)
        _, end = plan.mask.bounds(keys - 1, keys)
        seen += max(0, min(keys, end) - max(0, first))
    of_key = workload.depth + (0 if plan.values_in_keys else workload.value_depth)
    columns = workload.key_heads * of_key
    return seen * columns * plan.kv_element_bytes


def default_sizes(plan: AttentionPlan) -> tuple[int | Batch, ...]:
    """Return the sizes of a kernel without ``--sizes``."""
    if plan.splits_keys:
        return parse_sizes(LATENT_SIZES if plan.values_in_keys else DECODE_SIZES)
    if plan.tile_heads > 1:
        return parse_sizes(HEADS_SIZES)
    if not plan.has_tile_lengths:
        return parse_sizes(DEFAULT_SIZES)
    return parse_sizes(KEPT_SIZES if plan.key_lengths else RAGGED_SIZES)


def parse_sizes(text: str) -> tuple[int | Batch, ...]:
    """Read "1k,2k,300,lognormal,2x512x16k,16x8k" as numbers of rows and batches; k is 1024.

    Nothing for "auto": the kernel decides. Raises ConfigError.
    """
    if text.strip().lower() == AUTO:
        return ()
    sizes: list[int | Batch] = []
    for word in text.split(","):
        batch = parse_batch(word)
        if batch is not None:
            sizes.append(batch)
            continue
        match = re.fullmatch(r"\s*([0-9]{1,7})(k?)\s*", word, re.IGNORECASE)
        size = int(match[1]) * (1024 if match[2] else 1) if match else 0
        if not 1 <= size <= LARGEST_SIZE:
            raise ConfigError(
                Problem(
                    f"--sizes: {word.strip()!r} is not a number of rows from 1 to {LARGEST_SIZE}, "
                    "nor a batch",
                    "Give numbers of rows, as in 512,1k,16k; sequences, new rows and keys, as in "
                    "2x512x16k; sequences and keys, with one new row of each, as in 16x8k; either "
                    "with query heads and key heads, as in 16x8k@64/8; or "
                    f"{', '.join(named_batches())}.",
                )
            )
        sizes.append(size)
    return tuple(dict.fromkeys(sizes))


def size_word(rows: int) -> str:
    """Write 1024 as 1k."""
    return f"{rows // 1024}k" if rows % 1024 == 0 else str(rows)


def mask_word(facts: Mapping[str, Any]) -> str:
    """Return a mask in words: dense, causal, or the window."""
    return mask_in(facts).short
