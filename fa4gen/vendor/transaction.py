"""Changes many files of a folder, all or none, whatever interrupts it.

New contents are first written beside, under ``.fa4gen/pending``; then a journal is put there, and
from then on there are only renames. A process that dies before the journal has changed nothing; one
that dies after it is finished by ``recover``, which every command that writes calls first. A rename
that fails is undone with all before it. What somebody changed meanwhile is kept as ``FILE.orig``.

A journal may be anybody's, as the folder may: it leads only to files of names that fa4gen gives,
and what cannot be shown to be fa4gen's is neither deleted nor replaced without being kept aside.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, NotCurrentError, Problem
from fa4gen.json_text import parse_json
from fa4gen.locks import lock
from fa4gen.render.manifest import sha256
from fa4gen.vendor.lock import LOCK_NAME, PENDING_FOLDER, STATE_FOLDER, check_relative
from fa4gen.vendor.on_disk import free_name, refuse_links
from fa4gen.vendor.ours import has_own_name, is_generated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

JOURNAL = "journal.json"


@dataclass(frozen=True)
class Change:
    """One file's change."""

    path: str
    """Relative to the folder, with slashes."""
    before: str | None
    """Hash of what is there; None for nothing."""
    data: bytes | None
    """What is to be there; None for nothing."""


@dataclass(frozen=True)
class _Step:
    """A change whose new content is in the pending folder."""

    number: int
    path: str
    before: str | None
    after: str | None

    @property
    def writes(self) -> bool:
        return self.after is not None


def apply_changes(folder: Path, changes: Sequence[Change]) -> None:
    """Carry out ``changes`` in their order; ConfigError when that fails, and nothing changed then.

    NotCurrentError when a file is not what ``before`` says: nothing is changed then, either.
    """
    if not changes:
        return
    made: list[Path] = []
    try:
        _make_folders(folder, made)
        with _alone(folder):
            _apply(folder, changes, made)
    except OSError as error:
        _remove_empty(made)
        raise unwritable(error, folder) from error
    except BaseException:
        _remove_empty(made)
        raise


def is_pending(folder: Path) -> bool:
    """Whether writing ``folder`` was interrupted."""
    return os.path.lexists(folder / PENDING_FOLDER)


def refuse_pending(folder: Path) -> None:
    """Raise NotCurrentError when writing ``folder`` was interrupted."""
    if is_pending(folder):
        raise NotCurrentError(
            Problem(
                "writing this folder was interrupted",
                f"fa4gen vendor --update {shown_path(folder)} finishes it.",
                shown_path(folder),
            )
        )


def recover(folder: Path) -> list[str]:
    """Finish or clear away what an interrupted run left; return the paths of files kept aside.

    Raises ConfigError when that is not possible.
    """
    pending = folder / PENDING_FOLDER
    if not is_pending(folder):
        return []
    refuse_links(folder, (f"{PENDING_FOLDER}/{JOURNAL}",))
    try:
        with _alone(folder):
            journal = pending / JOURNAL
            kept = _finish(folder, _read_journal(journal)) if journal.exists() else []
            _clear(folder, pending)
    except OSError as error:
        state = f"what is still to be written is in {PENDING_FOLDER}"
        raise unwritable(error, folder, state) from error
    return kept


def unwritable(error: OSError, folder: Path, state: str = "every file is as it was") -> ConfigError:
    """Return the error for a folder that cannot be written; ``state`` says what is in it now."""
    reason = (error.strerror or str(error)).lower()
    place = error.filename if isinstance(error.filename, str) else str(folder)
    return ConfigError(
        Problem(
            f"cannot write here: {reason}; {state}",
            "Make room, or see who may write here and run the command again."
            if error.errno is not None
            else "",
            file=shown_path(type(folder)(place)),
        )
    )


def _apply(folder: Path, changes: Sequence[Change], made: list[Path]) -> None:
    refuse_links(folder, [f"{PENDING_FOLDER}/new", *(change.path for change in changes)])
    if is_pending(folder):
        raise ConfigError(
            Problem("an earlier run was interrupted here", "Run it again.", shown_path(folder))
        )
    pending = folder / PENDING_FOLDER
    steps = [
        _Step(
            number,
            change.path,
            change.before,
            sha256(change.data) if change.data is not None else None,
        )
        for number, change in enumerate(changes)
    ]
    done: list[_Step] = []
    try:
        for name in ("new", "old"):
            _make_folders(pending / name, made)
        for step, change in zip(steps, changes, strict=True):
            if change.data is not None:
                _write_synced(_new(folder, step), change.data)
                _make_folders((folder / change.path).parent, made)
        _write_journal(pending / JOURNAL, steps)
        for step in steps:
            done.append(step)
            _carry_out(folder, step)
        _sync_folders(folder, steps)
    except BaseException as error:
        undone = [_undo(folder, step) for step in reversed(done)]
        if not all(undone):
            raise _half_done(folder) from error  # what is pending is needed
        _clear(folder, pending)
        raise
    _clear(folder, pending)
    _remove_empty([(folder / step.path).parent for step in steps if not step.writes], folder)


