"""Files of a folder are replaced together, whatever interrupts it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen
from fa4gen.errors import ConfigError, NotCurrentError
from fa4gen.render.manifest import sha256
from fa4gen.vendoring import replace_files as module
from fa4gen.vendoring.replace_files import Change, replace_files
from tests.vendoring.folder.conftest import files_in

BEFORE = {"README.md": b"a", "adapters/er/b.py": b"b", "cubins/c.c": b"c", "fa4gen.lock": b"1"}
AFTER = {"README.md": b"A", "adapters/er/b.py": b"B", "test/d.c": b"D", "fa4gen.lock": b"2"}
PATHS = ("README.md", "adapters/er/b.py", "cubins/c.c", "test/d.c", "fa4gen.lock")
KILLED = """
import os, signal, sys
from pathlib import Path
from fa4gen.vendoring.replace_files import Change, replace_files

folder, changes = Path(sys.argv[1]), eval(sys.argv[2])
calls = int(sys.argv[3])

def counted(method):
    def call(*arguments, **options):
        global calls
        if calls == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        calls -= 1
        return method(*arguments, **options)
    return call

for name in ("open", "mkdir", "replace", "rename", "unlink"):
    setattr(Path, name, counted(getattr(Path, name)))
replace_files(folder, changes)
"""


def changes_of(folder: Path) -> list[Change]:
    """The changes to AFTER from what is there."""
    there = files_in(folder) if folder.exists() else {}
    hashes = {path: sha256(data) for path, data in there.items()}
    changes = [Change(path, hashes.get(path), AFTER.get(path)) for path in PATHS]
    return [one for one in changes if there.get(one.path) != one.data]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    for path, data in {**BEFORE, "mine.txt": b"mine"}.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_bytes(data)
    return made


def test_all_changes_are_made_and_empty_folders_go(folder: Path) -> None:
    replace_files(folder, changes_of(folder))
    assert files_in(folder) == {**AFTER, "mine.txt": b"mine"}
    assert not (folder / "cubins").exists()


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_folder_is_there_as_a_whole(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "deep/new"
    if exists:
        folder.mkdir(parents=True)
    replace_files(folder, [Change(path, None, data) for path, data in AFTER.items()])
    assert files_in(folder) == AFTER
    assert [path.name for path in folder.parent.iterdir()] == ["new"]


def killed(folder: Path, calls: int) -> bool:
    """Run the changes in a process that is killed after some calls; whether it was."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), repr(changes_of(folder)), str(calls)],
        env=os.environ | {"PYTHONPATH": str(Path(fa4gen.__file__).parent.parent)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode != 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_run_is_completed_by_the_same_command(tmp_path: Path, folder: Path) -> None:
    import shutil

    calls, mixed = 0, 0
    while True:
        copy = Path(shutil.copytree(folder, tmp_path / f"copy{calls}"))
        was_killed = killed(copy, calls)
        found = {path: data for path, data in files_in(copy).items() if ".fa4gen-new" not in path}
        olds = [path for path in PATHS if found.get(path) == BEFORE.get(path)]
        mixed += 0 < len(olds) < len(PATHS)
        assert found["fa4gen.lock"] == b"1" or len(olds) == 0  # the lock comes last
        assert all(found.get(path) in (BEFORE.get(path), AFTER.get(path)) for path in PATHS)
        replace_files(copy, changes_of(copy))
        left = {path: data for path, data in files_in(copy).items() if ".fa4gen-new" not in path}
        assert left == {**AFTER, "mine.txt": b"mine"}
        if not was_killed:
            break
        calls += 1
    assert calls > len(PATHS)
    assert mixed <= len(PATHS)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("calls", range(0, 14, 2))
def test_a_new_folder_whose_making_was_killed_is_not_there(tmp_path: Path, calls: int) -> None:
    folder = tmp_path / "new"
    if killed(folder, calls):
        assert not folder.exists()
    replace_files(folder, changes_of(folder))
    assert files_in(folder) == AFTER


@pytest.mark.parametrize("full", range(4))
def test_a_full_disk_changes_nothing(folder: Path, full: int, monkeypatch) -> None:
    before = files_in(folder)
    left = [full]
    write = module._write_synced

    def failing(path: Path, data: bytes) -> None:
        if left[0] == 0:
            path.write_bytes(data[:1])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        left[0] -= 1
        write(path, data)

    monkeypatch.setattr(module, "_write_synced", failing)
    with pytest.raises(ConfigError, match="cannot write here: no space left on device"):
        replace_files(folder, changes_of(folder))
    assert files_in(folder) == before
    assert not (folder / "test").exists()


def test_a_file_that_was_changed_meanwhile_is_not_lost(folder: Path) -> None:
    changes = changes_of(folder)
    (folder / "cubins/c.c").write_bytes(b"mine")
    before = files_in(folder)
    with pytest.raises(NotCurrentError, match="changed while the command ran"):
        replace_files(folder, changes)
    assert files_in(folder) == before


def test_nothing_is_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    changes = changes_of(folder)
    (folder / "adapters").rename(tmp_path / "elsewhere")
    (folder / "adapters").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="a symbolic link"):
        replace_files(folder, changes)
    assert files_in(tmp_path / "elsewhere") == {"er/b.py": b"b"}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held here")
def test_ctrl_c_waits_for_the_renames(folder: Path, monkeypatch) -> None:
    replace = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        os.kill(os.getpid(), signal.SIGINT)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    monkeypatch.setattr(signal, "SIGINT", signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        replace_files(folder, changes_of(folder))
    assert files_in(folder) == {**AFTER, "mine.txt": b"mine"}
