"""Named barriers, warp barriers and cluster barriers (PTX ISA, "barrier", "barrier.cluster")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.sync.mbarrier import groups, join
from fa4gen.emulator.ptx.syntax import Instruction, Operand
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.findings import Threads
from fa4gen.emulator.state.lanes import Lanes, by_warp
from fa4gen.emulator.state.machine import Cluster, Cta, Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.outcome import MakeWaiting, Outcome, Wait, Waiting
from fa4gen.emulator.translate.registry import Translate

NAMED_BARRIERS: Final = 16


@dataclass(slots=True)
class Named:
    """One of the sixteen barriers of a CTA in its current use.

    ``expected`` threads take part, None for all that have not left: threads that have ``arrived``
    at such a use wait, so none of them leaves. With a number, aligned arrivals count for whole
    warps.
    """

    number: int
    expected: int | None = None
    arrived: int = 0
    total: int = 0
    every: bool = True
    some: bool = False
    results: list[tuple[Warpgroup, Mask, Any]] = field(default_factory=list)
    uses: int = 0
    last: object = "nobody"


_NAMED: Final = Attached[Cta, dict[int, Named]](lambda cta: {})


def named(cta: Cta, number: int) -> Named:
    """The barrier ``number`` of a CTA."""
    return _NAMED.of(cta).setdefault(number, Named(number))


def live_threads(cta: Cta) -> int:
    """Threads that have not left."""
    return sum(int(np.count_nonzero(wg.live)) for wg in cta.warpgroups)


def _make_named(i: Instruction, e: Emitter) -> Waiting:
    words = [word for word in i.modifiers if word not in ("cta", "aligned")]
    aligned = i.opcode == "bar" or "aligned" in i.modifiers
    if not words or words[0] not in ("sync", "arrive", "red"):
        raise e.refuse("only .sync, .arrive, .red and .warp.sync are known")
    action, reduction = words[0], words[1:]
    operands: list[Operand] = list(i.operands)
    predicate = write = None
    if action == "red":
        if reduction[:1] not in (["popc"], ["and"], ["or"]):
            raise e.refuse("a reduction is .popc.u32, .and.pred or .or.pred")
        kind = "u32" if reduction[0] == "popc" else "pred"
        write = e.writer(operands.pop(0), kind)
        predicate = e.reader(operands.pop(), "pred")
    elif reduction:
        raise e.refuse(f".{reduction[0]}")
    if not operands or len(operands) > 2 or (action == "arrive" and len(operands) != 2):
        raise e.refuse("the number of operands")
    number = e.reader(operands[0], "u32")
    count = e.reader(operands[1], "u32") if len(operands) == 2 else None

    def end(wg: Warpgroup, lanes: Lanes, timed_out: bool) -> Outcome:
        machine = wg.machine
        cta = wg.cta
        done: list[Mask] = []
        waits: list[Wait] = []
        wanted = count(wg) if count is not None else np.uint32(0)
        for (which, threads), part in groups(wg, lanes.mask, number(wg), wanted):
            if which >= NAMED_BARRIERS or threads % WARP_LANES:
                machine.fault(
                    "barrier-misuse",
                    f"barrier {which} with {threads} threads: there "
                    "are 16 barriers, and threads come in whole warps",
                    i,
                    wg,
                    part,
                )
            barrier = named(cta, which)
            _join_use(barrier, threads if count is not None else None, i, wg, part)
            key = ("bar", cta.index, which)
            part, late = _fitting(barrier, wg, part, aligned)
            if late is not None:
                waits.append(Wait(Lanes(late), next_use(key), _reason(cta, barrier)))
            machine.observer.rendezvous_arrive(wg, part, key, True, i)
            array = wg.live if part is None else part
            whole = aligned and barrier.expected is not None
            barrier.arrived += (
                int(by_warp(array).sum()) * WARP_LANES if whole else int(np.count_nonzero(array))
            )
            barrier.last = Threads(wg.machine, wg, part)
            if predicate is not None:
                votes = np.broadcast_to(predicate(wg), wg.lanes)[wg.lanes_of(part)]
                barrier.total += int(np.count_nonzero(votes))
                barrier.every &= bool(votes.all())
                barrier.some |= bool(votes.any())
                barrier.results.append((wg, part, (write, reduction[0])))
            machine.progress()
            if action == "arrive":
                done.append(part)
            else:
                waits.append(Wait(Lanes(part), key, _reason(cta, barrier)))
        return Outcome(join(wg, done), waits)

    return end


def next_use(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key under which warps wait for the next use of a barrier that others have completed."""
    return ("next", *key)


