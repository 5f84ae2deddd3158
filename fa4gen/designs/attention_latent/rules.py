"""The features that a latent kernel on Hopper does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.decode_rules import unsupported_features

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_latent.config import LatentConfig
    from fa4gen.designs.common.refusal import Refusal


def broken_rules(config: LatentConfig) -> Iterator[Refusal]:
    """Yield the config's requests that do not go with latent attention."""
    yield from unsupported_features(config)
