from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.bench.results import BEST, Series, geometric_mean


def test_a_series() -> None:
    series = Series((0.5, 0.4, 0.6), (0.0, 0.0, 0.0))
    assert series.median_ms == 0.5
    assert series.round_spread == pytest.approx(0.4)


def test_speeds_and_ratios(make_size) -> None:
    size = make_size(1024, 0.5, fa3=0.6, cudnn=0.4)
    assert size.tflops(size.ours) == pytest.approx(200.0)  # 1e11 in 0.5 ms
    assert size.tflops(size.peers["cudnn"]) == pytest.approx(250.0)
    assert size.best_peer == "cudnn"
    assert size.ratio("fa3") == pytest.approx(1.2)
    assert size.ratio(BEST) == size.ratio("cudnn") == pytest.approx(0.8)
    assert size.ratio("fa2") is None


def test_speeds_where_memory_sets_them(make_size) -> None:
    size = make_size(1, 0.5, read_bytes=2 * 10**9, fa3=0.8, floor=0.4)
    assert size.unit == "GB/s"
    assert size.speed(size.ours) == pytest.approx(4000.0)
    assert size.ratio("floor") == pytest.approx(0.8)
    assert size.best_peer == "fa3", "the floor computes nothing"
    products = make_size(1024, 0.5)
    assert products.unit == "TFLOP/s"
    assert products.speed(products.ours) == products.tflops(products.ours)


def test_a_size_without_peers(make_size) -> None:
    size = make_size(1024, 0.5)
    assert size.best_peer is None
    assert size.ratio(BEST) is None


def test_geometric_means(make_result) -> None:
    result = make_result()
    assert result.peer_names == ("fa3", "cudnn")
    assert result.geometric_mean("fa3") == pytest.approx((1.2 * 0.8 * 2.0) ** (1 / 3))
    assert result.geometric_mean("cudnn") == pytest.approx(math.sqrt(0.8 * 2.0)), "where it ran"
    assert result.geometric_mean(BEST) == pytest.approx((0.8 * 0.8 * 2.0) ** (1 / 3))
    assert result.geometric_mean("fa2") is None


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=20), st.floats(0.5, 2))
def test_the_geometric_mean_scales_and_stays_inside(values, factor) -> None:
    mean = geometric_mean(values)
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert geometric_mean([factor * value for value in values]) == pytest.approx(factor * mean)


def test_peers_left_out_are_known_with_the_first_reason(make_result, make_size) -> None:
    from dataclasses import replace

    sizes = tuple(
        replace(make_size(rows, 1.0), left_out={"cudnn": f"reason {rows}"}) for rows in (1024, 2048)
    )
    assert make_result(sizes=sizes).left_out == {"cudnn": "reason 1024"}
