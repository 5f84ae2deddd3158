"""The places of a sequence's rows in the tensors of a call. A module each, and a row here.

The entries serve queries (config key ``batching``) and keys and values (``keys``). Config, kernels,
launcher and reference use only the entry; see ``key_source``.
"""

from __future__ import annotations

from typing import Literal

from fa4gen.key_sources.dense import Dense
from fa4gen.key_sources.key_source import KeySource, Table
from fa4gen.key_sources.paged import Paged
from fa4gen.key_sources.ragged import Ragged

__all__ = [
    "PAGE_SIZES",
    "Batching",
    "Dense",
    "KeySource",
    "Keys",
    "Paged",
    "Ragged",
    "Table",
    "key_source_of",
    "query_source_of",
]

Batching = Literal["dense", "ragged"]
Keys = Literal["dense", "ragged", "paged"]
PAGE_SIZES = (16, 32, 64, 128, 256)


def query_source_of(batching: Batching) -> KeySource:
    """Return the source of query rows."""
    return {"dense": Dense("query"), "ragged": Ragged("query")}[batching]


def key_source_of(keys: Keys, *, has_lengths: bool, page_size: int | None) -> KeySource:
    """Return the source of keys and values; ``page_size`` is None but for pages."""
    if keys == "paged":
        assert page_size is not None
        return Paged("key", page_size)
    return Ragged("key") if keys == "ragged" else Dense("key", has_lengths)
