"""Classes of bugs in kernels for Blackwell: tensor memory, pairs, clusterlaunchcontrol."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.emulator.classes.bug_class import BugClass, Data
from tests.emulator.classes.problems import filled, only_out, output
from tests.emulator.mutations.mutant import Found

KEYS: Final = (0, 2, 1)
WEIGHTS: Final = np.array([3, 0, 1, 0, 2, 5], np.int32)

EPILOGUE: Final = (("epilogue", 128), ("issuer", 32))


def halves(data: Data) -> NDArray[Any]:
    """Sums of sixteen scores each: thread 128 h + r has those of row r from column 16 h on."""
    row, half = np.arange(128), np.arange(2)[:, None]
    first = 32 * row + 16 * half
    return (16 * first + 120).astype(np.uint32)


def per_step(values: list[float]) -> Any:
    return lambda data: np.repeat(np.array(values, np.float32)[:, None], 128, axis=1)


TENSOR: Final = (
    BugClass(
        "weights_over_scores", "tensor_memory", "TF", "weights over scores that are still read",
        "Scores of the other warpgroup are garbage; about one output in a thousand was wrong.",
        "A2 B50", output(2, 128), only_out(), halves,
        (Found("race", "TMEM_STORE8(", "softmax 0"), Found("race", "TMEM_LOAD8(", "softmax 1")),
        threads=256, roles=(("softmax 0", 128), ("softmax 1", 128)),
    ),
    BugClass(
        "aliased_slot", "tensor_memory", "TF", "a product over the columns of another accumulator",
        "Results that were not fetched yet are overwritten.",
        "A8", output(4, 128, dtype=np.float32), only_out(4),
        per_step([512, 1024, 512, 1024]),
        (Found("race", "MMA(", "issuer"), Found("race", "TMEM_LOAD(", "epilogue")),
        threads=160, roles=EPILOGUE,
    ),
    BugClass(
        "released_before_load", "tensor_memory", "TF", "an accumulator is released, then loaded",
        "The last columns are those of the next tile.",
        "A30", output(3, 128, dtype=np.float32), only_out(3), per_step([32, 64, 96]),
        (Found("race", "MMA(", "issuer"),), threads=160, roles=EPILOGUE,
    ),
    BugClass(
        "empty_accumulator", "tensor_memory", "RO", "an accumulator without products is read",
        "NaN times zero is NaN: rows without keys get it now and then.",
        "A31", output(3, 128, dtype=np.float32),
        lambda data: [np.array(KEYS, np.int32), data["out"], np.int32(len(KEYS))],
        per_step([0, 32, 16]),
        (Found("uninitialised", "TMEM_LOAD8(", "epilogue"),), threads=160, roles=EPILOGUE,
    ),
    BugClass(
        "operand_overwritten", "tensor_memory", "TF", "an operand in tensor memory is overwritten",
        "The product before still reads it.",
        "B20", output(128, dtype=np.float32), only_out(3), filled(16 * (1 + 2 + 2)),
        (Found("race", "TMEM_STORE8(", "softmax"),), threads=160,
        roles=(("softmax", 128), ("issuer", 32)),
    ),
    BugClass(
        "commit_outside", "tensor_memory", "CL", "a commit for a CTA that the cluster lacks",
        "The kernel is stopped by a fault.",
        "A6", output(2, 32), only_out(), filled(1),
        (Found("illegal-instruction", "COMMIT_MULTICAST(", ""),), grid=2,
    ),
    BugClass(
        "pair_dealloc", "tensor_memory", "TD", "a CTA of a pair deallocates before its peer has",
        "An unspecified launch failure, whenever the peer is a little later.",
        "B39", output(2, 32), only_out(), filled(1),
        (Found("tensor-memory", "TMEM_DEALLOC(", ""),), grid=2,
        mutants=("pair_sm100/dealloc_sync",),
    ),
)  # fmt: skip


def tile_numbers(data: Data) -> NDArray[Any]:
    return np.broadcast_to(np.arange(len(data["out"]), dtype=np.uint32)[:, None], (6, 32))


CONTROL: Final = (
    BugClass(
        "response_reused", "launch_control", "PW", "the next response overwrites one being read",
        "A CTA takes the wrong tile, twice or never.",
        "B13", output(6, 32), only_out(), tile_numbers,
        (Found("proxy-war", "TRY_CANCEL(", ""),), grid=6,
    ),
    BugClass(
        "response_released", "launch_control", "PH", "a response is released before it is read",
        "A CTA takes the wrong tile, or waits for ever.",
        "A33", output(6, 32), only_out(), tile_numbers,
        (Found("race", "TRY_CANCEL(", "scheduler"),), grid=6, threads=64,
        roles=(("worker", 32), ("scheduler", 32)),
    ),
    BugClass(
        "lost_tile", "launch_control", "RO", "a cancelled CTA's tile is not worked on",
        "Part of the output is never written.",
        "A32", output(6, 32), only_out(2), lambda data: tile_numbers(data) + 1,
        (Found("unwritten-output", "", ""),), grid=6, verdict="review",
    ),
    BugClass(
        "response_unread", "launch_control", "RO", "a CTA leaves before it has read a response",
        "The tile of the CTA that it took off the grid is lost; the response hits whoever comes.",
        "A32", output(6, 32), lambda data: [WEIGHTS, data["out"]],
        lambda data: np.broadcast_to(WEIGHTS.astype(np.uint32)[:, None], (6, 32)),
        (Found("early-exit", "TRY_CANCEL(", ""), Found("cancelled-cluster", "TRY_CANCEL(", "")),
        grid=6,
    ),
)  # fmt: skip

CLASSES: Final = (*TENSOR, *CONTROL)
