"""Folders with all adapters for the session: one without code, and one with kernels for a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vendoring.adapters.folders import write_folder
from tests.vendoring.adapters.gpu_folder import write_gpu_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher and all adapters for a few kernels; not to be changed."""
    return write_folder(tmp_path_factory.mktemp("adapters"))


@pytest.fixture(scope="session")
def gpu_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels, launcher and all adapters, with the launcher built."""
    return write_gpu_folder(tmp_path_factory.mktemp("gpu_adapters"))
