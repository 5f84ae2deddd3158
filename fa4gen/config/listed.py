"""What ``blocks: listed`` goes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.masks.mask import Mask

PAIR_DEPTH = 512


def check_lists(mask: Mask, keys: str, values: Mapping[str, Any]) -> None:
    """Raise ValueError where lists of blocks are not possible, or not supported yet.

    ``keys``: where keys and values are; ``values``: of all keys of the config.
    """
    if mask.TEST is None:
        raise ValueError(
            f"blocks: listed is for masks that are conditions tested key by key; of mask: "
            f"{mask.name} the blocks are known without lists: use blocks: walked"
        )
    refused = {
        f"depth: {PAIR_DEPTH}": values["depth"] == PAIR_DEPTH,
        "pack_heads: true": values["pack_heads"],
        "cta_group: 2": values["cta_group"] == 2,
        f"batching: {values['batching']}": values["batching"] != "dense",
        f"keys: {keys}": keys != "dense",
        "key_lengths: true": values["key_lengths"],
    }
    found = [words for words, is_refused in refused.items() if is_refused]
    if found:
        raise ValueError(
            f"blocks: listed with {' and '.join(found)} is not supported yet: use blocks: walked"
        )
