"""Rules between the keys of a Hopper attention config, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.registers import CHUNK_KEYS, keeps_two_places
from fa4gen.designs.attention_sm90.values import MAX_BLOCK, WARPGROUP_ROWS
from fa4gen.designs.shared.fixed_keys import yaml_word
from fa4gen.designs.shared.limits import turns_of_one
from fa4gen.designs.shared.refusal import Changes, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import AttentionConfig
    from fa4gen.designs.attention_sm90.values import Values

CLEAN_BLOCK = 64
"""Keys of a block beside which the places of two tiles fit at depth 256, without a mask."""


def broken_rules(values: Values) -> Iterator[Fault]:
    """Yield what the config asks for that does not go together."""
    config = values.config
    yield from turns_of_one(values, ([{"ping_pong": False}], [with_warpgroups(config, 2)]))
    if values.overlap_epilogue and values.epilogue == "tma_store":
        yield Fault(
            kind="query slot in use",
            message="epilogue: tma_store stages the output in the query slot, which "
            "overlap_epilogue has filled with the next query by then",
            keys=("overlap_epilogue", "epilogue"),
            remedies=([{"overlap_epilogue": False}], [{"epilogue": "direct"}]),
        )
    if values.value_depth > config.depth and values.epilogue == "tma_store":
        yield Fault(
            kind="query slot too small",
            message=f"epilogue: tma_store stages the output in the query slot, whose "
            f"{config.depth} columns do not hold the {values.value_depth} of value_depth",
            keys=("value_depth", "epilogue"),
            remedies=([{"epilogue": "direct"}], [{"value_depth": "auto"}]),
        )
    yield from _tiles_of_several_heads(values)
    yield from _places_without_room(values)
    yield from _lengths_without_room(values)
    if config.num_pv_chunks_in_flight != "auto":
        yield from _broken_chunk_rules(values, config.num_pv_chunks_in_flight)


def with_warpgroups(config: AttentionConfig, warpgroups: int) -> Changes:
    """Return the changes that make it so many consumer warpgroups, by the keys that are given."""
    changes = {}
    if config.BM != "auto":
        changes["BM"] = WARPGROUP_ROWS * warpgroups
    if config.num_consumer_warpgroups != "auto" or not changes:
        changes["num_consumer_warpgroups"] = warpgroups
    return changes


def _tiles_of_several_heads(values: Values) -> Iterator[Fault]:
    """Yield what needs the head or query of each row, where a tile has several heads."""
    config = values.config
    if config.tile_heads == 1:
        return
    mask = config.resolved_mask
    asked = {
        "batching": config.batching == "ragged",
        "keys": config.resolved_keys == "paged",
        "key_lengths": config.key_lengths,
        "blocks": config.lists_blocks,
        "mask": mask.TEST is not None or bool(mask.tile_names) or bool(mask.tensors_read),
        "score": config.resolved_score.IS_EXPRESSION,
        "cta_group": values.is_pair,
    }
    keys = tuple(key for key, has in asked.items() if has)
    if not keys:
        return
    words = ", ".join(f"{key}: {yaml_word(getattr(config, key))}" for key in keys)
    yield Fault(
        kind="tiles of several heads",
        message=f"tile_heads: {config.tile_heads} is for dense batches, masks by the ends of what "
        f"a row sees, and single CTAs so far, not with {words}",
        keys=("tile_heads", *keys),
        remedies=([{"tile_heads": 1}], [{"cta_group": 1}] if keys == ("cta_group",) else []),
    )


def _places_without_room(values: Values) -> Iterator[Fault]:
    """Yield what spills beside the output of depth 256: measured, 64 keys do without a mask."""
    config = values.config
    ends = (config.resolved_mask.FIRST, config.resolved_mask.LAST)
    crowded = values.BN > CLEAN_BLOCK or any(end is not None for end in ends)
    if values.overlap_epilogue and keeps_two_places(config) and crowded:
        yield Fault(
            kind="places of two tiles",
            message="overlap_epilogue with cta_group: 2 and scheduler: static leaves a consumer "
            f"too few registers at depth {values.value_depth}",
            keys=("overlap_epilogue",),
            remedies=([{"overlap_epilogue": False}],),
        )


def _lengths_without_room(values: Values) -> Iterator[Fault]:
    """Yield what spills at depth 256 however narrow the block is: measured."""
    config, dynamic = values.config, values.scheduler == "dynamic"
    if max(values.value_depth, config.depth) <= 192:
        return
    one_cta = [{"cta_group": 1}] if config.scheduler == "dynamic" else []
    if values.is_pair and dynamic and config.resolved_key_lengths and config.resolved_mask.FIRST:
        yield Fault(
            kind="a window in a dynamic pair",
            message="scheduler: dynamic with cta_group: 2 and lengths of keys leaves a consumer "
            f"too few registers for both ends of a window at depth {config.depth}",
            keys=("scheduler", "cta_group", "mask"),
            remedies=([{"scheduler": "static"}], one_cta),
        )
    staged = values.epilogue == "tma_store" and config.batching == "ragged"
    staged = staged and values.value_depth > 192
    terms = config.resolved_score.IS_EXPRESSION
    if staged and (values.is_pair or not dynamic or terms):
        other = "cta_group: 2" if values.is_pair else "scheduler: static"
        other = "a score" if terms else other
        yield Fault(
            kind="a staged output of a ragged batch",
            message=f"epilogue: tma_store with batching: ragged and {other} leaves loader and "
            f"consumers too few registers at depth {values.value_depth}",
            keys=("epilogue", "batching"),
            remedies=(
                [{"epilogue": "direct"}],
                [] if terms else one_cta if values.is_pair else [{"scheduler": "dynamic"}],
            ),
        )


def _broken_chunk_rules(values: Values, asked: int) -> Iterator[Fault]:
    if asked and not values.config.overlap:
        yield Fault(
            kind="chunks without overlap",
            message=f"num_pv_chunks_in_flight: {asked} needs overlap: without it, all of P.V is "
            "waited for before the next Q.K",
            keys=("num_pv_chunks_in_flight",),
            remedies=(
                [{"overlap": True}, {"overlap": True, "num_pv_chunks_in_flight": "auto"}],
                [{"num_pv_chunks_in_flight": 0}],
            ),
        )
    elif asked > values.num_chunks:
        yield Fault(
            kind="more chunks than there are",
            message=f"num_pv_chunks_in_flight: {asked}, but a block of BN = {values.BN} keys has "
            f"{values.BN} / {CHUNK_KEYS} = {values.num_chunks} chunks of P.V",
            keys=("num_pv_chunks_in_flight",),
            remedies=(
                [{"num_pv_chunks_in_flight": values.num_chunks}],
                [{"BN": min(MAX_BLOCK, asked * CHUNK_KEYS)}],
            ),
        )
