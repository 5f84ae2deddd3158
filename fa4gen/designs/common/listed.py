"""The keys that ``blocks: listed`` can be combined with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.masks.mask import Mask

PAIR_DEPTH = 512
PAIRS = "the two CTAs of a pair load the same blocks, and lists are those of one tile"
SHARES = "CTAs share a line of all blocks, which has to be known before any list is read"
SEQUENCES = (
    "lists are made for the rows and keys of the call, and here each sequence has its own, read on "
    "the device"
)
"""Why lists do not go with a key."""


def check_lists(mask: Mask, keys: str, values: Mapping[str, Any]) -> None:
    """Raise ValueError where lists of blocks are not possible, or not supported yet.

    ``keys``: where keys and values are; ``values``: of all keys of the config.
    """
    if not mask.tests_keys:
        raise ValueError(
            f"blocks: listed is for masks that are conditions tested key by key; of mask: "
            f"{mask.name} the blocks are known without lists: use blocks: walked"
        )
    refused = {
        f"depth: {PAIR_DEPTH}": (values["depth"] == PAIR_DEPTH, PAIRS),
        "pack_heads: true": (values["pack_heads"], SHARES),
        "cta_group: 2": (values["cta_group"] == 2, PAIRS),
        f"batching: {values['batching']}": (values["batching"] != "dense", SEQUENCES),
        f"keys: {keys}": (keys != "dense", SEQUENCES),
        "key_lengths: true": (values["key_lengths"], SEQUENCES),
    }
    found = {words: reason for words, (is_refused, reason) in refused.items() if is_refused}
    if found:
        raise ValueError(
            f"blocks: listed with {' and '.join(found)} is not supported yet: "
            f"{'; '.join(dict.fromkeys(found.values()))}; use blocks: walked"
        )
