"""Shared by all tests: those that need a GPU are marked, and skipped elsewhere."""

from __future__ import annotations

import gc
import os
import secrets
import signal
import sys
from pathlib import Path
from random import Random
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from fa4gen.verify.blas import use_one_blas_thread

if TYPE_CHECKING:
    from fa4gen.runtime.device import DeviceInfo

DEFAULT_ARCH = "sm_90a"


# As verify does: workers that each start a thread per core for small matrix products wait for each
# other, and take twice the CPU time.
use_one_blas_thread()


def _take_ctrl_c() -> None:
    """Let programs that tests start receive SIGINT, even where the run itself ignores it.

    A shell without job control ignores it for what it starts in the background, children inherit
    that, and Python then installs no handler of its own.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _make_helpers_importable() -> None:
    """Let tests import ``tests.emulator.kernel`` and the like.

    The root of the checkout must not be on the path for it: the installed package is tested.
    """
    package = sys.modules.setdefault("tests", ModuleType("tests"))
    package.__path__ = [str(Path(__file__).parent)]


_take_ctrl_c()
_make_helpers_importable()
os.environ["FA4GEN_NO_COMPILE"] = "1"  # render compiles in the tests of that alone
os.environ.pop("COLUMNS", None)  # workers of pytest-xdist have it: tables are as wide as it says

# Tests must not depend on how fast or busy a machine is, and draw the same in each run unless fresh
# draws are requested. The parent is named: hypothesis has another default where CI is set.
SAME, FRESH = "same", "fresh"
_parent = settings.get_profile("default")
_any_machine = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile(SAME, _parent, derandomize=True, database=None, **_any_machine)
settings.register_profile(FRESH, _parent, derandomize=False, print_blob=True, **_any_machine)
settings.load_profile(SAME)


# Half a million objects of pytest's live as long as the session, and what tests make has few
# cycles: Python's own rhythm of searching for garbage takes a tenth of the time.
gc.set_threshold(10_000, 20, 50)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--many-seeds`` adds the tests marked ``seeds``."""
    parser.addoption(
        "--many-seeds",
        action="store_true",
        help="also run the tests marked seeds, with --hypothesis-profile=fresh: an hour",
    )


def _profile(config: pytest.Config) -> str:
    """Return the hypothesis profile of this run."""
    given: str | None = config.getoption("--hypothesis-profile")
    return given or (FRESH if config.getoption("--many-seeds") else SAME)


_OF_THE_TEST = Random()
"""Begins anew with each test, from its name."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the profile before hypothesis loads it; leave nothing to chance unless it is fresh."""
    config.option.hypothesis_profile = _profile(config)
    if _profile(config) == FRESH:
        return
    # Hypothesis also draws constants of modules that are imported: what those are depends on the
    # tests that ran before in the same process, and on where the package is installed.
    if hasattr(providers, "is_local_module_file"):
        providers.is_local_module_file = lambda path: False
    # Where commands that are given no --seed take one from.
    secrets.randbelow = _OF_THE_TEST.randrange


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests marked ``seeds`` and ``compat`` to runs that request them."""
    unwanted = [] if config.getoption("--many-seeds") else ["seeds"]
    if "compat" not in (config.getoption("markexpr") or ""):
        unwanted.append("compat")
    left_out = [item for item in items if any(map(item.get_closest_marker, unwanted))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, unwanted))]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what pytest collected out of every search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked ``gpu`` (or ``gpu("sm_90a")``) where no GPU runs that architecture."""
    _OF_THE_TEST.seed(item.nodeid)
    marker = item.get_closest_marker("gpu")
    if marker is None:
        return
    from fa4gen.runtime.device import all_devices, find_device, why_no_device

    arch = marker.args[0] if marker.args else DEFAULT_ARCH
    if find_device(arch) is None:
        there = ", ".join(map(str, all_devices())) or why_no_device()
        pytest.skip(f"needs a GPU that runs {arch}; here: {there}")


@pytest.fixture
def first_seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of a test that draws by itself: 0, or a new one with fresh draws."""
    return secrets.randbelow(2**31) if _profile(request.config) == FRESH else 0


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> DeviceInfo:
    """Return the GPU that a test marked ``gpu`` runs on."""
    from fa4gen.runtime.device import require_device

    marker = request.node.get_closest_marker("gpu")
    assert marker is not None, "only tests marked gpu have a GPU"
    return require_device(marker.args[0] if marker.args else DEFAULT_ARCH)
