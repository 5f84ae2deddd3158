"""The common part of tests of Triton's kernels. They need Triton, and no GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(scope="session", autouse=True)
def _results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels compiled here have no ptxas part: they are kept apart from Triton's own, for a run.

    In one folder for all workers.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(shared / "triton"))
        yield


@pytest.fixture(params=[90, 100], ids=["sm_90", "sm_100"])
def arch(request: pytest.FixtureRequest) -> int:
    """The architecture that a kernel is compiled for."""
    return request.param


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a generator with the same numbers each time."""
    return np.random.default_rng(7)
