"""Replaces files of a folder: new contents get other names first, then they are renamed.

A run that fails or is killed while it writes has changed nothing. Ctrl-C and SIGTERM wait for the
renames, which take milliseconds; a machine that dies between two of them leaves old and new files,
and the same command finishes: it takes files that already have the new content as they are.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, NotCurrentError, Problem
from fa4gen.render.manifest import sha256
from fa4gen.termination import signals_held
from fa4gen.vendoring.on_disk import DRAFT, read_file, refuse_links

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Change:
    """A file's change."""

    path: str
    """Relative to the folder, with slashes."""
    before: str | None
    """Hash of the content on disk; None for no file."""
    data: bytes | None
    """New content; None deletes the file."""


def replace_files(folder: Path, changes: Sequence[Change]) -> None:
    """Carry out ``changes`` in their order.

    Raises NotCurrentError for a file that is not as ``before`` says, and ConfigError for a folder
    that cannot be written; nothing is changed then.
    """
    if not changes:
        return
    made: list[Path] = []
    try:
        if folder.is_symlink() or (folder.is_dir() and any(folder.iterdir())):
            _replace(folder, changes, made)
        else:
            _write_folder(folder, changes, made)
    except OSError as error:
        _remove_empty(made)
        raise _unwritable(error, folder) from error
    except BaseException:
        _remove_empty(made)
        raise


def _write_folder(folder: Path, changes: Sequence[Change], made: list[Path]) -> None:
    """Write a folder that is not there yet, or empty, under another name, and rename it."""
    _make_folders(folder.parent, made)
    draft = folder.with_name(f".{folder.name}{DRAFT}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        for change in changes:
            if change.data is not None:
                (draft / change.path).parent.mkdir(parents=True, exist_ok=True)
                _write_synced(draft / change.path, change.data)
        with suppress(FileNotFoundError):
            folder.rmdir()
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _replace(folder: Path, changes: Sequence[Change], made: list[Path]) -> None:
    refuse_links(folder, [change.path for change in changes])
    drafts: dict[str, Path] = {}
    try:
        for change in changes:
            if change.data is not None:
                target = folder / change.path
                _make_folders(target.parent, made)
                drafts[change.path] = target.with_name(f".{target.name}{DRAFT}")
                _write_synced(drafts[change.path], change.data)
        _refuse_changed(folder, changes)
        with signals_held():
            for change in changes:
                if change.path in drafts:
                    drafts[change.path].replace(folder / change.path)
                else:
                    (folder / change.path).unlink(missing_ok=True)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    gone = [(folder / change.path).parent for change in changes if change.data is None]
    _remove_empty(gone, folder)


def _refuse_changed(folder: Path, changes: Sequence[Change]) -> None:
    for change in changes:
        data = read_file(folder, change.path)
        if (None if data is None else sha256(data)) != change.before:
            raise NotCurrentError(
                Problem(
                    "the file was changed while the command ran; every file is as it was",
                    "Run the command again.",
                    shown_path(folder / change.path),
                )
            )


def _unwritable(error: OSError, folder: Path) -> ConfigError:
    reason = (error.strerror or str(error)).lower()
    place = error.filename if isinstance(error.filename, str) else str(folder)
    return ConfigError(
        Problem(
            f"cannot write here: {reason}",
            "Make room, or see who may write here, and run the command again.",
            file=shown_path(type(folder)(place)),
        )
    )


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
