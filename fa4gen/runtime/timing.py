"""Timing of GPU work by CUDA events: warm-up, cold or warm L2, many samples, medians."""

from __future__ import annotations

import math
import statistics
from contextlib import nullcontext
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from fa4gen.errors import MissingCapabilityError, Problem
from fa4gen.runtime.device import device_count, load_cupy, why_no_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FLUSH_BYTES = 256 << 20
"""More than any L2 holds."""
ESTIMATE_CALLS = 5


@dataclass(frozen=True)
class Timing:
    """Durations of one callable, in milliseconds, in the order they were taken."""

    samples_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median: the reported time."""
        return statistics.median(self.samples_ms)

    @property
    def spread(self) -> float:
        """Interquartile range over the median; 0 for a single sample."""
        if len(self.samples_ms) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.samples_ms, n=4, method="inclusive")
        return (high - low) / self.median_ms


@dataclass(frozen=True)
class TimingProtocol:
    """The protocol of timing.

    With ``flush_l2``, 256 MB are written before each sample, so that every sample starts with a
    cold L2 and the host has time to enqueue the work. Without it and with many
    ``calls_per_sample``, the calls run back to back: the figure under sustained load, at the clock
    that power allows.
    """

    warmup_s: float = 0.025
    budget_s: float = 0.1
    """GPU time for the samples of one callable; the number of samples follows from it."""
    min_samples: int = 10
    max_samples: int = 1000
    flush_l2: bool = True
    calls_per_sample: int = 1


def sample_count(estimate_ms: float, seconds: float, low: int, high: int) -> int:
    """Return how many samples of ``estimate_ms`` fill ``seconds``, from ``low`` to ``high``."""
    if estimate_ms <= 0:
        return high
    wanted = 1000 * seconds / estimate_ms
    return high if wanted >= high else max(low, math.ceil(wanted))


def time_in_turn(
    runs: Mapping[str, Callable[[], object]],
    protocol: TimingProtocol | None = None,
    *,
    rounds: int = 3,
    stream: int | None = None,
) -> dict[str, tuple[Timing, ...]]:
    """Time callables in turn, ``rounds`` times, each round in another order.

    Each enqueues GPU work on CuPy's current stream, or on the one given: ``stream`` is a stream's
    handle, such as torch's ``cuda_stream``; events and flushes go there. Drift of the clock, and
    heat from the previous callable, then affect all alike.

    Returns one Timing per round for each name. Raises MissingCapabilityError without a GPU;
    exceptions of a callable pass through.
    """
    protocol = protocol or TimingProtocol()
    timings: dict[str, list[Timing]] = {name: [] for name in runs}
    with _Stopwatch(protocol, stream) as watch:
        for turn in range(rounds):
            # Shuffled: a callable starts on a chip that the previous one heated.
            for name in Random(turn).sample(list(runs), len(runs)):
                timings[name].append(watch.time(runs[name]))
    return {name: tuple(taken) for name, taken in timings.items()}


class _Stopwatch:
    """Takes samples on one stream; holds the buffer that flushes L2."""

    def __init__(self, protocol: TimingProtocol, stream: int | None) -> None:
        if not device_count():
            raise MissingCapabilityError(
                Problem(
                    f"nothing can be timed without a GPU: {why_no_device()}",
                    remedy="run this on a machine with an NVIDIA GPU and its driver",
                )
            )
        self._cuda = load_cupy().cuda
        self._protocol = protocol
        self._scope: Any = nullcontext()
        if stream is not None:
            self._scope = _as_cupy_stream(self._cuda, stream)
        self._buffer: Any = None

    def __enter__(self) -> _Stopwatch:
        self._scope.__enter__()
        if self._protocol.flush_l2:
            self._buffer = self._cuda.alloc(FLUSH_BYTES)
        return self

    def __exit__(self, *error: object) -> None:
        self._scope.__exit__(*error)
        self._buffer = None

    def time(self, run: Callable[[], object]) -> Timing:
        """Warm up for as long as the protocol says, then take the samples."""
        protocol = self._protocol
        run()  # compiles, allocates, loads: not part of the estimate
        self._cuda.get_current_stream().synchronize()
        estimate = statistics.median(self._samples(run, ESTIMATE_CALLS))
        self._samples(run, sample_count(estimate, protocol.warmup_s, 1, protocol.max_samples))
        count = sample_count(
            estimate, protocol.budget_s, protocol.min_samples, protocol.max_samples
        )
        calls = protocol.calls_per_sample
        return Timing(tuple(sample / calls for sample in self._samples(run, count)))

    def _samples(self, run: Callable[[], object], count: int) -> list[float]:
        """Take ``count`` samples, in milliseconds, of all the calls of a sample together."""
        events = [(self._cuda.Event(), self._cuda.Event()) for _ in range(count)]
        stream = self._cuda.get_current_stream()
        for start, end in events:
            if self._buffer is not None:
                self._buffer.memset_async(0, FLUSH_BYTES, stream)
            start.record(stream)
            for _ in range(self._protocol.calls_per_sample):
                run()
            end.record(stream)
        stream.synchronize()
        return [float(self._cuda.get_elapsed_time(start, end)) for start, end in events]


class _Handle:
    """A stream's handle in the protocol by which CuPy accepts foreign streams."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version of the protocol, and the handle."""
        return 0, self._handle


def _as_cupy_stream(cuda: Any, handle: int) -> Any:
    """Return CuPy's stream over a handle; CuPy 14.1 replaced the class that did this."""
    if hasattr(cuda.Stream, "from_external"):
        return cuda.Stream.from_external(_Handle(handle))
    return cuda.ExternalStream(handle)
