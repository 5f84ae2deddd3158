"""A kernel's own text on masks, built for the host, against the definition at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.masks.definitions import SEES, VALUES, of_kind
from tests.masks.kernel_text import COMPILER, build_mask

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a host compiler for C++")
DESIGNS = {
    "hopper": {"arch": "sm_90a", "dtype": "bf16", "depth": 128},
    "hopper depth 512": {"arch": "sm_90a", "dtype": "bf16", "depth": 512, "cta_group": 2},
    "blackwell": {"arch": "sm_100a", "dtype": "bf16", "depth": 128},
    "blackwell depth 512": {"arch": "sm_100a", "dtype": "bf16", "depth": 512, "cta_group": 2},
}


@pytest.fixture(scope="module", params=DESIGNS)
def design(request):
    return {"kernel": "attention", **DESIGNS[request.param]}


@pytest.fixture(scope="module", params=VALUES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def host_mask(design, kind, tmp_path_factory):
    return build_mask({**design, "mask": VALUES[kind]}, tmp_path_factory.mktemp("mask"))


def seen_by(mask, query_rows, key_rows, rows, keys):
    """(rows, keys): the definition, also for rows past the end; keys past the end are hidden."""
    return np.array(
        [
            [
                key < key_rows and SEES[mask.name](mask, row + key_rows - query_rows, key)
                for key in keys
            ]
            for row in rows
        ],
        dtype=bool,
    ).reshape(len(rows), len(keys))


@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_and_scores_are_those_of_the_definition(host_mask, kind, data) -> None:
    mask = data.draw(of_kind(kind, st.integers(0, 400)))
    query_rows, key_rows = data.draw(st.integers(1, 700)), data.draw(st.integers(0, 700))
    first_row = data.draw(st.integers(0, query_rows - 1))
    host_mask.set_numbers(mask)
    n = host_mask.block_keys

    rows = range(first_row, min(first_row + host_mask.rows, query_rows))
    every_key = range(-(-key_rows // n) * n)
    seen = seen_by(mask, query_rows, key_rows, rows, every_key)
    expected = {key // n for key in np.flatnonzero(seen.any(axis=0)).tolist()}
    found = host_mask.blocks(query_rows, key_rows, first_row, host_mask.rows)
    assert set(found) == expected

    block = data.draw(st.integers(0, key_rows // host_mask.keys))
    keys = range(block * host_mask.keys, (block + 1) * host_mask.keys)
    rows = range(first_row, first_row + host_mask.rows)
    seen = seen_by(mask, query_rows, key_rows, rows, keys)
    assert host_mask.needs_mask(query_rows, key_rows, first_row, block) == (not seen.all())
    hidden = host_mask.hidden(query_rows, key_rows, first_row, block)
    np.testing.assert_array_equal(hidden, ~seen)
