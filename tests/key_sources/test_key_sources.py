"""Where rows of sequences are: offsets, lengths and pages, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.errors import ConfigError
from fa4gen.key_sources import Dense, Paged, Ragged, key_source_of

KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}


def test_dense_rows_are_those_of_a_batch() -> None:
    assert list(Dense("key").rows(2, 5, {})) == [10, 11, 12, 13, 14]
    assert not Dense("key").clipped
    assert Dense("key").tables == ()


def test_dense_rows_with_lengths_are_the_first_ones() -> None:
    source = Dense("key", has_lengths=True)
    assert list(source.rows(2, 5, {"key_lengths": np.array([9, 9, 3])})) == [10, 11, 12]
    assert source.clipped
    assert [table.name for table in source.tables] == ["key_lengths"]


def test_ragged_rows_are_between_two_offsets() -> None:
    offsets = np.array([2, 2, 7, 8])
    rows = [list(Ragged("query").rows(i, 0, {"query_offsets": offsets})) for i in range(3)]
    assert rows == [[], [2, 3, 4, 5, 6], [7]]
    assert Ragged("query").count("s") == "query_offsets[s + 1] - query_offsets[s]"


def test_paged_rows_follow_the_table_up_to_the_length() -> None:
    tables = {
        "key_lengths": np.array([5, 16, 0, 18]),
        "page_table": np.array([[3, -1], [0, -1], [-1, -1], [2, 1]]),
    }
    rows = [list(Paged("key", 16).rows(i, 0, tables)) for i in range(4)]
    assert rows == [[48, 49, 50, 51, 52], list(range(16)), [], [*range(32, 48), 16, 17]]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"keys": "paged"}, "keys: paged needs page_size"),
        ({"page_size": 16}, "page_size: 16 is for keys: paged, but keys are dense"),
        ({"batching": "ragged", "key_lengths": True}, "the lengths follow from key_offsets"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(keys: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_mapping({**KEYS, **keys}, "probe")


def test_keys_are_as_the_batch_when_not_given() -> None:
    config = load_mapping({**KEYS, "batching": "ragged"}, "probe").config
    assert config.resolved_keys == "ragged"
    assert config.key_source == key_source_of("ragged", has_lengths=False, page_size=None)
    assert config.has_tile_lengths
