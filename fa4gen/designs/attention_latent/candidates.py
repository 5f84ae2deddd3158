"""The candidates of a latent kernel on Hopper: none, since it has one tile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_latent.config import LatentConfig
    from fa4gen.designs.common.candidates import Changes

KEYS = ()


def candidates(config: LatentConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    del config
    yield from ()
