"""What is tried of a latent kernel on Blackwell: it has one tile, so nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import BlackwellAttentionConfig
    from fa4gen.designs.common.candidates import Changes

KEYS = ()


def candidates(config: BlackwellAttentionConfig) -> Iterator[Changes]:
    """Yield what to try, in order."""
    del config
    yield from ()
