"""The rules of keys and values with a scale for each page, in decode and in prefill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_config import AttentionKeys


def scales_without_pages(config: AttentionKeys) -> Iterator[Refusal]:
    """Yield a fault for scales of pages where keys are in none."""
    if config.resolved_kv_scale == "page" and config.resolved_keys != "paged":
        yield Refusal(
            kind="scales of pages",
            message="kv_scale: page is for keys: paged, but keys are "
            f"{config.resolved_keys}, in no pages",
            keys=("kv_scale", "keys"),
            remedies=([{"keys": "paged", "page_size": 64}], [{"kv_scale": "head"}]),
        )
