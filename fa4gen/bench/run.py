"""Times a kernel against its peers, in turn in one run, on the same random data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.bench.family import family_called
from fa4gen.bench.gpu_arrays import RandomNumbers
from fa4gen.bench.peers import LeftOutError
from fa4gen.bench.read_floor import ReadFloor, fastest_launch
from fa4gen.bench.results import FLOOR, ConfigResult, Series, SizeResult
from fa4gen.errors import Fa4genError
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.runtime.timing import Timing, TimingProtocol, time_in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.bench.peers import Peer
    from fa4gen.bench.work import Run, Work
    from fa4gen.toolchain.model import CompiledKernel

OURS = "fa4gen"
WITHOUT = "fa4gen without the residual"
Runs = dict[str, "Run"]
Kernel = tuple[Any, "CompiledKernel"]
"""A plan and its kernel."""


@dataclass(frozen=True)
class BenchOptions:
    """The kernels and sizes to time, and the way of timing."""

    sizes: tuple[Any, ...]
    """The sizes by the family's parse_sizes: numbers of rows and batches, or GemmWorkloads. None
    for attention: chosen by kernel."""
    rounds: int = 3
    seed: int = 0
    protocol: TimingProtocol = field(default_factory=TimingProtocol)
    family: str = field(kw_only=True)


class Bench:
    """Times kernels of a family one after the other; random data is made once for each type."""

    def __init__(
        self,
        options: BenchOptions,
        peers: Sequence[Peer | ReadFloor],
        others: Sequence[Kernel] = (),
    ) -> None:
        """Touches no GPU yet. ``others`` are the kernels of the run, each with its plan.

        The one of them that computes the same without the residual is timed in the rounds of each
        kernel that has one.
        """
        self._options = options
        self._family = family_called(options.family)
        self._peers = tuple(peer for peer in peers if not isinstance(peer, ReadFloor))
        self._floors = tuple(peer for peer in peers if isinstance(peer, ReadFloor))
        self._others = tuple(others)
        self._numbers = RandomNumbers(options.seed)

    def time_kernel(self, plan: Any, compiled: CompiledKernel, config: str = "") -> ConfigResult:
        """Time one kernel at every size.

        Raises Fa4genError for a kernel with a wrong output: its speed would mean nothing.
        """
        load_cupy().cuda.Device(require_device(plan.arch).ordinal).use()
        facts = self._family.facts(plan, compiled)
        place = self._family.compared_with(
            facts, [self._family.facts(*other) for other in self._others]
        )
        without = None if place is None else self._others[place]
        sizes = tuple(
            self._time_size(plan, compiled, without, size)
            for size in self._options.sizes or self._family.sizes_for(plan)
        )
        return ConfigResult(config, plan.name, facts, sizes, family=plan.kernel)

    def prepare(self, kernels: Sequence[Kernel], size: Any) -> tuple[Runs, Runs, dict[str, str]]:
        """Return calls of kernels of one function, by name, and of their peers.

        All work on the same random inputs. The third result has the kernels and peers that were
        left out, with the reason, such as a wrong output.
        """
        plan = kernels[0][0]
        load_cupy().cuda.Device(require_device(plan.arch).ordinal).use()
        work = self._family.work(plan, size, self._numbers)
        ours: Runs = {}
        left_out: dict[str, str] = {}
        for its, compiled in kernels:
            try:
                ours[its.name], _ = work.launch(its, compiled)
            except Fa4genError as reason:
                left_out[its.name] = reason.problems[0].message
        peers, _ = self._peer_calls(plan, work, left_out) if ours else ({}, {})
        return ours, peers, left_out

    def _time_size(
        self, plan: Any, compiled: CompiledKernel, without: Kernel | None, size: Any
    ) -> SizeResult:
        work = self._family.work(plan, size, self._numbers)
        left_out: dict[str, str] = {}
        launch, error = work.launch(plan, compiled)
        judge = self._family.peers_judge
        peers, distances = self._peer_calls(plan, work, left_out, judge=judge)
        runs: Runs = {OURS: launch, **peers}
        if without is not None:
            try:
                runs[WITHOUT], _ = work.launch(*without)
            except Fa4genError as reason:
                left_out[without[0].name] = reason.problems[0].message
        floors: Runs = {}
        for floor in self._floors if work.read_bytes else ():
            floors |= floor.launches(plan.arch, work.read_memory(), work.read_bytes)
        timings = time_in_turn(runs | floors, self._options.protocol, rounds=self._options.rounds)
        series = {name: make_series(timings[name]) for name in runs}
        if floors:
            series[FLOOR] = fastest_launch(make_series(timings[name]) for name in floors)
        bare = series.pop(WITHOUT, None)
        return SizeResult(
            size=work.size,
            flop=work.flop,
            ours=series.pop(OURS),
            peers=series,
            left_out=left_out,
            error=error,
            distances=distances,
            read_bytes=work.read_bytes,
            without=None if without is None or bare is None else (without[0].name, bare),
        )

    def _peer_calls(
        self, plan: Any, work: Work, left_out: dict[str, str], *, judge: bool = False
    ) -> tuple[Runs, dict[str, float]]:
        """Return the calls of peers by name, and how far their outputs are from ours.

        Adds those that cannot be timed to ``left_out``, with the reason. Where peers ``judge``, one
        that has another output means that ours is wrong: Fa4genError.
        """
        runs: Runs = {}
        distances: dict[str, float] = {}
        for peer in self._peers:
            if not peer.suits(plan):
                continue
            name = peer.label(plan)
            try:
                run, distances[name] = work.call(peer, plan)
            except (LeftOutError, RuntimeError, TypeError, ValueError) as reason:
                left_out[name] = (str(reason).strip().splitlines() or [repr(reason)])[0][:200]
                continue
            if distances[name] <= work.most_error:
                runs[name] = run
            elif judge:
                raise work.wrong(plan, work.too_far(distances[name], name))
            else:
                left_out[name] = work.too_far(distances[name], "ours")
        return runs, distances


def make_series(timings: Sequence[Timing]) -> Series:
    """Reduce each round to the reported figures."""
    return Series(
        tuple(timing.median_ms for timing in timings), tuple(timing.spread for timing in timings)
    )
