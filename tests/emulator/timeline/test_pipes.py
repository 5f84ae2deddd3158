from __future__ import annotations

import pytest

from fa4gen.emulator.timeline.pipes import Piece, Pipes, Units


def test_an_operation_takes_a_gap_but_not_before_its_queue() -> None:
    units = Units()
    assert units.take(["unit"], "late", 100, 50) == 100
    assert units.take(["unit"], "early", 0, 60) == 0
    assert units.take(["unit"], "early", 10, 40) == 60
    assert units.take(["unit"], "third", 0, 10) == 150  # no gap is left
    assert units.take(["unit"], "late", 0, 10) == 160


def test_an_operation_of_two_units_waits_for_both() -> None:
    units = Units()
    units.take(["a"], 0, 0, 30)
    units.take(["b"], 1, 30, 40)
    assert units.take(["a", "b"], 2, 0, 10) == 70


def piece(issue: float, exp2: float = 0.0) -> Piece:
    return Piece((issue, 0.0, 0.0, exp2, 0.0), max(issue, exp2), "compute", None)


def test_warps_of_a_quarter_share_and_others_do_not() -> None:
    pipes = Pipes()
    assert pipes.occupy(0, 0, piece(64), 0) == pytest.approx(64)
    assert pipes.occupy(0, 4, piece(64), 0) == pytest.approx(128)
    assert pipes.occupy(0, 1, piece(64), 0) == pytest.approx(64)
    assert pipes.occupy(1, 0, piece(64), 0) == pytest.approx(64)


def test_who_needs_another_pipe_is_not_held_up() -> None:
    pipes = Pipes()
    assert pipes.occupy(0, 0, piece(128, 1024), 0) == pytest.approx(1024)
    assert pipes.occupy(0, 4, piece(64), 0) < 100
