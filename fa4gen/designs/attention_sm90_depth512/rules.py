"""What a config may say at depth 512: most keys have one value that works, or none."""

from __future__ import annotations

import re
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
from fa4gen.designs.shared.fixed_keys import yaml_word
from fa4gen.designs.shared.refusal import Fault
from fa4gen.expressions.words import FLOOR_DIVIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import AttentionConfig
    from fa4gen.masks.mask import Mask


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

    if config.resolved_keys == "paged" and config.scheduler == "dynamic":
        yield Fault(
            kind="scheduler of pages",
            message="keys: paged at depth 512 needs scheduler: static: the loader's warp has 40 "
            "registers, and spills if it claims tiles besides looking pages up",
            keys=("scheduler", "keys"),
            remedies=([{"scheduler": "static"}],),
        )
    yield from _registers_short(config)


def _registers_short(config: AttentionConfig) -> Iterator[Fault]:
    """Yield what spills a register or two: measured, and that with sinks only both do."""
    windowed = config.has_tile_lengths and config.resolved_mask.FIRST is not None
    if windowed and not (config.sinks and config.lse):
        yield Fault(
            kind="a window beside lengths",
            message="lengths of sequences and both ends of a window leave a consumer at depth 512 "
            "too few of its 232 registers",
            keys=("mask", "key_lengths", "batching", "keys"),
            remedies=([{"mask": "causal"}], [_DENSE]),
        )
    if windowed and config.sinks and config.resolved_score.bends_by_key:
        yield Fault(
            kind="a score beside a window and lengths",
            message="score computes more than a multiple of the key, for which a consumer at depth "
            "512 has no register beside lengths of sequences and both ends of a window",
            keys=("score", "mask"),
            remedies=([{"mask": "causal"}], [_DENSE]),
        )
    if _asks_distance_of_all(config.resolved_mask) and config.lse and not config.sinks:
        yield Fault(
            kind="a condition on the distance",
            message="mask asks how far each key is from the query, and bounds no row's keys, for "
            "which a consumer at depth 512 has no register beside lse",
            keys=("mask", "lse"),
            remedies=([{"mask": "causal"}], [{"lse": False}]),
        )
    changed = bool(config.resolved_score.words) and _keeps_elements(config.resolved_mask)
    if changed and config.lse and not config.sinks and config.scheduler != "static":
        yield Fault(
            kind="elements of a row's mask",
            message="mask keeps what it reads of parameters for a row: beside a changed score, lse "
            "and tiles in no fixed order, a consumer at depth 512 has no register for it",
            keys=("mask", "score", "scheduler"),
            remedies=([{"scheduler": "static"}], [{"lse": False}]),
        )
    if _divides_each_key(config.resolved_mask):
        yield Fault(
            kind="a condition that divides",
            message="mask divides each key, by no power of two or without a last key of a row: a "
            "consumer at depth 512 has no register for it",
            keys=("mask",),
            remedies=([{"mask": "causal"}], [{"mask": "none"}]),
        )
    if config.resolved_score.reads_by_key:
        yield Fault(
            kind="elements of every key",
            message="score reads parameters key by key, and a consumer at depth 512 has no "
            "register for the addresses",
            keys=("score",),
            remedies=([{"score": None}, {"score": None, "parameters": None}],),
        )
    if config.resolved_score.keeps_elements and (windowed or not config.sinks):
        yield Fault(
            kind="elements of a row",
            message="score keeps what it reads of parameters by head or batch for all keys of a "
            "row, and a consumer at depth 512 has no register for it",
            keys=("score",),
            remedies=([{"score": None}, {"score": None, "parameters": None}],),
        )


def _asks_distance_of_all(mask: Mask) -> bool:
    distance = re.search(r"(?<!abs\(){query} - {key}", mask.TEST or "")  # abs has registers
    return mask.LAST is None is mask.FIRST and distance is not None


def _keeps_elements(mask: Mask) -> bool:
    return bool(mask.tensors_read) and not mask.reads_by_key and mask.LAST is not None


def _divides_each_key(mask: Mask) -> bool:
    divided = rf"{FLOOR_DIVIDE}\([^,]*, (\d+)\)"
    divisors = [int(found) for found in re.findall(divided, mask.TEST or "")]
    uneven = any(divisor & (divisor - 1) for divisor in divisors)
    return bool(divisors) and (uneven or mask.LAST is None)


_DENSE = {"batching": "dense", "keys": "auto", "key_lengths": False, "page_size": None}
