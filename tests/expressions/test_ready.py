"""Masks and scores with a name: each is the expression and the tensors of its row."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen import masks, scores
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.expressions.places import Places
from fa4gen.expressions.ready import READY

BASE = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}
NUMBER = 5


def plan(**keys):
    return build_plan(load_mapping({**BASE, **keys}, "probe").config)


def has_number(one):
    return "{number}" in one.text


def named(one):
    return {one.key: {one.name: NUMBER} if has_number(one) else one.name}


def test_every_word_is_a_row() -> None:
    rows = {(one.key, one.name) for one in READY if not has_number(one)}
    words = {("mask", name) for name in masks.READY_WORDS}
    assert rows == words | {("score", name) for name in scores.READY_WORDS}
    assert {one.name for one in READY if has_number(one)} == {"dilated", "relative_bias"}


@pytest.mark.parametrize("one", READY, ids=lambda one: one.name)
def test_a_name_is_the_config_that_writes_it_out(one) -> None:
    by_name = plan(**named(one))
    tensors = one.parameters(NUMBER)
    written = plan(
        **{one.key: one.expression(NUMBER)},
        parameters={t.name: {"dtype": t.dtype, "shape": list(t.shape)} for t in tensors} or None,
    )
    assert by_name.mask == written.mask
    assert by_name.score == written.score
    assert by_name.declared_tensors == written.declared_tensors == tensors


@pytest.mark.parametrize("one", [one for one in READY if one.tensors], ids=lambda one: one.name)
def test_its_tensor_is_not_declared_again(one) -> None:
    name = one.tensors[0].name
    again = {name: {"dtype": "int32", "shape": ["batch"]}}
    with pytest.raises(ConfigError, match=rf"{name} comes with {one.key}: {one.name}, as "):
        plan(**named(one), parameters=again)


def test_a_mask_and_a_score_bring_both_tensors() -> None:
    found = plan(mask="documents", score="alibi", parameters=None)
    assert [tensor.name for tensor in found.declared_tensors] == ["document", "slope"]


def sees(name, tensors, rows, keys, batch=0):
    row = np.arange(rows)[:, None]
    places = Places(row + keys - rows, np.arange(keys)[None], row, 0, 0, batch, tensors)
    return np.broadcast_to(plan(mask=name).mask.sees_at(places, np), (rows, keys))


def test_tree_sees_the_context_and_its_ancestors() -> None:
    parents, context = [-1, 0, 0, 1, 3, 2], 4
    ancestors = np.zeros((2, len(parents)), np.int32)
    for row, parent in enumerate(parents):
        of_parent = ancestors[1, parent] if parent >= 0 else 0
        ancestors[1, row] = of_parent | 1 << row
    found = sees("tree", {"ancestors": ancestors}, len(parents), context + len(parents), batch=1)
    assert found[:, :context].all()
    for row in range(len(parents)):
        seen, at = set(), row
        while at >= 0:
            seen.add(at)
            at = parents[at]
        assert set(np.flatnonzero(found[row, context:])) == seen


def test_tree_has_as_many_tokens_as_bits() -> None:
    ancestors = np.full((1, 32), -1, np.int32)
    ancestors[0, 31] = np.int32(-(2**31))
    found = sees("tree", {"ancestors": ancestors}, 32, 40)
    assert (found[:31, 8:] == np.tril(np.ones((31, 32), bool))).all()
    assert list(np.flatnonzero(found[31])) == [*range(8), 39]


def test_tree_alone_limits_the_rows_of_a_call() -> None:
    limits = {one.name: plan(**named(one)).mask.most_rows for one in READY if one.key == "mask"}
    assert limits == {"documents": None, "prefix": None, "tree": 32, "dilated": None}


def test_prefix_is_seen_by_all() -> None:
    found = sees("prefix", {"prefix": np.array([3, 6], np.int32)}, 5, 8, batch=1)
    query, key = np.arange(5)[:, None] + 3, np.arange(8)
    assert (found == ((key < 6) | (key <= query))).all()


def test_relative_bias_has_an_end_for_each_side() -> None:
    bias = np.arange(11, dtype=np.float32)[None]
    row = np.arange(9)[:, None]
    places = Places(row, np.arange(9)[None], row, 0, 0, 0, {"bias": bias})
    found = plan(score={"relative_bias": 5}).score.exact(np.zeros((9, 9)), np, places)
    assert (found == np.clip(np.arange(9) - row + 5, 0, 10)).all()