def _fitting(barrier: Named, wg: Warpgroup, mask: Mask, aligned: bool) -> tuple[Mask, Mask]:
    """The warps with which a use is complete, and those that belong to the next one (or None)."""
    if not barrier.expected:
        return mask, None
    lanes = wg.live if mask is None else mask
    starts = np.arange(0, wg.lanes, WARP_LANES)
    counts = np.add.reduceat(lanes, starts, dtype=np.int64)
    if aligned:
        counts = np.where(counts > 0, WARP_LANES, 0)
    before = np.cumsum(counts) - counts
    late = lanes & np.repeat(before >= barrier.expected - barrier.arrived, WARP_LANES)[: wg.lanes]
    return (lanes & ~late, late) if late.any() else (mask, None)


def _join_use(
    barrier: Named, threads: int | None, i: Instruction, wg: Warpgroup, mask: Mask
) -> None:
    """Check that all participants of one use expect the same number of threads."""
    if barrier.arrived == 0:
        barrier.expected = threads
    elif barrier.expected != threads:
        wg.machine.find(
            "barrier-misuse",
            f"named barrier {barrier.number}: some threads expect "
            f"{barrier.expected or 'all'} threads, others {threads or 'all'}",
            i,
            wg,
            mask,
        )


def _reason(cta: Cta, barrier: Named) -> Any:
    def text() -> str:
        expected = barrier.expected or live_threads(cta)
        return (
            f"waits at named barrier {barrier.number} ({barrier.arrived} of {expected} threads "
            f"have arrived, last: {barrier.last})"
        )

    return text


def settle_named(cta: Cta) -> list[tuple[Any, ...]]:
    """Finish the named barriers that everyone has reached: the keys to release."""
    released = []
    table = _NAMED.of(cta)
    for barrier in table.values():
        expected = barrier.expected if barrier.expected is not None else live_threads(cta)
        if barrier.arrived and barrier.arrived >= expected:
            for wg, mask, (write, reduction) in barrier.results:
                value = {
                    "popc": np.uint32(barrier.total),
                    "and": barrier.every,
                    "or": barrier.some,
                }[reduction]
                write(wg, value, mask)
            uses = barrier.uses + 1
            table[barrier.number] = Named(barrier.number, uses=uses)
            released.append(("bar", cta.index, barrier.number))
    return released


def _warp_sync(i: Instruction, e: Emitter) -> None:
    def handler(wg: Warpgroup, mask: Mask) -> None:
        wg.machine.observer.warp_sync(wg, mask, i)

    e.call(handler)


@dataclass(slots=True)
class ClusterBarrier:
    """The one hardware barrier of a cluster: ``generation`` counts its uses.

    ``used`` says whether somebody has arrived for this one.
    """

    generation: int = 0
    used: bool = False
    last: object = "nobody"


CLUSTER_BARRIER: Final = Attached[Cluster, ClusterBarrier](lambda cluster: ClusterBarrier())

_GENERATIONS: Final = Attached[Warpgroup, NDArray[np.int64]](
    lambda wg: np.zeros(wg.lanes, np.int64)
)
"""Per lane: one past the generation it has arrived for, 0 when it has waited for that."""


