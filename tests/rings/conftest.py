from __future__ import annotations

from zlib import crc32

import pytest

from fa4gen.emulator import SCHEDULES

Policies = list[tuple[int, str]]
FEW = 1
"""Policies of a test in each run; over the tests of a file, all of them."""


@pytest.fixture
def policies(request: pytest.FixtureRequest) -> Policies:
    """Seeds and policies for one test: one of them by its name, all with --many-seeds."""
    every = list(enumerate(SCHEDULES))
    if request.config.getoption("--many-seeds"):
        return every
    first = crc32(request.node.name.encode()) % len(every)
    return [every[(first + i) % len(every)] for i in range(FEW)]
