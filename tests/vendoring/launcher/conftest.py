"""One library with all shipped kernels for the session; the stand-in for the driver."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.both import CLauncher, build_launcher
from tests.vendoring.launcher.shipped import shipped_plans, write_launcher

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERNALS = Path(__file__).parent / "internals.c"
"""Functions inside the launcher's C file, by names that a test finds."""


@pytest.fixture(scope="session")
def launcher_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher's C files for all shipped kernels."""
    return write_launcher(tmp_path_factory.mktemp("launcher"), shipped_plans())


@pytest.fixture(scope="session")
def _all_kernels(launcher_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CLauncher:
    folder = tmp_path_factory.mktemp("internals") / "acme"
    shutil.copytree(launcher_folder, folder)
    with (folder / "src" / "launcher.c").open("a", encoding="utf-8") as source:
        source.write(INTERNALS.read_text(encoding="utf-8"))
    return build_launcher(folder)


@pytest.fixture
def launcher(_all_kernels: CLauncher) -> Iterator[CLauncher]:
    """The C launcher over the stand-in; what a test changed there is put back."""
    yield _all_kernels
    _all_kernels.stand_in.reset()
    _all_kernels.stand_in.set_devices(SimulatedDevice())
    _all_kernels.stand_in.set_current(0)


@pytest.fixture
def unused_launcher(launcher: CLauncher, tmp_path: Path) -> CLauncher:
    """A copy of the C launcher's library by which nothing was loaded or launched yet."""
    library = tmp_path / "unused.so"
    shutil.copy(launcher.library, library)
    return CLauncher(library, launcher.stand_in)
