"""One folder is vendored for all tests of a session; each gets a copy of it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from fa4gen.cli.main import main
from fa4gen.render.environment import KernelEnvironment
from fa4gen.vendoring.lock import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from fa4gen.vendoring.lock import Lock

CONFIG = "d64_dense_small_bf16"
OTHER = "gemm_bf16_sm90"


class Ran(NamedTuple):
    """The end of a command."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Vendored:
    """A vendored folder of one kernel, with the prefix acme, in an empty current folder."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str) -> Ran:
        """Run ``fa4gen vendor``."""
        self.capsys.readouterr()
        return Ran(main(["vendor", *words]), *self.capsys.readouterr())

    def refused(self, *words: str, status: int = 2) -> str:
        """Run ``fa4gen vendor``, which has to end with ``status`` and change nothing; its words."""
        before = files_in(Path())
        ran = self.run(*words)
        assert ran.status == status, ran
        assert files_in(Path()) == before
        return ran.err

    def lock(self) -> Lock:
        return read_lock(self.folder)

    def append(self, path: str, text: str = "/* mine */\n") -> None:
        place = self.folder / path
        place.write_text(place.read_text() + text)

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


@pytest.fixture(scope="session", autouse=True)
def shared_templates() -> Iterator[None]:
    """Compile each template once for all tests: that is most of what a command takes."""
    compiled: dict[tuple[object, ...], CodeType] = {}
    compile_template = KernelEnvironment.compile

    def compile_once(self: KernelEnvironment, source: str, name: str, filename: str) -> CodeType:
        key = (source, name, filename, *self.extensions)
        if key not in compiled:
            compiled[key] = compile_template(self, source, name, filename)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelEnvironment, "compile", compile_once)
        yield


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``fa4gen vendor`` writes it; not to be changed."""
    folder = tmp_path_factory.mktemp("vendored") / "attn"
    assert main(["vendor", "add", CONFIG, "--into", str(folder), "--prefix", "acme"]) == 0
    return folder


@pytest.fixture
def vendored(
    pristine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Vendored:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(pristine, tmp_path / "attn")
    return Vendored(Path("attn"), capsys)
