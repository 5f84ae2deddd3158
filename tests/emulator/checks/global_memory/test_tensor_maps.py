"""Tensor maps that a kernel changes: fences of the tensormap proxy, and copies under way."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.instructions.copy.copies import WAIT, copy_kernel, expect, first, kinds, noise
from tests.emulator.instructions.copy.test_tensormap import FIELDS
from tests.emulator.kernel import run

MAKE = first(FIELDS.format(space="global", map="%d2"), "MADE")
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;"
LOAD = f"""{expect(1024)}
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
        [tile+1024], [%d2, {{0, 0}}], [bar];"""
POINT = "tensormap.replace.tile.global_address.global.b1024.b64 [%d2], %d3;"
STORE = """
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [tile+1024];
    cp.async.bulk.commit_group;
"""


def launch(*body: str, schedule: str = "uniform") -> list[str]:
    ptx = copy_kernel("\n".join(body), ("u64", "u64", "u64", "u64"))
    arrays = np.zeros((2, 8, 64), np.uint16), noise((40, 64)), np.zeros(128, np.uint8)
    return kinds(run(ptx, *arrays, noise((40, 64)), block=64, schedule=schedule))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("fences", "found"),
    [
        (RELEASE + ACQUIRE, []),
        (ACQUIRE, ["missing-proxy-fence"]),
        (RELEASE, ["missing-proxy-fence"]),
        ("", ["missing-proxy-fence"]),
    ],
)
def test_fences_between_a_change_and_a_copy(fences, found, schedule) -> None:
    assert launch(MAKE, fences, first(LOAD), WAIT, schedule=schedule) == found


def test_another_thread_may_acquire_and_hand_on() -> None:
    other = "setp.eq.u32 %p4, %r21, 40; @!%p4 bra OTHER;" + ACQUIRE + "OTHER:"
    assert launch(MAKE, RELEASE, "bar.sync 0;", other, "bar.sync 0;", first(LOAD), WAIT) == []
    found = launch(MAKE, RELEASE, "bar.sync 0;", other, first(LOAD), WAIT)
    assert found == ["missing-proxy-fence"]


def test_an_acquire_before_the_change_is_known_does_not_count() -> None:
    other = "setp.eq.u32 %p4, %r21, 40; @!%p4 bra OTHER;" + ACQUIRE + "OTHER:"
    found = launch(MAKE, RELEASE, other, "bar.sync 0;", first(LOAD), WAIT)
    assert found == ["missing-proxy-fence"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("wait", "found"), [(WAIT, []), ("", ["race"])], ids=["complete", "in flight"]
)
def test_a_change_under_a_load(wait, found, schedule) -> None:
    late = "" if wait else WAIT
    change = first(POINT, "CHANGED")
    body = MAKE, RELEASE, ACQUIRE, first(LOAD), wait, change, late
    assert launch(*body, schedule=schedule) == found


@pytest.mark.parametrize(
    ("wait", "found"),
    [("cp.async.bulk.wait_group.read 0;", []), ("", ["race"])],
    ids=["read", "in flight"],
)
def test_a_change_under_a_store(wait, found) -> None:
    body = first(f"{STORE} {wait} {POINT} cp.async.bulk.wait_group 0;", "CHANGED")
    assert launch(MAKE, RELEASE, ACQUIRE, first(LOAD), WAIT, body) == found


def test_an_ordinary_store_is_a_change_too() -> None:
    store = first("mov.u32 %r30, 0; st.global.u32 [%d2+124], %r30;", "STORED")
    assert launch(MAKE, RELEASE, ACQUIRE, first(LOAD), store, WAIT) == ["race"]
