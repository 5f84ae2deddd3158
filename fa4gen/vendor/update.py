"""Brings a vendored folder up to date: today's files, with the user's edits merged into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.counts import counted
from fa4gen.errors import NotCurrentError, Problem
from fa4gen.render.manifest import sha256
from fa4gen.vendor.lock import LOCK_NAME
from fa4gen.vendor.merge import LineKeys, has_conflict, merge
from fa4gen.vendor.on_disk import free_name, read_file, refuse_links
from fa4gen.vendor.originals import ORIGINALS, belongs, read_originals
from fa4gen.vendor.ours import UNSHOWN, is_generated
from fa4gen.vendor.write import Action, FileOutcome, FolderPlan, finish_plan, is_compiled
from fa4gen.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.vendor.assemble import Assembled
    from fa4gen.vendor.lock import Lock

OUR_NAME = f"fa4gen {__version__}"
"""Whose side a conflict marker names."""


def plan_update(assembled: Assembled, folder: Path, old: Lock, force: bool = False) -> FolderPlan:
    """Return what bringing ``folder``, whose lock is ``old``, to ``assembled`` would do.

    A file that the user left alone is replaced; edits are merged; what cannot be merged gets
    markers or, as a whole, today's text, and the user's file stays beside as FILE.orig. A file of
    ours that the user deleted stays deleted unless ``force``; files of the user's stay, and so do
    edited ones that are ours no longer, but for C files, which become FILE.orig. Writes nothing.
    The lock alone makes no file ours: see ``ours``.
    Raises NotCurrentError while conflicts of an earlier update are unresolved, and for files of
    the user's where a new one of ours belongs, unless ``force`` (they become FILE.orig).
    """
    paths = sorted({*assembled.files, *old.files})
    refuse_links(folder, [*paths, LOCK_NAME])
    disk = {path: read_file(folder, path) for path in paths}
    _refuse_conflicts(folder, disk)
    originals = read_originals(folder, old.files.get(ORIGINALS), old.files)
    updater = _Updater(folder, old, originals, force)
    outcomes = [
        outcome
        for path in paths
        for outcome in updater.outcomes(path, disk[path], assembled.files.get(path))
    ]
    in_the_way = [o for o in outcomes if o.action == "kept" and o.path not in old.files]
    if in_the_way:
        raise NotCurrentError(
            *(
                Problem(
                    "a file of yours is where a new one of fa4gen's belongs",
                    "Rename yours; with --force it becomes FILE.orig.",
                    shown_path(folder / outcome.path),
                )
                for outcome in in_the_way
            )
        )
    return finish_plan(folder, outcomes, assembled.lock, old)


@dataclass(frozen=True)
class _Updater:
    folder: Path
    old: Lock
    originals: Mapping[str, LineKeys]
    force: bool

    def outcomes(self, path: str, disk: bytes | None, wanted: bytes | None) -> list[FileOutcome]:
        recorded = self.old.files.get(path)
        if disk is None:
            return self._absent(path, recorded, wanted)
        if disk == wanted:
            return [FileOutcome(path, "unchanged", disk, disk)]
        intact = recorded == sha256(disk) and is_generated(path, disk)
        if intact or path == ORIGINALS:
            action: Action = "deleted" if wanted is None else "updated"
            return [FileOutcome(path, action, disk, wanted)]
        if wanted is None:
            return self._gone(path, disk)
        if recorded is None:
            if not self.force:
                return [FileOutcome(path, "kept", disk, disk)]
            return self._set_aside(path, disk, wanted, "a file of yours was here")
        if recorded == sha256(wanted):
            return [FileOutcome(path, "kept", disk, disk, "your changes; fa4gen has none")]
        return self._merge(path, disk, wanted)

    def _gone(self, path: str, disk: bytes) -> list[FileOutcome]:
        """Of an edited file that fa4gen no longer writes; built with the rest, it would clash."""
        if not is_generated(path, disk):
            return [FileOutcome(path, "kept", disk, disk, UNSHOWN)]
        if is_compiled(path):
            why = "fa4gen has no such file any more: what it did is in other files of src now"
            return self._set_aside(path, disk, None, why)
        why = "changed since fa4gen wrote it, which has no such file any more: yours now"
        return [FileOutcome(path, "kept", disk, disk, why)]

    def _absent(self, path: str, recorded: str | None, wanted: bytes | None) -> list[FileOutcome]:
        if wanted is None:
            return []
        if recorded is None or path == ORIGINALS:
            return [FileOutcome(path, "created", None, wanted)]
        if self.force:
            return [FileOutcome(path, "restored", None, wanted, "you had deleted it")]
        return [FileOutcome(path, "missing", None, None, "you deleted it; --force restores it")]

    def _merge(self, path: str, disk: bytes, wanted: bytes) -> list[FileOutcome]:
        if not belongs(path):
            return self._set_aside(
                path, disk, wanted, "images, manifests and the licence are not merged"
            )
        base = self.originals.get(path)
        merged = merge(base or LineKeys(()), disk, wanted, OUR_NAME)
        if not merged.conflicts:
            return [FileOutcome(path, "merged", disk, merged.data, "your changes and fa4gen's")]
        why = f"both sides changed the same lines in {counted(merged.conflicts, 'place')}"
        if base is None:
            why = "the original is not among those kept: no line is known to be unchanged"
        aside = free_name(self.folder / path).relative_to(self.folder).as_posix()
        return [
            FileOutcome(path, "conflict", disk, merged.data, f"{why}; yours is in {aside}"),
            FileOutcome(aside, "created", None, disk, "your file as it was"),
        ]

    def _set_aside(
        self, path: str, disk: bytes, wanted: bytes | None, why: str
    ) -> list[FileOutcome]:
        aside = free_name(self.folder / path).relative_to(self.folder).as_posix()
        return [
            FileOutcome(path, "conflict", disk, wanted, f"{why}; yours is in {aside}"),
            FileOutcome(aside, "created", None, disk, "your file as it was"),
        ]


def _refuse_conflicts(folder: Path, disk: Mapping[str, bytes | None]) -> None:
    unresolved = [path for path, data in disk.items() if data is not None and has_conflict(data)]
    if unresolved:
        raise NotCurrentError(
            *(
                Problem(
                    "conflicts of an earlier merge are unresolved",
                    "Decide for each place between <<<<<<< and >>>>>>>, and delete the markers.",
                    shown_path(folder / path),
                )
                for path in unresolved
            )
        )
