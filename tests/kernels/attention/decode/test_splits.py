# ruff: noqa: E501 (a mutant is on the line of its name)
"""Splits of a fixed number of keys: a sequence gives the same bits whatever else is in the batch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.attention.launches import ShownMutant
from tests.kernels.attention.sequences import assert_isolated
from tests.kernels.source_mutation import Change, kernel_of

KEYS: dict[str, Any] = {
    "arch": "sm_90a",
    "depth": 192,
    "mask": "causal",
    "pack_heads": True,
    "split_keys": {"keys": 64},
}
SOURCES: dict[str, dict[str, Any]] = {
    "lengths": {"key_lengths": True},
    "pages": {"keys": "paged", "page_size": 16},
    "64 rows": {"key_lengths": True, "packed_rows": 64, "depth": 128, "split_keys": {"keys": 128}},
}
LENGTHS = ((2, 150), (2, 0), (2, 64), (2, 65), (2, 1))
MUTANTS = {
    "split of the tile before": Change(r"workspace\.row\(tile\.begin \+ split", "workspace.row(tile.begin - 1 + split"),
    "partial result read early": Change(r"\(ticket, 1\) < count - 1\)", "(ticket, 1) < count - 2)"),
    "split one block short": Change(r"tile\.unit_at\(place \+ 1\)\);", "tile.unit_at(place));"),
}  # fmt: skip
SHOWN = {
    name: ShownMutant({**KEYS, **SOURCES["lengths"]}, change, LENGTHS)
    for name, change in MUTANTS.items()
}
QUICK = ()


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("source", "arch"),
    [
        *((source, "sm_90a") for source in SOURCES),
        pytest.param("lengths", "sm_100a", marks=pytest.mark.seeds),
        pytest.param("pages", "sm_100a", marks=pytest.mark.seeds),
    ],
)
def test_a_sequence_gives_the_same_bits_in_every_batch(source: str, arch: str) -> None:
    keys = {**KEYS, **SOURCES[source], "arch": arch}
    assert_isolated(kernel_of(keys), LENGTHS, (0, 3), kinds=1)
