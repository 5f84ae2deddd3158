"""Puts a vendored folder on disk: all of its files or none, and nobody's edits overwritten."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, NotCurrentError, Problem
from fa4gen.render.manifest import sha256
from fa4gen.vendor.lock import LOCK_NAME, Lock, lock_text, proof_sha256, read_lock
from fa4gen.vendor.on_disk import is_free, read_file, refuse_links
from fa4gen.vendor.ours import UNSHOWN, has_own_name, is_generated
from fa4gen.vendor.transaction import Change, apply_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.vendor.assemble import Assembled

CHANGED = "changed since fa4gen wrote it"
Action = Literal[
    "created",
    "updated",
    "unchanged",
    "deleted",
    "merged",
    "kept",
    "missing",
    "restored",
    "conflict",
]
"""``kept``: the user's and left alone; ``missing``: the user deleted it, and it stays deleted;
``conflict``: both sides changed the same lines, or the file cannot be merged."""


@dataclass(frozen=True)
class FileOutcome:
    """What was done, or is to be done, with one file."""

    path: str
    """Relative to the folder."""
    action: Action
    before: bytes | None
    """As it was found; None for nothing."""
    after: bytes | None
    reason: str = ""

    def diff(self, folder: Path) -> str:
        """Return the unified diff of the change; of what is no text, a line."""
        return unified_diff(shown_path(folder / self.path), self.before, self.after)


@dataclass(frozen=True)
class FolderPlan:
    """What writing a folder would do."""

    folder: Path
    outcomes: tuple[FileOutcome, ...]
    lock: Lock
    """As it is to be."""

    @property
    def changes(self) -> bool:
        """Whether anything is to be written."""
        return any(outcome.before != outcome.after for outcome in self.outcomes)

    @property
    def conflicts(self) -> tuple[FileOutcome, ...]:
        """The outcomes that the user has to look at."""
        return tuple(outcome for outcome in self.outcomes if outcome.action == "conflict")


def plan_write(assembled: Assembled, folder: Path, force: bool = False) -> FolderPlan:
    """Return what writing ``assembled`` to ``folder`` would do; writes nothing.

    Raises ConfigError when the folder holds something else, and NotCurrentError for files that were
    edited, unless ``force``: those files are overwritten then. An edited file that is to go stays,
    but for C files, which count as overwritten.
    """
    old = _old_lock(folder, force)
    recorded = dict(old.files) if old else {}
    refuse_links(folder, [*assembled.files, *recorded, LOCK_NAME])
    outcomes = []
    edited = []
    for path in sorted({*assembled.files, *recorded}):
        disk, wanted = read_file(folder, path), assembled.files.get(path)
        outcome = _outcome(path, disk, wanted, recorded.get(path))
        if outcome.action == "kept" and (
            wanted is not None or (is_compiled(path) and outcome.reason != UNSHOWN)
        ):
            if force:
                action: Action = "deleted" if wanted is None else "updated"
                outcome = FileOutcome(path, action, disk, wanted)
            else:
                edited.append(outcome)
        if outcome.before is not None or outcome.after is not None:
            outcomes.append(outcome)
    if edited:
        raise NotCurrentError(*(_not_overwritten(folder, outcome) for outcome in edited))
    return finish_plan(folder, outcomes, assembled.lock, old)


def finish_plan(
    folder: Path, outcomes: Sequence[FileOutcome], lock: Lock, old: Lock | None
) -> FolderPlan:
    """Return the plan with the lock among its files, proofs that still count kept.

    A lock that would say nothing new but who wrote the same files again stays as it is.
    """
    hashes = {o.path: sha256(o.after) for o in outcomes if o.after is not None}
    lock = _with_old_proofs(lock, old, hashes)
    if old is not None and _same_but_generator(old, lock):
        lock = old
    disk = read_file(folder, LOCK_NAME)
    text = lock_text(lock).encode()
    action: Action = "unchanged" if disk == text else "created" if disk is None else "updated"
    entry = FileOutcome(LOCK_NAME, action, disk, text)
    return FolderPlan(folder, (*outcomes, entry), lock)


def is_compiled(path: str) -> bool:
    """Whether the file is one of those that are compiled together: src/*.c and cubins/*.c."""
    return path.startswith(("src/", "cubins/")) and path.endswith(".c")


def apply_plan(plan: FolderPlan) -> None:
    """Carry out ``plan``. Raises ConfigError, and every file is as it was then."""
    apply_changes(
        plan.folder,
        [
            Change(o.path, sha256(o.before) if o.before is not None else None, o.after)
            for o in plan.outcomes
            if o.before != o.after
        ],
    )


def unified_diff(name: str, before: bytes | None, after: bytes | None) -> str:
    """Return the unified diff between two contents of the file ``name``."""
    if before == after:
        return ""
    try:
        old, new = ((side or b"").decode() for side in (before, after))
    except UnicodeDecodeError:
        return f"{name}: not text, differs\n"
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        name if before is not None else "/dev/null",
        name if after is not None else "/dev/null",
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def _old_lock(folder: Path, force: bool) -> Lock | None:
    """Return the lock of a folder that is ours, None for one that may be filled."""
    if is_free(folder):
        return None
    try:
        return read_lock(folder)
    except ConfigError:
        if force:
            return None
        if (folder / LOCK_NAME).exists():
            raise
    raise ConfigError(
        Problem(
            f"the folder is not empty, and not one of fa4gen's: it has no {LOCK_NAME}",
            "Choose another folder with --into, or write into this one with --force: files of the "
            "same names are overwritten then, others stay.",
            shown_path(folder),
        )
    )


def _outcome(
    path: str, disk: bytes | None, wanted: bytes | None, recorded: str | None
) -> FileOutcome:
    if disk == wanted:
        return FileOutcome(path, "unchanged", disk, disk)
    if disk is None:
        return FileOutcome(path, "created", disk, wanted)
    if wanted is None and not is_generated(path, disk):
        edited = is_compiled(path) and has_own_name(path) and sha256(disk) != recorded
        return FileOutcome(path, "kept", disk, disk, CHANGED if edited else UNSHOWN)
    if recorded is not None and sha256(disk) == recorded:
        return FileOutcome(path, "deleted" if wanted is None else "updated", disk, wanted)
    reason = CHANGED if recorded else "not written by fa4gen"
    return FileOutcome(path, "kept", disk, disk, reason)


def _not_overwritten(folder: Path, outcome: FileOutcome) -> Problem:
    return Problem(
        f"not overwritten: {outcome.reason}",
        f"fa4gen vendor --update {shown_path(folder)} merges edits; --force overwrites them.",
        file=shown_path(folder / outcome.path),
    )


def _with_old_proofs(lock: Lock, old: Lock | None, hashes: Mapping[str, str]) -> Lock:
    """Return ``lock`` with the proofs of ``old`` that were made with just the files to come."""
    if old is None:
        return lock
    by_symbol = {kernel.symbol: kernel for kernel in old.kernels}
    kernels = []
    for kernel in lock.kernels:
        before = by_symbol.get(kernel.symbol)
        digest = proof_sha256(kernel.symbol, dict(hashes))
        kept = [p for p in before.proofs if p.files_sha256 == digest] if before else []
        levels = {proof.level for proof in kept}
        new = [proof for proof in kernel.proofs if proof.level not in levels]
        kernels.append(kernel.model_copy(update={"proofs": (*new, *kept)}))
    return lock.model_copy(update={"kernels": tuple(kernels)})


def _same_but_generator(old: Lock, new: Lock) -> bool:
    return old.model_copy(update={"generator": new.generator}) == new
