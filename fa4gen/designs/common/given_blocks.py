"""The keys that blocks which a call names do not go with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.attention_config import GivenBlocks
    from fa4gen.masks.mask import Mask
    from fa4gen.scores.score import Score


def check_blocks(blocks: GivenBlocks, mask: Mask, score: Score, values: Mapping[str, Any]) -> None:
    """Raise ValueError for keys that are not supported; ``values``: of all keys of the config."""
    refused = {
        f"mask: {mask.name}": mask.tests_keys,
        "score": score.IS_EXPRESSION,
        f"dtype: {values['dtype']}": values["dtype"] == "fp8_e4m3",
        f"cta_group: {values['cta_group']}": values["cta_group"] == 2,
        f"tile_heads: {values['tile_heads']}": values["tile_heads"] > 1,
        "dependent_launch: true": values["dependent_launch"],
        "ping_pong: true": values["ping_pong"] is True,
        "epilogue: tma_store": values["epilogue"] == "tma_store",
    }
    found = [words for words, is_refused in refused.items() if is_refused]
    if found:
        raise ValueError(
            f"blocks: {{rows: {blocks.rows}, keys: {blocks.keys}}} with {' and '.join(found)} is "
            "not supported: use a mask by its name, 16-bit types and the defaults of the other keys"
        )
    if values["BN"] not in ("auto", blocks.keys):
        raise ValueError(
            f"BN: {values['BN']} with blocks of {blocks.keys} keys: a block of the kernel is one "
            f"that lists name; use BN: {blocks.keys}, or leave it out"
        )
