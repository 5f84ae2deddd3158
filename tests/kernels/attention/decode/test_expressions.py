# ruff: noqa: E501 (a mutant is on the line of its name)
"""Decode with masks and scores that are expressions: right, and mutants of the kernel are not."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.verify.cases import Case
from tests.kernels.attention.launches import ShownMutant, failures
from tests.kernels.source_mutation import Change, kernel_of

KEYS: dict[str, Any] = {"arch": "sm_90a", "depth": 64, "mask": "causal", "pack_heads": True}
PAGES: dict[str, Any] = {"keys": "paged", "page_size": 16}
CONFIGS: dict[str, dict[str, Any]] = {
    "alibi": {**KEYS, "score": "alibi"},
    "tree": {**KEYS, **PAGES, "mask": "tree"},
    "by key": {
        **KEYS,
        "packed_rows": 16,
        "score": "score + bias[batch, key] * weight[key_head] - 0.01 * row",
        "parameters": {
            "bias": {"dtype": "fp32", "shape": ["batch", "keys"]},
            "weight": {"dtype": "fp32", "shape": ["key_heads"]},
        },
    },
    "some heads": {**KEYS, "mask": "key <= query and (head < 2 or query - key < 80)"},
    "documents": {**KEYS, "mask": "documents", "score": {"relative_bias": 32}},
    "fp8 zeros": {**KEYS, "kv_dtype": "fp8_e4m3", "score": {"relative_bias": 32}},
    "fp8": {**KEYS, **PAGES, "kv_dtype": "fp8_e4m3", "score": "alibi", "mask": {"dilated": 3}},
}

# Several heads share a key head, and rows of a lane are of different heads and positions.
SPLIT = Case("test/split", 2, 6, 2, 3, 400)
LENGTHS = Case("test/lengths", 4, 6, 2, 3, 400, lengths=((3, 400), (3, 0), (3, 33), (3, 64)))
# Of queries of zeros a power of two makes no more, and 1 / their scale is no float.
ZEROS = Case("test/zeros", 1, 2, 2, 3, 100, data="uniform")
CASES = {"tree": LENGTHS, "fp8": LENGTHS, "fp8 zeros": ZEROS}
RIGHT = ("alibi", "tree", "fp8 zeros")

MUTANTS = {
    "terms of the row beside": ("alibi", Change(r"terms = row_terms\[n\]\[i % 2\]", "terms = row_terms[n][(i + 1) % 2]")),
    "query of the row beside": ("alibi", Change(r"query = queries\[n\]\[i % 2\]", "query = queries[n][(i + 1) % 2]")),
    "key of the half before": ("alibi", Change(r"\* 16 \+ i / 2 % 2 \* 8;", "* 16;")),
    "key of the first lane": ("alibi", Change(r"first_key = warp_key \+ lane / 4", "first_key = warp_key")),
    "keys of the first warp": ("alibi", Change(r"apply_score\(scores, unit \* kUnitKeys \+ part \* kPartKeys\)", "apply_score(scores, unit * kUnitKeys)")),
    "head of the key head": ("alibi", Change(r"problem, row\.head\)", "problem, row.head / problem.heads_per_key_head)")),
    "bits of the sequence before": ("tree", Change(r"terms\.batch = tile\.sequence", "terms.batch = max(0, tile.sequence - 1)")),
    "row of the query beside": ("tree", Change(r"queries\[n\]\[i\] = position;", "queries[n][i] = position + 1;")),
    "first query row by one": ("tree", Change(r"diagonal = tile\.key_rows - problem\.query_rows;", "diagonal = tile.key_rows - problem.query_rows + 1;")),
    "key head of the tile after": ("by key", Change(r"problem, tile\.within / problem\.tiles_per_head\)", "problem, tile.within / problem.tiles_per_head + 1)")),
    "window of every head": ("some heads", Change(r"terms\.head = row\.head", "terms.head = 0")),
}  # fmt: skip
SHOWN = {
    name: ShownMutant(CONFIGS[config], change, CASES.get(config, SPLIT))
    for name, (config, change) in MUTANTS.items()
}
QUICK = ()


@pytest.mark.emulate
@pytest.mark.parametrize(
    "name",
    [one if one in RIGHT else pytest.param(one, marks=pytest.mark.seeds) for one in CONFIGS],
)
def test_two_launches_on_a_workspace_are_right(name: str) -> None:
    assert failures(kernel_of(CONFIGS[name]), CASES.get(name, SPLIT)) == []
