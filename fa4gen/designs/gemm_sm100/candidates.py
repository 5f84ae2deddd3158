"""The candidates of products on Blackwell: two slots of the output, then narrower tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.candidates import Changes
    from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig

WIDTHS = (128, 64)


def candidates(config: BlackwellGemmConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    del config
    yield {"num_out_stages": 2}
    for columns in WIDTHS:
        yield {"BN": columns}
