"""Knowledge between clusters: rounds, one per release of a cluster at GPU scope.

A cluster of a large grid mostly knows of none but its neighbours in launch order, so its knowledge
is kept for a run of clusters, not for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rounds:
    """The last rounds known of clusters, from cluster ``first`` on; of any other, none (0).

    values  uint32 (clusters from the first one known to the last,): never altered
    """

    first: int
    values: NDArray[np.uint32]

    def of(self, clusters: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The last round known of each of these clusters (shape as ``clusters``)."""
        if not len(self.values):
            return np.zeros(clusters.shape, np.uint32)
        at = clusters - self.first
        inside = (at >= 0) & (at < len(self.values))
        return np.where(inside, self.values[np.where(inside, at, 0)], np.uint32(0))

    def of_one(self, cluster: int) -> int:
        """The last round known of one cluster."""
        at = cluster - self.first
        return int(self.values[at]) if 0 <= at < len(self.values) else 0

    def joined(self, other: Rounds) -> Rounds:
        """The union of both knowledges."""
        if other is self or not len(other.values):
            return self
        if not len(self.values):
            return other
        first = min(self.first, other.first)
        stop = max(self.first + len(self.values), other.first + len(other.values))
        values = np.zeros(stop - first, np.uint32)
        values[self.first - first :][: len(self.values)] = self.values
        part = values[other.first - first :][: len(other.values)]
        np.maximum(part, other.values, out=part)
        return Rounds(first, values)


NOTHING: Final = Rounds(0, np.zeros(0, np.uint32))


class Grid:
    """The rounds of clusters, and the knowledge that they have released and learnt.

    rounds  uint32 (clusters,): the round that each cluster is in; accesses bear its number
    """

    def __init__(self, clusters: int) -> None:
        self.rounds = np.ones(clusters, np.uint32)
        self._known: dict[int, Rounds] = {}
        self._seen: dict[int, Rounds] = {}
        self._places: dict[int, Rounds] = {}

    @property
    def used(self) -> bool:
        """Whether anything was released."""
        return bool(self._places)

    def known(self, cluster: int) -> Rounds:
        """The last rounds that ``cluster`` knows of."""
        return self._known.get(cluster, NOTHING)

    def before_writes(self, cluster: int) -> Rounds:
        """The result of ``known`` with relaxed reads: a write that depends on one waits for it."""
        return self.known(cluster).joined(self._seen.get(cluster, NOTHING))

    def fence(self, cluster: int) -> Rounds:
        """End a round of a cluster: its present knowledge is there for others to learn."""
        own = Rounds(cluster, self.rounds[cluster : cluster + 1].copy())
        self.rounds[cluster] += np.uint32(1)
        self._known[cluster] = self.known(cluster).joined(own)
        return self._known[cluster]

    def publish(self, known: Rounds, address: int) -> None:
        """Join rounds into the release at an address."""
        self._places[address] = self._places.get(address, NOTHING).joined(known)

    def at(self, address: int) -> Rounds | None:
        """The rounds released at an address."""
        return self._places.get(address)

    def saw(self, cluster: int, rounds: Rounds) -> None:
        """Record that a relaxed read has seen released rounds."""
        self._seen[cluster] = self._seen.get(cluster, NOTHING).joined(rounds)

    def learn(self, cluster: int, rounds: Rounds) -> None:
        """Let a cluster acquire released rounds."""
        self._known[cluster] = self.known(cluster).joined(rounds)
