"""Numbers of declared tensors that cases at edges are run on."""

from __future__ import annotations

import numpy as np

from fa4gen.config.find import find_configs
from fa4gen.verify.cases import Case
from fa4gen.verify.inputs import draw_tensor, make_rng
from tests.shipped import plan_of


def drawn(config: str, case: Case):
    """Return the first declared tensor of a shipped config."""
    (tensor,) = plan_of(find_configs([config])[0]).declared_tensors
    return draw_tensor(tensor, case, make_rng(1, case.name))


def test_wild_documents_are_in_no_order_and_differ_by_batch() -> None:
    found = drawn("d128_documents_bf16", Case("x", 2, 1, 1, 300, 400, tensors="wild"))
    assert found.shape == (2, 400)
    for row in found:
        assert 2 < len(set(row.tolist())) < 10
        assert (np.diff(row.astype(np.int64)) < 0).any()
        assert (np.diff(row.astype(np.int64)) > 0).any()
    assert not set(found[0].tolist()) & set(found[1].tolist())


def test_wild_slopes_are_large_tiny_zero_and_of_both_signs() -> None:
    found = drawn("d128_alibi_causal_bf16", Case("x", 1, 6, 6, 70, 400, tensors="wild"))
    assert found.min() < -1 < 0 < 1 <= found.max()
    assert 0 in found
    assert (np.abs(found[found != 0]) < 2.0**-9).any()


def test_wild_bits_are_everywhere() -> None:
    found = drawn("decode_d128_tree_paged64_bf16", Case("x", 2, 6, 6, 3, 400, tensors="wild"))
    seen = np.bitwise_or.reduce(found.view(np.uint32), axis=None)
    assert int(seen).bit_count() > 24
    assert (found < 0).any()


def test_runs_are_whole_blocks_and_whole_parts() -> None:
    case = Case("x", 2, 1, 1, 256, 640, tensors="runs")
    found = drawn("d128_documents_listed_bf16", case)
    assert [int((row == 1).sum()) for row in found] == [320, 320]
    assert set(found[0, 96:192]) == {1}
    assert set(found[0, 192:288]) == {5}
    np.testing.assert_array_equal(found[1], 6 - found[0])
