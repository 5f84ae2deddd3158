"""Classes of bugs in kernels for Hopper, most of which Blackwell shares."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator import TensorMap
from tests.emulator.classes.bug_class import BugClass, Data
from tests.emulator.classes.problems import (
    copied,
    filled,
    numbers,
    only_out,
    output,
    passed,
    rows,
)
from tests.emulator.mutations.mutant import Found

KEYS: Final = (32, 0, 0, 32, 0)

CONSUMERS: Final = (("consumer", 128), ("producer", 32))


def tiles_with_keys(data: Data) -> NDArray[Any]:
    return data["in"] * (np.array(KEYS)[:, None] > 0).astype(np.uint32)


def summed(data: Data) -> NDArray[Any]:
    return data["in"].sum(axis=0, dtype=np.uint32)


def reversed_words(data: Data) -> NDArray[Any]:
    return data["in"][..., ::-1]


BARRIERS: Final = (
    BugClass(
        "empty_tile", "barriers", "PH", "a tile without keys is passed on without its loader",
        "The producer is two phases behind: it waits for a phase that is over, for ever.",
        "A1", numbers(5, 32),
        lambda data: [np.array(KEYS, np.int32), data["in"], data["out"], np.int32(len(KEYS))],
        tiles_with_keys,
        (Found("deadlock", "WAIT(empty", "loader"),), threads=64,
        roles=(("loader", 32), ("worker", 32)),
    ),
    BugClass(
        "leader_arrives", "barriers", "PH", "one warp arrives for all while others still wait",
        "The next phase completes before a slow warp has seen this one: it waits for ever.",
        "A11", output(128), only_out(4), filled(4),
        (Found("phase-lap", "WAIT(full", "consumer"),), threads=160, roles=CONSUMERS,
    ),
    BugClass(
        "leader_releases", "barriers", "NS", "one warp frees a stage that others still read",
        "The next copy overwrites what slower warps have yet to read.",
        "A12", numbers(4, 128, out=(128,)), passed(4), summed,
        (Found("race", "BULK_LOAD(", "producer"),), threads=160, roles=CONSUMERS,
    ),
    BugClass(
        "unguarded_wait", "barriers", "RO", "a wait outside of the condition of its arrival",
        "Without a source to load nobody arrives, and the epilogue hangs.",
        "B47", numbers(32), passed(0), copied,
        (Found("deadlock", "WAIT(order", "epilogue"),), threads=64,
        roles=(("loader", 32), ("epilogue", 32)),
    ),
    BugClass(
        "init_unsynchronised", "barriers", "IN", "no synchronisation after the initialisation",
        "A thread arrives at what is no barrier yet; the kernel hangs now and then.",
        "A13", numbers(64), passed(), reversed_words,
        (Found("race", "ARRIVE(done", ""), Found("barrier-misuse", "ARRIVE(done", "")), threads=64,
        mutants=("gemm_sm90/init_barrier",),
    ),
    BugClass(
        "init_twice", "barriers", "IN", "two barriers in the same eight bytes",
        "Initialising a barrier again that is still valid is undefined.",
        "A14", output(32), only_out(), filled(1),
        (Found("barrier-misuse", "BARRIER_INIT(place", ""),),
    ),
    BugClass(
        "count_zero", "barriers", "AC", "a barrier that expects no arrivals",
        "The instruction is refused or the barrier never works.",
        "A15", output(32), only_out(32), filled(1),
        (Found("barrier-misuse", "BARRIER_INIT(place", ""),),
    ),
    BugClass(
        "wrong_bytes", "barriers", "AC", "fewer bytes expected than are copied into a stage",
        "The stage counts as full too early, or the barrier is out of step and the kernel hangs.",
        "A16", numbers(3, 64, out=(64,)), passed(3), summed,
        (Found("race", "LOAD_SHARED_WORD(", ""),), threads=64,
        mutants=("gemm_sm90/half_the_bytes", "cluster_sm90/own_half", "pair_sm100/half_the_bytes"),
    ),
    BugClass(
        "phase_word", "barriers", "NS", "the parity kept in shared memory is flipped too early",
        "A slow warp waits for the wrong parity and passes too early or hangs.",
        "A17", output(64), only_out(3), filled(3),
        (Found("race", "STORE_SHARED(parity_at", ""),), threads=64,
    ),
)  # fmt: skip

NAMED: Final = (
    BugClass(
        "second_arrive", "named_barriers", "NS", "bar.arrive twice before the barrier has reset",
        "The second arrival stands in for the consumer: it waits for ever or reads too late.",
        "A18", numbers(3, 32), passed(3), copied,
        (Found("barrier-misuse", "NAMED_ARRIVE(1", "producer"),), threads=64,
        roles=(("producer", 32), ("consumer", 32)),
    ),
    BugClass(
        "id_out_of_range", "named_barriers", "NS", "a named barrier's id beyond fifteen",
        "There is no such barrier: the kernel is stopped or hangs.",
        "A19", numbers(64), passed(), reversed_words,
        (Found("barrier-misuse", "NAMED_BARRIER(8 + 10", ""),), threads=64,
    ),
    BugClass(
        "one_id", "named_barriers", "NS", "two uses of one named barrier",
        "Threads of both groups complete it together, and pass before their own group has come.",
        "A20", numbers(2, 2, 64), passed(), reversed_words,
        (Found("barrier-misuse", "NAMED_BARRIER(1, 64)", ""),), threads=128,
        mutants=("gemm_sm90/barrier_shared",),
    ),
    BugClass(
        "four_load_warps", "named_barriers", "AC", "the count of one load warp with four of them",
        "The barrier completes before all have loaded, or is left with too few and hangs.",
        "A21", numbers(128), passed(), copied,
        (Found("barrier-misuse", "NAMED_ARRIVE(1", "loader"),
         Found("barrier-misuse", "NAMED_BARRIER(1", "epilogue")), threads=160,
        roles=(("loader", 128), ("epilogue", 32)),
    ),
    BugClass(
        "half_a_warp", "named_barriers", "NS", "a named barrier of threads that are no whole warps",
        "The count is out of range; what passes when is undefined.",
        "A22", numbers(48), passed(), reversed_words,
        (Found("barrier-misuse", "NAMED_BARRIER(1, 48)", ""),), threads=64,
    ),
)  # fmt: skip

COPIES: Final = (
    BugClass(
        "wait_of_another", "copies", "WT", "staging memory reused after another thread's bulk wait",
        "Rows are stored that belong to the next step.",
        "A3", numbers(3, 128), passed(3), copied,
        (Found("race", "STORE_SHARED(", ""),), threads=128,
    ),
    BugClass(
        "wait_one_too_few", "copies", "WT", "a bulk wait that leaves one group too many open",
        "A load overwrites the stage that a store still reads.",
        "A23", numbers(5, 32), passed(5), copied,
        (Found("race", "BULK_LOAD(", ""),),
    ),
    BugClass(
        "stage_counter", "copies", "WT", "the counter that picks the staging stage starts anew",
        "The last stores of a tile may still read what the next tile writes.",
        "A24", numbers(3, 128), passed(3), copied,
        (Found("race", "STORE_SHARED(", ""),),
    ),
    BugClass(
        "fence_in_the_loop", "copies", "PF", "a proxy fence in a loop that may not run",
        "Without keys the zeros of the output are stored before they are visible.",
        "B4", numbers(1, 32, out=(32,)), passed(0), filled(0),
        (Found("missing-proxy-fence", "BULK_STORE(", ""),),
    ),
    BugClass(
        "ldmatrix_released", "copies", "PW", "ldmatrix still reads what an arrival frees",
        "Values of the next stage: 965 of 1500 runs of a kernel of ours differed on an H200.",
        "B15", numbers(4, 32), passed(4), copied,
        (Found("proxy-war", "BULK_LOAD(", "producer"),), threads=64,
        roles=(("consumer", 32), ("producer", 32)),
    ),
)  # fmt: skip

CLUSTERS: Final = (
    BugClass(
        "cta_scope", "clusters", "CL", "an arrival at CTA scope for a reader in another CTA",
        "The peer reads what was there before.",
        "A4 B49", numbers(2, 32), passed(), lambda data: data["in"][::-1],
        (Found("race", "LOAD_SHARED_AT(", ""),), grid=2,
    ),
    BugClass(
        "acquire_at_cta_scope", "clusters", "CL", "a wait at CTA scope for a writer in another CTA",
        "The peer's stores may not be visible yet.",
        "A4", numbers(2, 32), passed(), lambda data: data["in"][::-1],
        (Found("race", "LOAD_SHARED_AT(", ""),), grid=2, verdict="isa",
    ),
    BugClass(
        "mask_outside", "clusters", "CL", "a multicast to a CTA that the cluster does not have",
        "The kernel is stopped by a fault.",
        "A6", numbers(32, out=(2, 32)), passed(),
        lambda data: np.broadcast_to(data["in"], (2, 32)),
        (Found("illegal-instruction", "BULK_LOAD_MULTICAST(", ""),), grid=2,
    ),
    BugClass(
        "peer_epilogue", "clusters", "CL", "the leader reloads memory that its peer still reads",
        "The peer's epilogue reads values of the next tile.",
        "A10", numbers(3, 32, out=(3, 2, 32)), passed(3),
        lambda data: np.broadcast_to(data["in"][:, None], (3, 2, 32)),
        (Found("race", "BULK_LOAD_MULTICAST(", "loader"),
         Found("race", "LOAD_SHARED_WORD(", "epilogue"),
         Found("deadlock", "WAIT(full", "epilogue")),
        grid=2, threads=64, roles=(("epilogue", 32), ("loader", 32)),
    ),
    BugClass(
        "exit_under_peer", "clusters", "CL", "a CTA leaves while its peer writes to its memory",
        "The access faults, or hits the CTA that comes next.",
        "A26", numbers(32), passed(), copied,
        (Found("early-exit", "STORE_SHARED_AT(", ""),), grid=2, mutants=("cluster_sm90/end_sync",),
    ),
)  # fmt: skip


def row_sums(data: Data) -> NDArray[Any]:
    """The second warpgroup, if there is one, multiplies by twos."""
    sums = data["in"].astype(np.float32).sum(axis=(0, 2))
    return np.stack([sums, 2 * sums])[: len(data["out"])]


WGMMA: Final = (
    BugClass(
        "no_loop_back", "wgmma", "WT", "no synchronisation back before an operand is overwritten",
        "One warpgroup overwrites what the products of the other still read.",
        "B57", rows(3, 2), passed(3), row_sums,
        (Found("race", "STORE_SHARED(", ""),), threads=256,
    ),
    BugClass(
        "registers_reused", "wgmma", "WT", "registers of A are loaded while a product reads them",
        "Products of mixed operands.",
        "A27", rows(3, 1), passed(3), row_sums,
        (Found("wgmma-registers", "x[i] = mine[", ""),), threads=128,
    ),
)  # fmt: skip


def map_arguments(*scalars: int) -> Any:
    """A map over the first row, 128 bytes for the map that is used, ``in``, ``out``."""
    return lambda data: [
        TensorMap(data["in"][:1], (1, 32)), data["map"], data["in"], data["out"],
        *map(np.int32, scalars),
    ]  # fmt: skip


def with_map(count: int, *out: int) -> Any:
    def make(random: np.random.Generator) -> Data:
        return {"map": np.zeros(16, np.uint64), **numbers(count, 32, out=out)(random)}

    return make


def weighted(random: np.random.Generator) -> Data:
    weights = random.integers(0, 1 << 16, 64, np.uint32)
    return {**numbers(64)(random), "weights": weights}


GRIDS: Final = (
    BugClass(
        "no_grid_wait", "grids", "GR", "a dependent launch that does not wait for the last grid",
        "Reads what the grid before has not written yet.",
        "A7", weighted, lambda data: [data["weights"], data["in"], data["out"]],
        lambda data: data["weights"] * data["in"],
        (Found("race", "out[threadIdx.x] = weight", ""),), threads=64,
        pending=("in",),
    ),
    BugClass(
        "late_grid_wait", "grids", "GR", "the wait for the last grid after the first load",
        "Reads what the grid before has not written yet.",
        "A28", numbers(64), passed(), copied,
        (Found("race", "BULK_LOAD(", ""),), threads=64,
        pending=("in",),
    ),
    BugClass(
        "map_in_flight", "grids", "GR", "a tensor map is changed while a copy may still read it",
        "The copy takes a mixture of two maps: wrong data, or a fault.",
        "A9", with_map(3, 3, 32), map_arguments(3), copied,
        (Found("race", "MAP_PUBLISH(", ""),),
    ),
    BugClass(
        "map_unfenced", "grids", "GR", "a changed tensor map without the fence of its proxy",
        "The copy uses an old map from its cache.",
        "A29", with_map(2, 32), map_arguments(), lambda data: data["in"][1],
        (Found("missing-proxy-fence", "TMA_LOAD(", ""),),
    ),
)  # fmt: skip

CLASSES: Final = (*BARRIERS, *NAMED, *COPIES, *CLUSTERS, *WGMMA, *GRIDS)