def _carry_out(folder: Path, step: _Step) -> None:
    target = folder / step.path
    found = _hash(target)
    if found == step.before and found is not None:
        target.replace(_old(folder, step))
        found = _hash(_old(folder, step))  # whoever saved it in between
    if found != step.before:
        raise NotCurrentError(
            Problem(
                "the file was changed while the command ran; every file is as it was",
                "Run the command again.",
                shown_path(target),
            )
        )
    if step.writes:
        _new(folder, step).replace(target)


def _undo(folder: Path, step: _Step) -> bool:
    """Put things back as they were before ``step``, wherever in it the failure was."""
    target, old, new = folder / step.path, _old(folder, step), _new(folder, step)
    try:
        if step.writes and not new.exists():
            target.replace(new)
        if old.exists():
            old.replace(target)
    except OSError:
        return False
    return True


def _finish(folder: Path, steps: Sequence[_Step]) -> list[str]:
    kept: list[str] = []
    refuse_links(folder, [step.path for step in steps])
    if all(_hash(folder / step.path) == step.before for step in steps):
        return kept  # nothing was done yet, or somebody has put it all back
    for step in steps:
        target, new = folder / step.path, _new(folder, step)
        data = _content(target)
        found = None if data is None else sha256(data)
        known = data is not None and found == step.before and is_generated(step.path, data)
        if step.writes and new.exists():
            if found is not None and not known and found != step.after:
                aside = free_name(target)  # changed since the interruption, or not fa4gen's
                target.replace(aside)
                kept.append(aside.relative_to(folder).as_posix())
            target.parent.mkdir(parents=True, exist_ok=True)
            new.replace(target)
        elif not step.writes and known:
            target.unlink()
    _sync_folders(folder, steps)
    return kept


def _clear(folder: Path, pending: Path) -> None:
    """Remove the pending folder, the journal first: what is left without it counts for nothing."""
    with suppress(FileNotFoundError):
        (pending / JOURNAL).unlink()
    shutil.rmtree(pending, ignore_errors=True)
    _remove_empty([folder / STATE_FOLDER])


def _new(folder: Path, step: _Step) -> Path:
    return folder / PENDING_FOLDER / "new" / str(step.number)


def _old(folder: Path, step: _Step) -> Path:
    return folder / PENDING_FOLDER / "old" / str(step.number)


def _write_journal(path: Path, steps: Sequence[_Step]) -> None:
    entries = [{"path": s.path, "before": s.before, "after": s.after} for s in steps]
    draft = path.with_suffix(".draft")
    _write_synced(draft, json.dumps(entries).encode())
    draft.replace(path)
    _sync(path.parent)


def _read_journal(path: Path) -> list[_Step]:
    try:
        entries = parse_json(path.read_bytes())
        if not isinstance(entries, list):
            raise TypeError("no list of steps")
        steps = [
            _Step(number, entry["path"], entry["before"], entry["after"])
            for number, entry in enumerate(entries)
        ]
        for step in steps:
            if step.path != LOCK_NAME and not has_own_name(check_relative(step.path)):
                raise ValueError(f"fa4gen writes no {step.path!r}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            Problem(
                f"the journal of an interrupted run is damaged: {error}",
                "Restore the folder from version control, or delete "
                f"{shown_path(path.parent)} after you have seen what is in it.",
                shown_path(path),
            )
        ) from error
    return steps


def _half_done(folder: Path) -> ConfigError:
    return ConfigError(
        Problem(
            "writing failed in the middle, and so did putting things back; nothing is lost",
            f"The next fa4gen vendor --update {shown_path(folder)} finishes it from "
            f"{PENDING_FOLDER}.",
            shown_path(folder),
        )
    )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold ``folder`` against other processes of fa4gen; ConfigError when one has it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders: two runs at a time are the user's to avoid
        if os.name != "nt":
            raise
        yield
        return
    try:
        try:
            lock(descriptor)
        except BlockingIOError as error:
            raise ConfigError(
                Problem(
                    "another fa4gen is writing this folder",
                    "Run the command again when it is done.",
                    shown_path(folder),
                )
            ) from error
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)


def _hash(path: Path) -> str | None:
    data = _content(path)
    return None if data is None else sha256(data)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _make_folders(folder: Path, made: list[Path]) -> None:
    for path in reversed((folder, *folder.parents)):
        if not path.is_dir():
            path.mkdir()
            made.append(path)


def _remove_empty(folders: Sequence[Path], root: Path | None = None) -> None:
    """Remove those of ``folders`` that are empty; with ``root``, also emptied parents below it."""
    for folder in reversed(folders):
        path = folder
        with suppress(OSError):
            path.rmdir()
            while root is not None and (path := path.parent) != root:
                path.rmdir()


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folders(folder: Path, steps: Sequence[_Step]) -> None:
    for path in {(folder / step.path).parent for step in steps}:
        if path.is_dir():
            _sync(path)


def _sync(folder: Path) -> None:
    with suppress(OSError):  # not every system opens folders, and some sync files alone
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
