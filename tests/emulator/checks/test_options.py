"""The checks that a caller may choose."""

from __future__ import annotations

import pytest

from fa4gen.emulator.checks.options import CheckOptions
from fa4gen.emulator.errors import LaunchError
from tests.emulator.checks.world import World


def test_all_or_nothing():
    assert CheckOptions.parse(True) == CheckOptions()
    assert not CheckOptions.parse(False).any()
    assert CheckOptions.parse(True).any()


def test_names():
    options = CheckOptions.parse(["races", "early-exit"])
    assert options.races
    assert options.early_exit
    assert not options.phase_lap
    assert options.tcgen05_fences == "off"
    assert CheckOptions.parse("races") == CheckOptions.parse(["races"])


def test_fence_levels():
    assert CheckOptions.parse(["tcgen05_fences"]).tcgen05_fences == "canonical"
    assert CheckOptions.parse(["tcgen05_fences=acqrel"]).tcgen05_fences == "acqrel"


@pytest.mark.parametrize("word", ["rces", "tcgen05_fences=maybe", "races=yes"])
def test_what_is_no_check(word):
    with pytest.raises(LaunchError, match="is"):
        CheckOptions.parse([word])


@pytest.mark.parametrize("option", ["races", "uninitialised"])
def test_switched_off(option):
    world = World(**{option: False})
    one, two = world.wg(0), world.wg(1)
    if option == "races":
        world.write(one, 2048)
    world.read(two, 2048)
    assert world.found() == []
