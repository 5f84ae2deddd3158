"""The timer of candidates: on the GPU, and the interface of a stand-in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.tune.family import Family


FEWEST_CALLS, MOST_CALLS = 5, 40
"""Timed calls of a kernel in a round. Many of a short one would take their time in writing the
memory before each, which displaces L2; rounds are more."""

HEATING_S = 0.03
"""Work of its first kernel before a round. A chip that was idle has a higher clock for a while: a
long kernel took 0.86 of its time in other rounds."""


SLOW = "fa2"
"""A peer that is never the fastest if FlashAttention-3 is there."""


@dataclass(frozen=True)
class Rounds:
    """Kernels and peers that are ready to be timed on one problem."""

    ours: tuple[str, ...]
    """Names of the kernels that gave the right output."""
    peers: tuple[str, ...]
    """Names of the peers that can be timed."""
    left_out: Mapping[str, str]
    """Kernels and peers that cannot, with the reason."""
    time: Callable[[Sequence[str], int], dict[str, float]]
    """Times each of some names once, in their order, in a round of a number; microseconds."""


class Timer(Protocol):
    """Makes kernels ready to be timed; random data and peers are kept from problem to problem."""

    @property
    def chip(self) -> str:
        """The name of the GPU."""

    def prepare(self, kernels: Sequence[tuple[Plan, CompiledKernel]], problem: Any) -> Rounds:
        """Check the kernels' outputs on a problem, and make them and their peers ready."""


class GpuTimer:
    """Times by CUDA events, with a cold L2, as ``fa4gen bench`` does."""

    def __init__(self, family: Family, chip: str, fa3: str = "") -> None:
        """Touches no GPU yet."""
        self.chip = chip
        self._family = family
        self._fa3 = fa3
        self._bench: Any = None

    def prepare(self, kernels: Sequence[tuple[Plan, CompiledKernel]], problem: Any) -> Rounds:
        """Check the kernels' outputs on a problem, and make them and their peers ready."""
        if self._bench is None:
            self._bench = _bench(self._family.name, self._fa3)
        size = self._family.bench_size(problem)
        ours, peers, left_out = self._bench.prepare(kernels, size)
        return Rounds(tuple(ours), tuple(peers), left_out, partial(time_runs, {**ours, **peers}))


def _bench(family: str, fa3: str) -> Any:
    """Return bench's timer with the peers that may be the fastest."""
    from pathlib import Path

    from fa4gen.bench.family import family_called
    from fa4gen.bench.run import Bench, BenchOptions

    found = family_called(family).find_peers(Path(fa3) if fa3 else None).found
    return Bench(
        BenchOptions((), family=family), [peer for peer in found if not fa3 or peer.name != SLOW]
    )


def time_runs(
    runs: Mapping[str, Callable[[], Any]], names: Sequence[str], turn: int
) -> dict[str, float]:
    """Time each of ``names`` once on the GPU; return microseconds by name."""
    from fa4gen.runtime.timing import TimingProtocol, time_in_turn

    heating = TimingProtocol(warmup_s=HEATING_S, budget_s=0.0, max_samples=MOST_CALLS)
    time_in_turn({name: runs[name] for name in names[:1]}, heating, rounds=1)
    protocol = TimingProtocol(
        warmup_s=0.002 if turn else 0.005,
        budget_s=0.01,
        min_samples=FEWEST_CALLS,
        max_samples=MOST_CALLS,
    )
    timings = time_in_turn({name: runs[name] for name in names}, protocol, rounds=1)
    return {name: 1000 * taken[0].median_ms for name, taken in timings.items()}
