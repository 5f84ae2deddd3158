"""What is tried at depth 512 on Hopper: another order of tiles, a larger loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import AttentionConfig
    from fa4gen.designs.shared.candidates import Changes

KEYS = ("scheduler", "registers")
SPLITS = ({"producer": 24, "consumer": 240}, {"producer": 56, "consumer": 224})


def candidates(config: AttentionConfig) -> Iterator[Changes]:
    """Yield what to try, in order."""
    del config
    yield {"scheduler": "static"}
    for registers in SPLITS:
        yield {"registers": registers}
        yield {"scheduler": "static", "registers": registers}
