"""What is tried of matrix products on Hopper: a larger loader, then narrower tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.gemm import HopperGemmConfig
    from fa4gen.designs.shared.candidates import Changes

KEYS = ("registers", "num_epi_stages", "BN", "BM", "num_consumer_warpgroups", "BK")
WIDTHS = (192, 128, 64, 32, 16)
SPLITS = ({"producer": 40, "consumer": 152}, {"producer": 40, "consumer": 232})


def candidates(config: HopperGemmConfig) -> Iterator[Changes]:
    """Yield what to try, in order."""
    del config
    for registers in SPLITS:
        yield {"registers": registers}
    yield {"num_epi_stages": 2}
    for columns in WIDTHS:
        for registers in ({}, *({"registers": split} for split in SPLITS)):
            yield {"BN": columns, **registers}
