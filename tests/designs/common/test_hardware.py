"""Which machine code runs on which GPU: one table, and the words of refusals."""

from __future__ import annotations

import pytest

from fa4gen.designs.common.hardware import (
    ARCHITECTURES,
    all_capabilities,
    capability_words,
    runs_on,
    target_remedy,
    targets_for,
)
from fa4gen.emulator.ptx.parser import TARGETS
from fa4gen.toolchain.survey import PROBES


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((9, 0), ("sm_90a",)),
        ((10, 0), ("sm_100a", "sm_100f")),
        ((10, 1), ()),  # of another family, which is called 11.0 today
        ((10, 3), ("sm_103a", "sm_100f")),
        ((10, 7), ("sm_100f",)),
        ((11, 0), ()),
        ((12, 0), ()),
    ],
)
def test_the_targets_for_a_gpu(capability: tuple[int, int], expected: tuple[str, ...]) -> None:
    assert targets_for(capability) == expected
    assert {arch for arch in ARCHITECTURES if runs_on(arch, capability)} == set(expected)


def test_targets_of_one_chip_run_on_that_alone() -> None:
    for arch, its in ARCHITECTURES.items():
        number = arch.removeprefix("sm_")[:-1]
        first = (int(number[:-1]), int(number[-1]))
        assert its.runs_on[0] == first
        assert its.is_family == (len(its.runs_on) > 1)
        assert all(major == first[0] and minor >= first[1] for major, minor in its.runs_on)
        assert list(its.runs_on) == sorted(its.runs_on)


def test_all_that_depends_on_targets_knows_each() -> None:
    assert set(PROBES) == set(ARCHITECTURES) <= TARGETS


def test_words() -> None:
    assert capability_words(all_capabilities()) == "9.0, 10.0, 10.3 or 10.7"
    assert capability_words([(9, 0)]) == "9.0"
    assert target_remedy((10, 3)) == "render it with arch: sm_103a or sm_100f"
    assert target_remedy((8, 9)) == "kernels run on compute capability 9.0, 10.0, 10.3 or 10.7"


def test_a_family_takes_the_limits_of_its_largest_member() -> None:
    family, ultra = ARCHITECTURES["sm_100f"], ARCHITECTURES["sm_103a"]
    assert family.most_multiprocessors == ultra.most_multiprocessors
    assert family.shared_bytes == ARCHITECTURES["sm_100a"].shared_bytes
