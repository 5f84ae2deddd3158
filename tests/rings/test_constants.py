"""Steps of PipelineState, constants of the structs, and the arrivals that their barriers expect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from fa4gen.emulator import Program
from fa4gen.errors import CompileError
from tests.rings import handovers
from tests.rings.harness import UNTOUCHED, assert_clean, compile_text, launch, program, render

pytestmark = pytest.mark.compile
STEPS: Final = 23


@dataclass(frozen=True)
class State:
    stages: int
    stride: int

    @property
    def name(self) -> str:
        return f"state_{self.stages}_{self.stride}"


STATES: Final = tuple(State(stages, stride) for stride in (1, 2) for stages in range(stride, 6))


def results(kernels: Program, entry: str, *shapes: int | tuple[int, ...], args: Any = ()) -> Any:
    """Return the whole numbers that a kernel leaves in arrays of these shapes."""
    arrays = [np.full(shape, UNTOUCHED, np.int32) for shape in shapes]
    assert_clean(launch(kernels, entry, [*arrays, *args], threads=32))
    return [array.tolist() for array in arrays]


@pytest.mark.parametrize("phase", [0, 1], ids=["consumer", "producer"])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_steps(state: State, phase: int) -> None:
    """Places of the ring are counted on, a round flips the phase."""
    for first in range(state.stride):
        kernels = program("states.cu.j2", "states", STATES)
        args = [np.int32(STEPS), np.uint32(first), np.uint32(phase)]
        [log] = results(kernels, state.name, (STEPS, 2), args=args)
        rounds = [divmod(first + state.stride * step, state.stages) for step in range(STEPS)]
        assert log == [[index, phase ^ (number & 1)] for number, index in rounds]


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_constants_of_the_tma_pipelines(parts: int, group: int) -> None:
    # as states.cu.j2 sets them
    rows, columns, value_rows, value_columns, size = 96, 64, 80, 192, 2
    part_bytes = rows * columns * size // group
    value_bytes = value_rows * value_columns * size // group
    kernels = program("states.cu.j2", "states", ())
    # is_k_major, num_qk_stages_effective, BK, BMN, full_kv_bytes, staged_k_bytes; the
    # producer's num_qk_stages_effective, slot_bytes, part_bytes
    assert results(kernels, f"constants_{parts}_{group}", (2, 9)) == [[
        [1, parts, columns, rows, parts * part_bytes, part_bytes, parts,
         parts * part_bytes, part_bytes],
        [0, 1, value_rows, value_columns, value_bytes, part_bytes, 1,
         value_bytes, value_bytes],
    ]]  # fmt: skip


@pytest.mark.parametrize("stages", handovers.STAGES)
def test_full_barriers_come_first_with_their_counts(stages: int) -> None:
    # as requested; the epilogue's load by default, and with one arrival per warp; a pair's sums
    counts = [(3, 5), (1, 128), (1, 4), (1, 256)]
    [arrivals] = results(handovers.kernels(), f"counts_s{stages}", (4, 2 * stages))
    assert arrivals == [[full] * stages + [empty] * stages for full, empty in counts]


# ---- Depth512MBars

KV_STAGES: Final = (1, 2, 3, 4, 11)
OFFSETS: Final = {
    "PO_lo": 0, "PO_hi": 1, "S_even_consumer": 2, "S_odd_consumer": 3, "C_producer": 4,
    "C_consumer": 5, "S_even_producer": 6, "S_odd_producer": 7, "O_mma_lo": 8, "O_mma_hi": 9,
    "KV": 10,
}  # fmt: skip
"""The offsets of the document, in units of barriers."""
ROLES: Final = {
    "producer_s_even": ("S_even_producer", "S_even_consumer", 1, 1, True, 2),
    "producer_s_odd": ("S_odd_producer", "S_odd_consumer", 1, 1, True, 2),
    "consumer_s_even": ("S_even_producer", "S_even_consumer", 0, 1, False, 2),
    "consumer_s_odd": ("S_odd_producer", "S_odd_consumer", 0, 1, False, 2),
    "producer_s": ("S_even_producer", "S_even_consumer", 1, 2, True, 2),
    "consumer_s": ("S_even_producer", "S_even_consumer", 0, 2, False, 2),
    "producer_c": ("C_producer", "C_consumer", 1, 1, True, 1),
    "consumer_c": ("C_producer", "C_consumer", 0, 1, False, 1),
    "producer_o_lo": ("O_mma_lo", "PO_lo", 0, 1, True, 2),
    "producer_o_hi": ("O_mma_hi", "PO_hi", 0, 1, True, 2),
    "consumer_o_lo": ("O_mma_lo", "PO_lo", 0, 1, False, 2),
    "consumer_o_hi": ("O_mma_hi", "PO_hi", 0, 1, False, 2),
}
"""By accessor: the producer's barrier, the consumer's, the first phase; slots, whether it
produces, the CTAs whose threads or products it signals for."""


def source() -> str:
    return render("depth512.cu.j2", cta_group=2, depth=512, stage_counts=KV_STAGES)


@cache
def depth512() -> Program:
    return Program(compile_text("depth512", source()))


@pytest.mark.parametrize("stages", KV_STAGES)
def test_barriers_of_depth_512_are_those_of_the_document(stages: int) -> None:
    """Counts are doubled where the leader's MMA warp waits for both CTAs."""
    size = 10 + 2 * stages
    entry, shapes = f"accessors_s{stages}", (len(ROLES), 7)
    roles, places, constants, arrivals = results(depth512(), entry, shapes, 4, 15, size)
    for row, (name, (producer, consumer, phase, *kind)) in zip(roles, ROLES.items(), strict=True):
        assert row == [8 * OFFSETS[producer], 8 * OFFSETS[consumer], 0, phase, *kind], name
    assert places == [0, 0, 8, 80]  # the base, PO_lo, PO_hi, KV
    high_counts = 6
    assert constants == [*OFFSETS.values(), high_counts, 2 * stages, size, size]
    both = [2 * 256, 2 * 128, 2 * 128, 2 * 128, 128, 128]
    assert arrivals == both + [1] * (4 + 2 * stages)


def test_more_barriers_than_lanes_are_refused() -> None:
    text = source() + "\ntemplate struct Depth512MBars<12>;\n"
    with pytest.raises(CompileError, match="One warp initialises the barriers, each lane one"):
        compile_text("twelve", text)
