"""One thread of a warpgroup may release a stage once products of all its warps are complete."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Report
from tests.emulator.classes.bug_class import LIMITS, Twin, program
from tests.emulator.classes.problems import rows

STEPS: Final = 5
KERNELS: Final = ("one_stage", "two_stages", "one_warp_waits")


def launch(kernel: str, twin: Twin, leader: int, groups: int, schedule: str) -> Report:
    """Run a kernel; the results are compared where they have to be right."""
    data = rows(STEPS, groups)(np.random.default_rng(0))
    report = program("warpgroups", twin).launch(
        kernel, grid=1, block=128 * groups + 32, schedule=schedule, limits=LIMITS,
        args=[data["in"], data["out"], np.int32(STEPS), np.int32(leader)],
    )  # fmt: skip
    if twin == "fixed":
        # core matrices of 8 rows and 8 columns, two of them beside each other
        tiles = data["in"].astype(np.float32).reshape(STEPS, 8, 2, 8, 8)
        sums = tiles.sum(axis=(0, 2, 4)).reshape(64)
        assert np.array_equal(data["out"], np.tile(sums, (groups, 1)))
    return report


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_one_thread_releases_for_its_warpgroup(kernel: str, groups: int, schedule: str) -> None:
    leader = 37 * SCHEDULES.index(schedule) % 128
    report = launch(kernel, "fixed", leader, groups, schedule)
    assert report.verdict.value == "clean", str(report)


@pytest.mark.parametrize("kernel", KERNELS)
def test_but_not_before_it_has_seen_them_complete(kernel: str) -> None:
    report = launch(kernel, "broken", 37, 1, "uniform")
    assert any((one.kind, one.severity.value) == ("race", "error") for one in report.findings)
