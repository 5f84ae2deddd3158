"""The results of bench: times, and their TFLOP/s, ratios and geometric means."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.errors import Problem

BEST = "best"
"""In place of a peer's name: the fastest peer at each size."""
VENDORED = "vendored"
"""The peer that is our own kernel through the vendored C launcher: not counted as the best peer."""
FLOOR = "floor"
"""The peer that only reads as many bytes: nor is it."""
NO_COMPETITORS = (VENDORED, FLOOR)


@dataclass(frozen=True)
class HostTimes:
    """Microseconds that the calling thread spends in one launch: medians of many samples."""

    python: float
    """``fa4gen.load``'s call: checks, look-up of the prepared launch, launch."""
    python_prepared: float
    vendored: float
    """The C function: checks, tensor maps, schedule, launch."""
    vendored_prepared: float
    vendored_graph: float
    """Prepared, with an executable graph."""
    driver: float
    """cuLaunchKernel alone, with the same parameters: a lower bound for every launcher."""


@dataclass(frozen=True)
class Series:
    """Times of one kernel at one size: the median and the spread of each round, in the order run.

    The spread of a round is the interquartile range of its samples over their median.
    """

    medians_ms: tuple[float, ...]
    spreads: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median of the rounds' medians: the reported time."""
        return statistics.median(self.medians_ms)

    @property
    def round_spread(self) -> float:
        """Range of the rounds over their median."""
        return (max(self.medians_ms) - min(self.medians_ms)) / self.median_ms


class Size(Protocol):
    """A problem in words."""

    @property
    def word(self) -> str:
        """The size in a word, which `--sizes` takes too."""

    @property
    def at(self) -> str:
        """The size for a message."""

    @property
    def extents(self) -> Mapping[str, Any]:
        """The extents, for the JSON file."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a table, one for each column of the family."""


@dataclass(frozen=True, kw_only=True)
class SizeResult:
    """The figures of one size."""

    size: Size
    flop: float
    ours: Series
    peers: Mapping[str, Series]
    left_out: Mapping[str, str]
    """Peers that did not run, and why."""
    error: float
    """Relative Frobenius error of our output against float64, on the part that was checked."""
    distances: Mapping[str, float] = field(default_factory=dict)
    """Relative Frobenius distance of our output from each peer's."""
    read_bytes: int = 0
    """Bytes that have to be read, where memory sets the speed; 0 where products do."""
    without: tuple[str, Series] | None = None
    """Another config, which computes the same without the residual, and its times in the same
    rounds."""

    def tflops(self, series: Series) -> float:
        """Convert a time at this size into TFLOP/s."""
        return self.flop / series.median_ms / 1e9

    def gb_per_s(self, series: Series) -> float:
        """Convert a time at this size into GB/s of the bytes that have to be read."""
        return self.read_bytes / series.median_ms / 1e6

    @property
    def unit(self) -> str:
        """The unit of speeds."""
        return "GB/s" if self.read_bytes else "TFLOP/s"

    def speed(self, series: Series) -> float:
        """Convert a time at this size into the unit."""
        return self.gb_per_s(series) if self.read_bytes else self.tflops(series)

    @property
    def best_peer(self) -> str | None:
        """The fastest peer that computes the same and is not our own kernel, if any ran."""
        others = [name for name in self.peers if name not in NO_COMPETITORS]
        return min(others, key=lambda name: self.peers[name].median_ms, default=None)

    def ratio(self, peer: str) -> float | None:
        """Our speed over that of ``peer`` (or BEST); None where it did not run."""
        name = self.best_peer if peer == BEST else peer
        if name is None or name not in self.peers:
            return None
        return self.peers[name].median_ms / self.ours.median_ms


@dataclass(frozen=True)
class ConfigResult:
    """The figures of one config."""

    config: str
    name: str
    facts: Mapping[str, Any]
    """arch, dtype, depth, mask and the like, for readers of the JSON file."""
    sizes: tuple[SizeResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Why it was not measured."""
    family: str = field(kw_only=True)
    """The config key ``kernel``."""
    host_us: HostTimes | None = None
    """The host's times, if the vendored launcher was timed, too."""

    @property
    def peer_names(self) -> tuple[str, ...]:
        """Peers that ran at one size at least, in the order of first appearance."""
        return tuple(dict.fromkeys(name for size in self.sizes for name in size.peers))

    @property
    def left_out(self) -> Mapping[str, str]:
        """Peers that did not run at some size, with the first reason."""
        found: dict[str, str] = {}
        for size in self.sizes:
            for name, reason in size.left_out.items():
                found.setdefault(name, reason)
        return found

    def geometric_mean(self, peer: str) -> float | None:
        """Return the geometric mean of the ratios to ``peer`` (or BEST), where it ran."""
        ratios = [ratio for size in self.sizes if (ratio := size.ratio(peer)) is not None]
        return geometric_mean(ratios) if ratios else None


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))
