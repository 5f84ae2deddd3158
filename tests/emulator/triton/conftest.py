"""What tests of Triton's kernels share. They need Triton, and no GPU."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(params=[90, 100], ids=["sm_90", "sm_100"])
def arch(request: pytest.FixtureRequest) -> int:
    """The architecture that a kernel is compiled for."""
    return request.param


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """The same numbers each time."""
    return np.random.default_rng(7)
