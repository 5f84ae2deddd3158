"""What a config may say at depth 512: most keys have one value that works, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.values import (
    BLOCK_KEYS,
    CONSUMER_WARPGROUPS,
    CTA_GROUP,
    DEPTH,
    RING_SLOTS,
    TILE_ROWS,
)
from fa4gen.designs.common.fixed_keys import yaml_word
from fa4gen.designs.common.refusal import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import AttentionConfig


@dataclass(frozen=True)
class _Fixed:
    """A key that has one value at this depth."""

    key: str
    values: tuple[object, ...]
    """What may be written, the value to offer in front."""
    because: str


_FIXED = (
    _Fixed(
        "value_depth",
        ("auto", DEPTH),
        "each CTA of the pair holds half of 512 columns of value and output",
    ),
    _Fixed(
        "cta_group",
        (CTA_GROUP,),
        "an output of 64 rows x 512 columns in float32 would take 256 registers of every thread, "
        "all that there are: a pair of CTAs divides the columns",
    ),
    _Fixed("BM", ("auto", TILE_ROWS), "both CTAs of the pair work on the same 128 query rows"),
    _Fixed(
        "num_consumer_warpgroups",
        ("auto", CONSUMER_WARPGROUPS),
        "two warpgroups of 232 registers, each with 64 x 256 of the output, fill the register file",
    ),
    _Fixed(
        "BN",
        ("auto", BLOCK_KEYS),
        "each CTA computes the scores of 64 keys and exchanges the probabilities with its peer",
    ),
    _Fixed(
        "num_kv_stages",
        ("auto", RING_SLOTS),
        "the keys of a block, like its values, are 8 parts of 8 KB: one trip round a ring of 8 "
        "slots, for which queries (128 KB) and the peer's probabilities (32 KB) leave room",
    ),
    _Fixed("overlap", (True,), "the softmax always runs between the chunks of P.V"),
    _Fixed(
        "num_pv_chunks_in_flight",
        ("auto", 0),
        "all of P.V is complete before the next Q.K: the scores of a whole block are ahead anyway",
    ),
    _Fixed(
        "ping_pong", ("auto", False), "the warpgroups keep step through the ring that they share"
    ),
    _Fixed(
        "overlap_epilogue",
        ("auto", True),
        "the next tile's first Q.K and softmax always run before this tile's output is written",
    ),
    _Fixed(
        "epilogue",
        ("auto", "direct"),
        "the query's place, where the output would be staged, holds the next queries by then",
    ),
)


def broken_rules(config: AttentionConfig) -> Iterator[Fault]:
    """Yield every key with a value that does not go with depth 512."""
    for rule in _FIXED:
        given = getattr(config, rule.key)
        if given in rule.values:
            continue
        allowed = " or ".join(yaml_word(value) for value in rule.values if value != "auto")
        yield Fault(
            kind=f"{rule.key} at depth 512",
            message=f"depth 512 needs {rule.key}: {allowed}, got {yaml_word(given)}: "
            f"{rule.because}",
            keys=(rule.key,),
            remedies=([{rule.key: rule.values[0]}],),
        )