def _cluster_arrive(i: Instruction, e: Emitter) -> None:
    words = set(i.modifiers) - {"cluster", "arrive", "aligned"}
    if words - {"release", "relaxed"} or i.operands:
        raise e.refuse("only .release, .relaxed and .aligned are known")
    release = "relaxed" not in words

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        cluster = wg.cta.cluster
        barrier = CLUSTER_BARRIER.of(cluster)
        lanes = wg.lanes_of(mask)
        mine = _GENERATIONS.of(wg)
        if mine[lanes].any():
            machine.fault(
                "barrier-misuse",
                "a thread arrives twice at the cluster barrier without waiting",
                i,
                wg,
                mask,
            )
        mine[lanes] = barrier.generation + 1
        barrier.used = True
        barrier.last = Threads(wg.machine, wg, mask)
        key = ("cluster", cluster.index)
        machine.observer.rendezvous_arrive(wg, mask, key, release, i)
        machine.progress()
        settle_cluster(cluster)

    e.call(handler)


def settle_cluster(cluster: Cluster) -> None:
    """Finish the cluster barrier if no thread that is alive owes an arrival.

    A thread that arrives and leaves has no further part in it: the others are still waited for.
    """
    barrier = CLUSTER_BARRIER.of(cluster)
    if barrier.used and not any(
        _owing(wg, barrier).any() for cta in cluster.ctas for wg in cta.warpgroups if wg.alive
    ):
        barrier.used = False
        barrier.generation += 1
        key = ("cluster", cluster.index)
        cluster.machine.observer.rendezvous_reset(key)
        cluster.machine.scheduler.wake(key)


def _owing(wg: Warpgroup, barrier: ClusterBarrier) -> NDArray[np.bool_]:
    """The lanes that are alive and have not arrived for the barrier's present use."""
    return wg.live & (_GENERATIONS.of(wg) <= barrier.generation)


def _cluster_reason(cluster: Cluster, barrier: ClusterBarrier) -> str:
    warpgroups = [wg for cta in cluster.ctas for wg in cta.warpgroups]
    owing = [(wg, lanes) for wg in warpgroups if (lanes := _owing(wg, barrier)).any()]
    count = sum(int(np.count_nonzero(lanes)) for _, lanes in owing)
    return (
        f"waits at the cluster barrier ({count} threads have not arrived, first: "
        f"{cluster.machine.who(*owing[0])}; last arrival: {barrier.last})"
    )


def _make_cluster_wait(i: Instruction, e: Emitter) -> Waiting:
    words = set(i.modifiers) - {"cluster", "wait", "aligned"}
    if words - {"acquire"} or i.operands:
        raise e.refuse("only .acquire and .aligned are known")

    def end(wg: Warpgroup, lanes: Lanes, timed_out: bool) -> Outcome:
        machine = wg.machine
        cluster = wg.cta.cluster
        barrier = CLUSTER_BARRIER.of(cluster)
        mine = _GENERATIONS.of(wg)
        members = wg.lanes_of(lanes.mask)
        if (mine[members] == 0).any():
            machine.fault(
                "barrier-misuse",
                "a thread waits at the cluster barrier without having arrived",
                i,
                wg,
                lanes.mask,
            )
        through = mine <= barrier.generation
        key = ("cluster", cluster.index)
        done = through & lanes.array(wg)
        rest = ~through & lanes.array(wg)
        if done.any():
            mine[done] = 0
            machine.observer.rendezvous_leave(wg, Lanes.of(done).mask, key, True)
        waits = (
            [
                Wait(
                    Lanes.of(rest),
                    key,
                    lambda: _cluster_reason(cluster, barrier),
                )
            ]
            if rest.any()
            else []
        )
        return Outcome(Lanes.of(done) if done.any() else None, waits)

    return end


def member_mask(i: Instruction) -> Operand | None:
    """The operand that says which lanes of a warp take part, if the instruction has one."""
    if i.opcode in ("shfl", "vote", "match", "redux", "elect") or i.text.startswith("bar.warp"):
        return i.operands[-1]
    return None


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "bar.warp.sync": _warp_sync,
    "barrier.cluster.arrive": _cluster_arrive,
}

WAITING: Final[Mapping[str, MakeWaiting]] = {
    "bar": _make_named,
    "barrier": _make_named,
    "barrier.cluster.wait": _make_cluster_wait,
}
