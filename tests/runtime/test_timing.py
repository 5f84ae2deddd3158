"""Samples, their number and their statistics; on a GPU, durations that match the work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.errors import MissingCapabilityError
from fa4gen.runtime.device import device_count
from fa4gen.runtime.timing import (
    Timing,
    TimingProtocol,
    sample_count,
    time_in_turn,
)


def test_statistics_of_samples():
    timing = Timing((3.0, 1.0, 2.0, 4.0, 5.0))
    assert timing.median_ms == 3.0
    assert timing.spread == pytest.approx(2.0 / 3.0)
    assert Timing((2.0,)).spread == 0.0


@given(st.floats(0, 1e6), st.floats(0, 10), st.integers(1, 50), st.integers(50, 1000))
def test_samples_fill_the_budget_within_bounds(estimate, seconds, low, high):
    count = sample_count(estimate, seconds, low, high)
    assert low <= count <= high
    if low < count < high:
        assert (count - 1) * estimate <= 1000 * seconds <= count * estimate * (1 + 1e-9)


@pytest.mark.skipif(device_count() > 0, reason="there is a GPU here")
def test_without_a_gpu_nothing_can_be_timed():
    with pytest.raises(MissingCapabilityError, match="nothing can be timed without a GPU"):
        time_in_turn({"nothing": lambda: None})


@pytest.mark.gpu
@pytest.mark.parametrize("flush_l2", [True, False])
def test_twice_the_work_takes_about_twice_the_time(gpu, flush_l2):
    import cupy

    memory = cupy.cuda.alloc(1 << 30)
    stream = cupy.cuda.get_current_stream()
    protocol = TimingProtocol(flush_l2=flush_l2, budget_s=0.02)
    timings = time_in_turn(
        {
            "half": lambda: memory.memset_async(0, 1 << 29, stream),
            "all": lambda: memory.memset_async(0, 1 << 30, stream),
        },
        protocol,
        rounds=2,
    )
    assert [len(rounds) for rounds in timings.values()] == [2, 2]
    ratio = timings["all"][1].median_ms / timings["half"][1].median_ms
    assert 1.5 < ratio < 2.5
    gigabytes_a_second = (1 << 30) / timings["all"][1].median_ms / 1e6
    assert 500 < gigabytes_a_second < 20_000


@pytest.mark.gpu
def test_calls_of_a_sample_are_counted_out(gpu):
    import cupy

    memory = cupy.cuda.alloc(1 << 28)
    stream = cupy.cuda.Stream(non_blocking=True)
    calls = []

    def run():
        calls.append(1)
        memory.memset_async(0, 1 << 28, cupy.cuda.get_current_stream())

    def one(protocol):
        return time_in_turn({"run": run}, protocol, rounds=1, stream=stream.ptr)["run"][0]

    single = one(TimingProtocol(flush_l2=False))
    count = len(calls)
    many = one(TimingProtocol(flush_l2=False, calls_per_sample=8))
    assert len(calls) - count > 8 * len(many.samples_ms)
    assert many.median_ms < 1.5 * single.median_ms
