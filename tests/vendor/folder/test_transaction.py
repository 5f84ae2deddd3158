"""All or none, whatever interrupts: killed at every rename, a full disk, a read-only folder."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen
from fa4gen.errors import ConfigError, NotCurrentError
from fa4gen.render.manifest import sha256
from fa4gen.vendor import transaction
from fa4gen.vendor.transaction import Change, apply_changes, is_pending, recover
from tests.vendor.folder.conftest import files_in

BEFORE = {
    "a.c": b"a",
    "deep/er/b.c": b"b",
    "gone/c.c": b"c",
    "kept.c": b"kept",
    "fa4gen.lock": b"1",
}
AFTER = {"a.c": b"A", "deep/er/b.c": b"B", "new/d.c": b"D", "kept.c": b"kept", "fa4gen.lock": b"2"}
CHANGES = [
    Change(
        path,
        sha256(BEFORE[path]) if path in BEFORE else None,
        AFTER.get(path),
    )
    for path in ("a.c", "deep/er/b.c", "gone/c.c", "new/d.c", "fa4gen.lock")
]
KILLED = """
import json, os, shutil, signal, sys
from pathlib import Path
from fa4gen.vendor.transaction import Change, apply_changes, recover

folder, original, changes = Path(sys.argv[1]), Path(sys.argv[2]), eval(sys.argv[3])
left = 0

def counted(method):
    def call(*arguments, **options):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return method(*arguments, **options)
    return call

for left in range(1000):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    child = os.fork()
    if child == 0:
        for owner, names in ((Path, ("replace", "mkdir", "open")), (os, ("unlink", "rmdir"))):
            for name in names:
                setattr(owner, name, counted(getattr(owner, name)))
        apply_changes(folder, [Change(path, *rest) for path, *rest in changes])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    recover(folder)
    found = {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*")
             if p.is_file()}
    print(json.dumps([os.waitstatus_to_exitcode(status), found]))
    if status == 0:
        break
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, data in BEFORE.items():
        place = tmp_path / "folder" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return tmp_path / "folder"


def test_changes_are_made(folder: Path) -> None:
    apply_changes(folder, CHANGES)
    assert files_in(folder) == AFTER
    assert not (folder / "gone").exists()
    assert not is_pending(folder)
    assert not (folder / ".fa4gen").exists()


def test_killed_anywhere_it_is_all_or_nothing(folder: Path) -> None:
    """The process dies before its first, second, ... touch of the disk, until none is left."""
    plain = [(c.path, c.before, c.data) for c in CHANGES]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder.parent / "copy"), str(folder), repr(plain)],
        env=os.environ | {"PYTHONPATH": str(Path(fa4gen.__file__).parent.parent)},
        capture_output=True,
        timeout=120,
        check=True,
    )
    before, after = ({p: d.decode() for p, d in files.items()} for files in (BEFORE, AFTER))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) > 30
    *killed, last = results
    assert last == [0, after]
    assert all(status == -signal.SIGKILL for status, _ in killed)
    assert all(found in (before, after) for _, found in killed)
    turn = [found == after for _, found in killed].index(True)
    assert 0 < turn < len(killed)
    assert all(found == after for _, found in killed[turn:])  # from the journal on


@pytest.mark.parametrize("number", range(14))
def test_a_disk_that_fills_up_leaves_all_as_it_was(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The n-th write, rename or new folder fails."""
    calls = 0

    def failing(method):
        def call(self, *arguments, **options):
            nonlocal calls
            calls += 1
            if calls == number + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
            return method(self, *arguments, **options)

        return call

    for name in ("replace", "mkdir", "open"):
        monkeypatch.setattr(Path, name, failing(getattr(Path, name)))
    with pytest.raises(ConfigError, match="no space left on device; every file is as it was"):
        apply_changes(folder, CHANGES)
    monkeypatch.undo()
    assert files_in(folder) == BEFORE
    assert {p.name for p in folder.iterdir()} == {"a.c", "deep", "gone", "kept.c", "fa4gen.lock"}


def test_a_really_full_disk(tmp_path: Path) -> None:
    """/dev/full takes no byte: a link there stands for a file whose data finds no room."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    folder = tmp_path / "folder"
    write = transaction._write_synced
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            transaction, "_write_synced", lambda path, data: write(Path("/dev/full"), data)
        )
        with pytest.raises(ConfigError, match="no space left on device"):
            apply_changes(folder, [Change("a.c", None, b"A" * 100_000)])
    assert not folder.exists()


def test_a_file_changed_meanwhile_is_not_overwritten(folder: Path) -> None:
    (folder / "deep/er/b.c").write_bytes(b"mine")
    with pytest.raises(NotCurrentError, match="changed while the command ran"):
        apply_changes(folder, CHANGES)
    assert files_in(folder) == BEFORE | {"deep/er/b.c": b"mine"}


