"""The candidates of a decode kernel: none, since its tile follows from the depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_decode.config import DecodeConfig
    from fa4gen.designs.common.candidates import Changes

KEYS = ("packed_rows",)


def candidates(config: DecodeConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    del config
    yield from ()
