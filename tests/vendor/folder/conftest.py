"""One folder is vendored for all tests of a session; each gets a copy of it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from fa4gen.cli.main import main

CONFIG = "d64_dense_small_bf16"
OTHER = "gemm_bf16_sm90"


@dataclass(frozen=True)
class Vendored:
    """A vendored folder of one kernel, with the prefix acme, in an empty current folder."""

    folder: Path

    def files(self) -> dict[str, bytes]:
        """Everything in the folder, by path."""
        return files_in(self.folder)

    def edit(self, path: str, old: str, new: str) -> None:
        place = self.folder / path
        text = place.read_text()
        assert text.count(old) == 1, (path, old)
        place.write_text(text.replace(old, new))


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``fa4gen vendor`` writes it; not to be changed."""
    folder = tmp_path_factory.mktemp("vendored") / "attn"
    assert main(["vendor", CONFIG, "--into", str(folder), "--prefix", "acme"]) == 0
    return folder


@pytest.fixture
def vendored(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vendored:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(pristine, tmp_path / "attn")
    return Vendored(Path("attn"))