def test_what_is_saved_between_the_look_and_the_move_is_not_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def saved_first(self: Path, target: Path) -> Path:
        if self == folder / "deep/er/b.c" and self.read_bytes() == BEFORE["deep/er/b.c"]:
            self.write_bytes(b"saved just now")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", saved_first)
    with pytest.raises(NotCurrentError, match="changed while the command ran"):
        apply_changes(folder, CHANGES)
    assert files_in(folder) == BEFORE | {"deep/er/b.c": b"saved just now"}
    assert not is_pending(folder)


def interrupted(folder: Path, at: str) -> None:
    """Leave ``folder`` as a kill just before the change of ``at`` would."""

    class Killed(BaseException):
        pass

    carry_out = transaction._carry_out

    def until(place: Path, step: transaction._Step) -> None:
        if step.path == at:
            raise Killed
        carry_out(place, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "_carry_out", until)
        patch.setattr(transaction, "_undo", lambda *_: True)
        patch.setattr(transaction, "_clear", lambda *_: None)
        with pytest.raises(Killed):
            apply_changes(folder, CHANGES)
    assert is_pending(folder)


def test_what_was_edited_after_an_interruption_is_kept(folder: Path) -> None:
    interrupted(folder, "deep/er/b.c")
    (folder / "deep/er/b.c").write_bytes(b"mine")
    (folder / "gone/c.c").write_bytes(b"mine, too")
    assert recover(folder) == ["deep/er/b.c.orig"]
    assert files_in(folder) == AFTER | {"deep/er/b.c.orig": b"mine", "gone/c.c": b"mine, too"}


def test_what_somebody_has_put_back_stays_so(folder: Path) -> None:
    interrupted(folder, "gone/c.c")
    for path, data in BEFORE.items():
        (folder / path).write_bytes(data)
    assert recover(folder) == []
    assert files_in(folder) == BEFORE


def test_a_failure_that_cannot_be_undone_is_finished_by_the_next_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def broken(self: Path, target: Path) -> Path:
        if self.name == "c.c" or monkeypatched["broken"]:
            monkeypatched["broken"] = True
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))
        return replace(self, target)

    monkeypatched = {"broken": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", broken)
        with pytest.raises(ConfigError, match="and so did putting things back; nothing is lost"):
            apply_changes(folder, CHANGES)
    assert is_pending(folder)
    assert recover(folder) == []
    assert files_in(folder) == AFTER


def test_an_interruption_that_cannot_be_finished_says_so(folder: Path) -> None:
    interrupted(folder, "deep/er/b.c")

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(ConfigError) as caught:
            recover(folder)
    (problem,) = caught.value.problems
    assert "no space left" in problem.message
    assert "what is still to be written is in .fa4gen/pending" in problem.message
    assert "every file is as it was" not in problem.message  # some are new by now
    assert recover(folder) == []
    assert files_in(folder) == AFTER


def test_a_second_run_does_not_begin_over_the_first(folder: Path) -> None:
    interrupted(folder, "deep/er/b.c")
    with pytest.raises(ConfigError, match="an earlier run was interrupted"):
        apply_changes(folder, CHANGES)


@pytest.mark.parametrize(
    "journal",
    [
        "",
        "[",
        "{}",
        '[{"path": "../x", "before": null, "after": null}]',
        '[{"path": "a"}]',
        '[{"path": 5, "before": null, "after": null}]',
        "[" * 100_000,
    ],
    ids=range(7),
)
def test_a_journal_that_is_none_is_refused_and_nothing_is_touched(
    folder: Path, journal: str
) -> None:
    interrupted(folder, "deep/er/b.c")
    (folder / ".fa4gen/pending/journal.json").write_text(journal)
    before = files_in(folder)
    with pytest.raises(ConfigError, match="journal of an interrupted run is damaged"):
        recover(folder)
    assert files_in(folder) == before
    assert not (folder.parent / "x").exists()


def test_two_processes_do_not_write_at_once(folder: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another fa4gen is writing this folder"):
            apply_changes(folder, CHANGES)
    finally:
        os.close(descriptor)
    assert files_in(folder) == BEFORE
    apply_changes(folder, CHANGES)


@pytest.mark.parametrize("place", ["deep", "deep/er/b.c", ".fa4gen", "new"])
def test_a_link_is_never_written_through(folder: Path, place: str) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "b.c").write_bytes(b"b")
    target = folder / place
    if target.exists():
        target.rename(folder.parent / "was there")
    target.symlink_to(outside / "b.c" if place.endswith("b.c") else outside)
    with pytest.raises(ConfigError, match="symbolic link"):
        apply_changes(folder, CHANGES)
    assert files_in(outside) == {"b.c": b"b"}


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):  # root may write everywhere

        def refuse(self: Path, *_: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

        monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ConfigError, match="cannot write here: permission denied"):
        apply_changes(folder, [Change("a.c", None, b"A")])
    assert list(folder.iterdir()) == []
