"""A kernel's own text on masks, built for the host, against the definition at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from tests.masks.definitions import SEES, VALUES, of_kind
from tests.masks.kernel_text import COMPILER, build_mask

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a host compiler for C++")
DESIGNS = {
    "hopper": {"arch": "sm_90a", "dtype": "bf16", "depth": 128, "BN": 96},
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


def disagreement(host_mask, mask, query_rows, key_rows, first_row, block) -> str:
    """Return the difference of the kernel from the definition; "" for none."""
    host_mask.set_numbers(mask)
    n = host_mask.block_keys
    rows = range(first_row, min(first_row + host_mask.rows, query_rows))
    every_key = range(-(-key_rows // n) * n)
    seen = seen_by(mask, query_rows, key_rows, rows, every_key)
    expected = {key // n for key in np.flatnonzero(seen.any(axis=0)).tolist()}
    if set(host_mask.blocks(query_rows, key_rows, first_row, host_mask.rows)) != expected:
        return "visible_blocks"
    keys = range(block * host_mask.keys, (block + 1) * host_mask.keys)
    rows = range(first_row, first_row + host_mask.rows)
    seen = seen_by(mask, query_rows, key_rows, rows, keys)
    if host_mask.needs_mask(query_rows, key_rows, first_row, block) == seen.all():
        return "needs_mask"
    hidden = host_mask.hidden(query_rows, key_rows, first_row, block)
    return "" if (hidden == ~seen).all() else "mask_scores"


@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_and_scores_are_those_of_the_definition(host_mask, kind, data) -> None:
    mask = data.draw(of_kind(kind, st.integers(1, 400)))
    query_rows, key_rows = data.draw(st.integers(1, 700)), data.draw(st.integers(0, 700))
    first_row = data.draw(st.integers(0, query_rows - 1))
    block = data.draw(st.integers(0, key_rows // host_mask.keys))
    assert disagreement(host_mask, mask, query_rows, key_rows, first_row, block) == ""


MISTAKES = [
    # design, mask; its number, first row and block that show it; what is wrong, what becomes what
    ("hopper", "chunked", 200, 410, 4, "visible_blocks", "/ kBN, end)", "/ kBN + 1, end)"),
    ("hopper", "chunked", 200, 137, 0, "needs_mask", "cuts_left || ", ""),
    ("hopper", "chunked", 200, 200, 2, "mask_scores", "column < first[", "column + 1 < first["),
    ("hopper", "causal", None, 99, 1, "visible_blocks", "(end_key + kBN - 1)", "end_key"),
    ("hopper depth 512", "chunked", 200, 137, 1, "needs_mask", "Rows - 1 +", "Rows - 2 +"),
    ("blackwell", "chunked", 300, 300, 2, "mask_scores", "key > last", "key >= last"),
    ("blackwell depth 512", "chunked", 400, 337, 0, "needs_mask", "(first_row + kTileRows - 1 +",
     "(first_row +"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind", "number", "first_row", "block", "function", "old", "new"), MISTAKES
)
def test_a_mistake_in_the_text_is_found(
    name, kind, number, first_row, block, function, old, new, tmp_path
) -> None:
    config = {"kernel": "attention", **DESIGNS[name], "mask": VALUES[kind]}
    mask = find(of_kind(kind, st.just(number)), lambda _: True)
    wrong = build_mask(config, tmp_path, (old, new))
    assert disagreement(wrong, mask, 500, 500, first_row, block) == function
