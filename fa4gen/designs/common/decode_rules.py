"""The refusals common to kernels with packed heads: keys of other designs, missing features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.candidates import given_keys
from fa4gen.designs.common.listed import SHARES
from fa4gen.designs.common.refusal import Refusal
from fa4gen.strict import FixedKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_config import PackedKeys
    from fa4gen.designs.common.refusal import Changes

PACKED_HEADS_KEYS = ("packed_rows", "split_keys", "kv_dtype", "kv_scale")
"""Keys that only kernels with packed heads read."""
PACKED_FIXED = (
    FixedKey("BM", ("auto",), "the rows of a tile are packed_rows"),
    FixedKey("scheduler", ("auto", "static"), "every CTA has an even share of all blocks"),
    FixedKey("registers", ("auto",), "all threads have as many"),
    FixedKey("blocks", ("walked",), SHARES),
    FixedKey("max_logits", (False,), "kernels with pack_heads: false alone give it"),
)
"""Keys of all prefill kernels, in designs with packed heads."""
HOPPER_PACKED_FIXED = (
    FixedKey("out_dtype", ("auto",), "the output has the type of the queries"),
    FixedKey("value_major", ("depth",), "caches have the columns of a key side by side"),
    FixedKey("promote_every", ("auto", "never"), "sums of 16-bit elements keep 24 bits"),
    FixedKey("tile_heads", (1,), "a tile has the rows of all heads of a key head anyway"),
    FixedKey("overlap", (True,), "the warps overlap each other"),
    FixedKey("num_pv_chunks_in_flight", ("auto", 0), "mma.sync is synchronous"),
    FixedKey("ping_pong", ("auto", False), "the warps run freely"),
    FixedKey("overlap_epilogue", ("auto", False), "only loads run on from tile to tile"),
    FixedKey("epilogue", ("auto", "direct"), "the rows of a tile are few, and of several heads"),
)
"""Keys of Hopper's prefill kernels."""
BLACKWELL_PACKED_FIXED = (
    FixedKey("output_staging", ("auto",), "the output goes straight to memory"),
    FixedKey("exp2_fma_share", ("auto", 0.0), "few rows have few exponentials: ex2 computes all"),
)
"""Keys of Blackwell's prefill kernels."""
UNSCALED = FixedKey("kv_scale", ("auto",), "keys and values of 16 bits have no scales")


def unsupported_features(config: PackedKeys) -> Iterator[Refusal]:
    """Yield features that a decode kernel does not have yet, as it knows of no row its head."""
    yield from unsupported_batching(config)
    yield from refused_expressions(config, "pack_heads", "pack_heads", unpacked(config))


def other_output(config: PackedKeys, out_dtype: str) -> Iterator[Refusal]:
    """Yield a fault for an output of another type than the query's."""
    if out_dtype not in ("auto", config.dtype):
        yield Refusal(
            kind="output of packed heads",
            message=f"out_dtype: {out_dtype} with pack_heads is not supported yet: the output is "
            f"{config.dtype}, as the query",
            keys=("out_dtype", "pack_heads"),
            remedies=([{"out_dtype": "auto"}], [unpacked(config)]),
        )


def unsupported_batching(config: PackedKeys) -> Iterator[Refusal]:
    """Yield batchings that no decode kernel has yet."""
    if config.batching != "dense":
        yield Refusal(
            kind="ragged queries of packed heads",
            message=f"batching: {config.batching} with pack_heads is not supported yet: every "
            "sequence has as many query rows",
            keys=("batching", "pack_heads"),
            remedies=(
                [{"batching": "dense"}, {"batching": "dense", "keys": "auto"}],
                [unpacked(config)],
            ),
        )


def refused_expressions(
    config: PackedKeys, key: str, words: str, changes: Changes
) -> Iterator[Refusal]:
    """Yield a fault where a kernel would have to know head and position of each row.

    ``key``, with its value in ``words``: why it does not; ``changes``: to a kernel that does.
    """
    if config.score is not None or config.declared_tensors:
        given = "score" if config.score is not None else "parameters"
        yield Refusal(
            kind="expressions of packed heads",
            message=f"{given} with {words} is not supported yet: rows of a tile are of several "
            "heads",
            keys=(given, key),
            remedies=([changes], _without_expressions(config)),
        )
    if config.resolved_mask.tests_keys:
        yield Refusal(
            kind="tested mask of packed heads",
            message=f"mask: {config.resolved_mask.name} hides keys between the first and the last "
            f"that a row sees, which {words} does not support yet",
            keys=("mask", key),
            remedies=([changes], *_ends_alone()),
        )


def _without_expressions(config: PackedKeys) -> Iterator[Changes]:
    """Yield changes that leave out the score, what mask and score read, or all of it."""
    for mask in ({}, {"mask": "causal"}):
        for score in ({}, {"score": None}) if config.score is not None else ({},):
            for read in ({}, {"parameters": None}) if config.parameters else ({},):
                yield {**score, **read, **mask}


def _ends_alone() -> Iterator[list[Changes]]:
    """Yield masks that hide no key between the first and the last, one a remedy."""
    for name in ("causal", "none"):
        yield [{"mask": name}, {"mask": name, "parameters": None}]


def unpacked(config: PackedKeys) -> Changes:
    """Return the changes that make it another design's: without keys that only this one reads."""
    given = given_keys(config, PACKED_HEADS_KEYS)
    return {"pack_heads": False, **dict.fromkeys(given, "auto")}
