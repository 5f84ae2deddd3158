from __future__ import annotations

import pytest

from fa4gen.emulator.timeline.figures import chains, measure, read_events
from tests.emulator.timeline.traces import attention, event, track


def test_figures_of_a_trace_with_known_gaps() -> None:
    figures = measure(read_events(attention(8)))
    assert (figures.begin, figures.end, figures.blocks) == (140, 640, 5)
    assert figures.cycles_per_block == 100
    assert figures.tensor_busy == pytest.approx(0.7)
    gaps = figures.gaps
    assert (gaps.count, gaps.total, gaps.longest) == (10, 150, 20)
    assert gaps.before == {"PV": 50, "QK": 100}
    assert gaps.waiting_for == {"weights": 50, "keys": 50, "its own work": 50}


def test_limits_are_cycles_of_a_block() -> None:
    figures = measure(read_events(attention(12)))
    assert figures.limits["tensor core"] == pytest.approx(70)
    assert figures.limits["exp2"] == pytest.approx(64)
    assert figures.limits["issue"] == pytest.approx(20)
    assert figures.limits["operands in shared memory"] == pytest.approx((640 + 2 * 320) / 128)
    assert figures.shared_bytes == pytest.approx(1280)
    assert figures.bound == "tensor core"


def test_roles_and_what_they_wait_for() -> None:
    softmax, issuer = measure(read_events(attention(8))).roles
    assert (softmax.name, softmax.warps, softmax.longest_wait) == ("softmax", 1, "scores")
    assert softmax.waiting == pytest.approx(0.4)
    assert softmax.kinds == pytest.approx({"exp2": 0.6, "wait": 0.4})
    assert (issuer.name, issuer.longest_wait) == ("issuer", "weights")


def test_parts_of_a_product_are_one_chain() -> None:
    found = chains(read_events(attention(3)))
    assert [chain.label for chain in found] == ["QK", "PV"] * 3


def test_products_that_cannot_be_told_apart_and_few_blocks() -> None:
    document = attention(2)
    for one in document["traceEvents"]:
        one["args"].pop("a", None)
    figures = measure(read_events(document))
    assert (figures.begin, figures.end) == (0, 180)
    assert set(figures.gaps.before) == {"product"}


def test_more_accumulators_are_one_block_unless_it_is_said() -> None:
    document = attention(16)
    firsts = [e for e in document["traceEvents"] if e["args"].get("a") == "shared memory"]
    for number, one in enumerate(firsts):
        one["args"]["d"] = number % 2
    assert measure(read_events(document)).blocks == 5
    assert measure(read_events(document), 16).blocks == 11


def test_other_ctas_are_left_out_and_no_products_are_refused() -> None:
    document = attention(8)
    assert read_events(document, 1) == ()
    with pytest.raises(ValueError, match="no matrix products"):
        measure(read_events(document, 1))
    one = [track(0, "warp  0", warp=0), event(0, "compute", "compute", 0, 1)]
    with pytest.raises(ValueError, match="no matrix products"):
        measure(read_events({"traceEvents": one}))
