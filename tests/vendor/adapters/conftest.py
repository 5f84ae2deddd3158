"""One folder with all adapters for the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vendor.adapters.folders import write_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher and all adapters for a few kernels; not to be changed."""
    return write_folder(tmp_path_factory.mktemp("adapters"))
