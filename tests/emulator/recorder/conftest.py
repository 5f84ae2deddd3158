"""The stand-ins are compiled once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.emulator.recorder.build import NoCompilerError, build_driver


@pytest.fixture(scope="session")
def recorder_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of FA4GEN_CACHE_DIR; ``recorder`` in it has the stand-ins."""
    cache = tmp_path_factory.mktemp("recorder-cache")
    try:
        build_driver(cache / "recorder")
    except NoCompilerError as error:
        pytest.skip(str(error))
    return cache
