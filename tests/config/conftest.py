from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fa4gen.config.load import load_config
from fa4gen.errors import ConfigError, Problem

Refuse = Callable[..., tuple[Problem, ...]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the current one, so that messages name files by their last part."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refuse(here: Path) -> Refuse:
    """refuse(text) loads ``text`` as small.yaml and returns the problems it was refused for."""

    def load(text: str | bytes, name: str = "small.yaml") -> tuple[Problem, ...]:
        path = Path(name)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        assert all(problem.file == name for problem in caught.value.problems)
        return caught.value.problems

    return load
