"""Rules between the keys of a Hopper attention config, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.memory import MAX_BLOCK
from fa4gen.designs.common.limits import turns_of_one
from fa4gen.designs.common.page_scales import scales_without_pages
from fa4gen.designs.common.refusal import Refusal
from fa4gen.designs.common.roles import WARPGROUP_ROWS
from fa4gen.yaml_words import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90.memory import HopperMemory


def broken_rules(plan: HopperMemory) -> Iterator[Refusal]:
    """Yield the config's requests that do not go together."""
    config = plan.config
    yield from turns_of_one(
        plan, plan.ping_pong, ([{"ping_pong": False}], [{"BM": 2 * WARPGROUP_ROWS}])
    )
    if plan.overlap_epilogue and plan.epilogue == "tma_store":
        yield Refusal(
            kind="query slot in use",
            message="epilogue: tma_store stages the output in the query slot, which "
            "overlap_epilogue has filled with the next query by then",
            keys=("overlap_epilogue", "epilogue"),
            remedies=([{"overlap_epilogue": False}], [{"epilogue": "direct"}]),
        )
    if plan.value_depth > config.depth and plan.epilogue == "tma_store":
        yield Refusal(
            kind="query slot too small",
            message=f"epilogue: tma_store stages the output in the query slot, whose "
            f"{config.depth} columns do not hold the {plan.value_depth} of value_depth",
            keys=("value_depth", "epilogue"),
            remedies=([{"epilogue": "direct"}], [{"value_depth": "auto"}]),
        )
    yield from _tiles_of_several_heads(plan)
    yield from _scales(plan)
    if plan.element_bytes == 1:
        yield from _broken_rules_of_bytes(plan)
    if config.num_pv_chunks_in_flight != "auto":
        yield from _broken_chunk_rules(plan, config.num_pv_chunks_in_flight)


def _broken_rules_of_bytes(plan: HopperMemory) -> Iterator[Refusal]:
    """Yield requests that kernels for fp8 do not fulfil."""
    step = plan.chunk_keys
    if plan.BN % step:
        yield Refusal(
            kind="keys of a wgmma",
            message=f"BN: {plan.BN} keys of a block, but a wgmma of P.V in {plan.dtype} takes "
            f"{step} at a time",
            keys=("BN", "dtype"),
            remedies=([{"BN": plan.BN // step * step or step}], [{"BN": "auto"}]),
        )
    if plan.is_pair:
        yield Refusal(
            kind="pairs of CTAs for fp8",
            message=f"cta_group: 2 shares blocks of values with contiguous columns, and "
            f"those of {plan.dtype} have contiguous keys in the shared memory of a CTA",
            keys=("cta_group", "dtype"),
            remedies=([{"cta_group": 1}],),
        )
    if plan.epilogue == "tma_store":
        yield Refusal(
            kind="query slot of bytes",
            message="epilogue: tma_store stages the output in the query slot, whose elements of "
            f"{plan.dtype} are half as wide as those of {plan.out_dtype}",
            keys=("epilogue", "dtype"),
            remedies=([{"epilogue": "direct"}],),
        )


def _scales(plan: HopperMemory) -> Iterator[Refusal]:
    """Yield scales of what has none, and what kernels with scales of pages do not have."""
    config = plan.config
    if config.kv_scale == "auto":
        return
    if plan.element_bytes != 1:
        yield Refusal(
            kind="scales of 16 bits",
            message=f"kv_scale: {config.kv_scale} is for dtype: fp8_e4m3, but keys and values are "
            f"{config.dtype}, without scales",
            keys=("kv_scale", "dtype"),
            remedies=([{"kv_scale": "auto"}], [{"dtype": "fp8_e4m3"}]),
        )
        return
    yield from scales_without_pages(config)
    if config.kv_scale != "page":
        return
    if config.max_logits:
        yield Refusal(
            kind="largest logits with scales of pages",
            message="max_logits: true with kv_scale: page is not possible: the maxima that a "
            "kernel keeps are of logits to which the logarithms of values' scales are added",
            keys=("max_logits", "kv_scale"),
            remedies=([{"max_logits": False}], [{"kv_scale": "head"}]),
        )
    if config.resolved_score.IS_EXPRESSION:
        yield Refusal(
            kind="expressions with scales of pages",
            message="score with kv_scale: page is not supported yet: an expression is of logits, "
            "and scores have the scales of their pages first",
            keys=("score", "kv_scale"),
            remedies=([{"score": None}], [{"kv_scale": "head"}]),
        )


def _tiles_of_several_heads(plan: HopperMemory) -> Iterator[Refusal]:
    """Yield requests that need the head or query of each row, where a tile has several heads."""
    config = plan.config
    if config.tile_heads == 1:
        return
    mask = config.resolved_mask
    asked = {
        "batching": config.batching == "ragged",
        "keys": config.resolved_keys == "paged",
        "key_lengths": config.key_lengths,
        "blocks": config.lists_blocks,
        "mask": mask.tests_keys or bool(mask.tile_names) or bool(mask.tensors_read),
        "score": config.resolved_score.IS_EXPRESSION,
        "cta_group": plan.is_pair,
    }
    keys = tuple(key for key, has in asked.items() if has)
    if not keys:
        return
    words = ", ".join(f"{key}: {shown(getattr(config, key))}" for key in keys)
    yield Refusal(
        kind="tiles of several heads",
        message=f"tile_heads: {config.tile_heads} is for dense batches, masks by the ends of what "
        f"a row sees, and single CTAs so far, not with {words}",
        keys=("tile_heads", *keys),
        remedies=([{"tile_heads": 1}], [{"cta_group": 1}] if keys == ("cta_group",) else []),
    )


def _broken_chunk_rules(plan: HopperMemory, asked: int) -> Iterator[Refusal]:
    if asked and not plan.config.overlap:
        yield Refusal(
            kind="chunks without overlap",
            message=f"num_pv_chunks_in_flight: {asked} needs overlap: without it, all of P.V is "
            "waited for before the next Q.K",
            keys=("num_pv_chunks_in_flight",),
            remedies=(
                [{"overlap": True}, {"overlap": True, "num_pv_chunks_in_flight": "auto"}],
                [{"num_pv_chunks_in_flight": 0}],
            ),
        )
    elif asked > plan.num_chunks:
        yield Refusal(
            kind="more chunks than there are",
            message=f"num_pv_chunks_in_flight: {asked}, but a block of BN = {plan.BN} keys has "
            f"{plan.BN} / {plan.chunk_keys} = {plan.num_chunks} chunks of P.V",
            keys=("num_pv_chunks_in_flight",),
            remedies=(
                [{"num_pv_chunks_in_flight": plan.num_chunks}],
                [{"BN": min(MAX_BLOCK, asked * plan.chunk_keys)}],
            ),
        )
