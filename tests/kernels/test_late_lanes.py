"""No lane of a warp misses a phase that another lane brings about, however late it is.

Where all lanes of a warp wait and one arrives for them, those that still wait must not be left
behind: the next phase has the other parity. Lanes stay together in the emulator's own schedules
until a branch parts them; here single lanes lag wherever nothing holds the warp together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.emulator.scheduling.starving import Starved
from tests.kernels.source_mutation import Change, Kernel, kernel_in, verify

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from fa4gen.emulator.state.machine import Warpgroup


@dataclass(frozen=True)
class Place:
    """A wait of a warp in the kernel of ``keys``, and how a lane of it may be left behind.

    From ``seed`` on it soon is.
    """

    keys: dict[str, Any]
    case: str
    seed: int
    change: Change


ATTENTION: dict[str, Any] = {"kernel": "attention", "dtype": "bf16", "depth": 64}
HOPPER = {**ATTENTION, "arch": "sm_90a"}
BLACKWELL = {**ATTENTION, "arch": "sm_100a"}
PAGED = {"batching": "ragged", "keys": "paged", "page_size": 64}
GEMM = {"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16"}
LATE = r"\(([^\n]*)\) \{  // a lane that waited late would miss the phase\n([^;]*;)"
COMMIT = Change(r'(are of one cta_group\."\);)\n  __syncwarp\(\);', r"\1")
PLACES = {
    "keys of a block that is skipped": Place(
        {**HOPPER, "mask": "causal"}, "more_keys/*", 1,
        Change(r"(arrived by the bytes of K\n) *meet\(\);\n( *release)", r"\1\2"),
    ),
    "values of a block that is skipped": Place(
        {**HOPPER, "mask": "causal"}, "more_keys/*", 1,
        Change(r"(arrived by the bytes of V\n) *meet\(\);\n( *release)", r"\1\2"),
    ),
    "queries that see no key": Place(
        HOPPER, "empty/no_keys", 2,
        Change(r"\n *meet\(\);  // every lane has waited", ""),
    ),
    "tiles of a warp that loads pages": Place(
        {**HOPPER, **PAGED}, "empty/no_keys", 1,
        Change(r"if " + LATE, r"\2\nif (\1) {"),
    ),
    "queries of a warp that loads pages": Place(
        {**HOPPER, **PAGED}, "empty/no_keys", 1,
        Change(r"if \(threadIdx\.x != 0\) continue;[^\n]*\n([^\n]*wait_empty[^\n]*\n)",
               r"\1 if (threadIdx.x != 0) continue;\n"),
    ),
    "tiles of a warp that loads pages, depth 512": Place(
        {**HOPPER, **PAGED, "depth": 512, "cta_group": 2}, "size/1", 1,
        Change(r"if " + LATE, r"\2\nif (\1) {"),
    ),
    "tiles of a warp that loads pages on Blackwell": Place(
        {**BLACKWELL, **PAGED}, "empty/no_keys", 1,
        Change(r"if \(is_first\) \{[^;\n]*\n[^;\n]*\n( *mbarrier_wait[^\n]*)",
               r"\1\nif (is_first) {"),
    ),
    "products of attention": Place(BLACKWELL, "more_keys/*", 1, COMMIT),
    "products of a matrix product": Place(GEMM, "depth/*", 4, COMMIT),
}  # fmt: skip


@pytest.fixture(autouse=True)
def late_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all lanes of a warpgroup but the first of each warp lag, or one of each warp."""

    def choose(policy: str, warpgroups: Sequence[Warpgroup], random: Random) -> Starved:
        del policy
        wg = random.choice(warpgroups)
        lane = np.arange(wg.lanes) % 32
        return Starved(wg, lane != 0 if random.random() < 0.5 else lane == random.randrange(1, 32))

    monkeypatch.setattr(Starved, "choose", staticmethod(choose))
    monkeypatch.setattr("fa4gen.emulator.scheduling.scheduler._STRETCH", 1)
    monkeypatch.setattr("fa4gen.emulator.SCHEDULES", ("starve_warp",))


def findings(kernel: Kernel, case: str, seed: int) -> set[str]:
    """The kinds of what the emulator finds; other failures are none of them."""
    verdict, reports = verify(kernel, case, seed)
    failures = [failure for case in verdict.cases for failure in case.failures]
    assert {failure.check for failure in failures} <= {"emulator"}, failures
    return {finding.kind for report in reports for finding in report.findings}


@pytest.mark.emulate
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.seeds] * ("512" in name)) for name in PLACES],
)
def test_no_lane_is_left_behind(name: str) -> None:
    place = PLACES[name]
    kernel = kernel_in(json.dumps(place.keys))
    assert not findings(kernel, place.case, place.seed)
    changed = kernel.with_code(place.change.apply(kernel.code))
    seeds = range(place.seed, place.seed + 6)
    assert any("deadlock" in findings(changed, place.case, seed) for seed in seeds)
