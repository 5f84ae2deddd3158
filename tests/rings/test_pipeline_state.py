"""PipelineState: index and parity at every step, from any start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fa4gen.errors import CompileError
from tests.rings.harness import (
    UNTOUCHED,
    assert_clean,
    compile_text,
    launch,
    program,
    render,
    ring_states,
)

STEPS = 23
pytestmark = pytest.mark.compile


@dataclass(frozen=True)
class State:
    stages: int
    stride: int

    @property
    def name(self) -> str:
        return f"state_{self.stages}_{self.stride}"


STATES = tuple(State(stages, stride) for stride in (1, 2) for stages in range(stride, 6))


@pytest.mark.parametrize("phase", [0, 1], ids=["consumer", "producer"])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_steps(state: State, phase: int) -> None:
    for first in range(state.stride):
        log = np.full((STEPS, 2), UNTOUCHED, np.int32)
        args = [log, np.int32(STEPS), np.uint32(first), np.uint32(phase)]
        report = launch(program("states.cu.j2", "states", STATES), state.name, args)
        assert_clean(report)
        expected = ring_states(state.stages, STEPS, first=first, stride=state.stride, phase=phase)
        assert [tuple(row) for row in log.tolist()] == list(expected)


def test_one_stage_flips_at_every_step() -> None:
    assert list(ring_states(1, 4, phase=1)) == [(0, 1), (0, 0), (0, 1), (0, 0)]


def test_two_roles_of_a_ring_visit_every_place_in_turn() -> None:
    keys, values = ring_states(3, 6, stride=2), ring_states(3, 6, first=1, stride=2)
    turns = [place for pair in zip(keys, values, strict=True) for place in pair]
    assert turns == list(ring_states(3, 12))


def test_a_step_past_the_whole_ring_is_refused() -> None:
    source = render("states.cu.j2", states=(State(1, 2),))
    with pytest.raises(CompileError, match="A step must not pass the whole ring"):
        compile_text("refused", source)
