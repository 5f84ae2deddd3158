"""The rules of latent kernels on Blackwell for configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.decode_rules import other_output, unsupported_features
from fa4gen.designs.common.latent_values import BLOCK_KEYS
from fa4gen.designs.common.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_latent_sm100.config import LatentPairConfig


def broken_rules(config: LatentPairConfig) -> Iterator[Refusal]:
    """Yield the config's requests that do not go with latent attention."""
    yield from other_output(config, config.out_dtype)
    yield from unsupported_features(config)
    if config.page_size is not None and config.page_size % BLOCK_KEYS:
        yield Refusal(
            kind="small pages of latent attention",
            message=f"page_size: {config.page_size} at depth 576 is no multiple of the "
            f"{BLOCK_KEYS} keys of a block, which are in one page",
            keys=("page_size",),
            remedies=([{"page_size": BLOCK_KEYS}],),
        )
