"""From the config to the plan of a latent kernel on Blackwell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent_sm100.memory import PAIR_ROWS
from fa4gen.designs.attention_latent_sm100.model import LatentPairPlan
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.decode_parameters import note_shares
from fa4gen.designs.common.decode_rules import other_output, unsupported_features
from fa4gen.designs.common.latent import BLOCK_KEYS
from fa4gen.designs.common.refusal import Refusal
from fa4gen.designs.common.values import take_keys, take_rescale_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_latent_sm100.config import LatentPairConfig


def decide(config: LatentPairConfig) -> LatentPairPlan:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    log.note("packed_rows", PAIR_ROWS, "derived", "a product of 128 rows over a pair of CTAs")
    log.note("BM", PAIR_ROWS, "derived", "packed_rows")
    log.note("BN", BLOCK_KEYS, "derived", "two blocks fit shared memory beside the query")
    threshold = take_rescale_threshold(config, log)
    note_shares(config, log, "pair")
    return LatentPairPlan(config=config, rescale_threshold=threshold, choices=log.rows)


def find_faults(plan: LatentPairPlan) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return [
        *other_output(plan.config, plan.config.out_dtype),
        *unsupported_features(plan.config),
        *_small_pages(plan.config),
    ]


def _small_pages(config: LatentPairConfig) -> Iterator[Refusal]:
    if config.page_size is not None and config.page_size % BLOCK_KEYS:
        yield Refusal(
            kind="small pages of latent attention",
            message=f"page_size: {config.page_size} at depth 576 is no multiple of the "
            f"{BLOCK_KEYS} keys of a block, which are in one page",
            keys=("page_size",),
            remedies=([{"page_size": BLOCK_KEYS}],),
        )
