"""The cost of sharing the keys of a tile: the keys that the CTA with the most of them reads.

Such a kernel streams keys, so that this CTA sets its time. Even shares have the least, whatever the
lengths: that is why ``split_keys: auto`` needs no number of splits.
"""

from __future__ import annotations

from dataclasses import dataclass

KEY_HEADS = 8
PROBLEMS = ((1, 8192), (1, 131072), (16, 8192), (20, 8192), (64, 4096))
"""Sequences, and keys of each, that are shown."""
SHOWN_SPLIT = 1024
"""Keys of a split where the config has none of a fixed number."""


@dataclass(frozen=True)
class MostKeys:
    """Keys that the CTA with the most of them reads, by how the CTAs share those of a tile."""

    whole_tiles: int
    even_shares: int
    fixed_splits: int


def most_keys(tiles: int, keys: int, ctas: int, *, unit: int, split: int) -> MostKeys:
    """Return the cost of ``tiles`` tiles of ``keys`` keys each.

    ``unit``: keys that even shares are counted in; ``split``: keys of a split of a fixed number.
    """

    def share(step: int) -> int:
        return min(-(-tiles * -(-keys // step) // ctas) * step, tiles * keys)

    return MostKeys(share(keys), share(unit), share(split))


def cost_lines(shares: int, *, unit: int, split: int, who: str = "CTA") -> tuple[str, ...]:
    """Return a table for ``fa4gen explain``: a line for each problem. ``who`` has a share."""
    split = split or SHOWN_SPLIT
    columns = "{:>16}  {:>11}  {:>11}  {:>16}"
    lines = [
        f"Keys that the {who} with the most of them reads, which sets the time; "
        f"{KEY_HEADS} key heads, a tile of each, {shares} {who}s:",
        columns.format("sequences x keys", "whole tiles", "even shares", f"splits of {split}"),
    ]
    for sequences, keys in PROBLEMS:
        cost = most_keys(sequences * KEY_HEADS, keys, shares, unit=unit, split=split)
        numbers = (cost.whole_tiles, cost.even_shares, cost.fixed_splits)
        lines.append(columns.format(f"{sequences} x {keys}", *numbers))
    return tuple(lines)
