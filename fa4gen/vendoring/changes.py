"""Plans what writing a vendored folder changes: files that were not edited, and no others."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from fa4gen.config.paths import shown_path
from fa4gen.errors import NotCurrentError, Problem
from fa4gen.render.manifest import sha256
from fa4gen.vendoring.cubins import cubin_path
from fa4gen.vendoring.generated_files import is_generated
from fa4gen.vendoring.lock import LOCK_NAME, Lock, lock_text, proof_sha256
from fa4gen.vendoring.on_disk import read_file, refuse_links
from fa4gen.vendoring.replace_files import Change, replace_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from fa4gen.vendoring.assemble import Assembled

Action = Literal[
    "created", "updated", "unchanged", "deleted", "kept", "missing", "restored", "refused"
]
"""``kept``: the user's and left alone; ``missing``: the user deleted it, and it stays deleted;
``refused``: edited, and today's file is another one."""
LIBRARY = ("include/", "src/", "kernels/", "cubins/")
"""Folders whose files fit only together: where one is refused, nothing is written."""
EDITED = "changed since fa4gen wrote it"
UNKNOWN = "not written by fa4gen"


@dataclass(frozen=True)
class FileOutcome:
    """A file, and what is done with it."""

    path: str
    """Relative to the folder."""
    action: Action
    before: bytes | None
    """The old contents; None for no file."""
    after: bytes | None
    reason: str = ""

    def diff(self, folder: Path) -> str:
        """Return the unified diff of the change; of files that are not text, a line."""
        return unified_diff(shown_path(folder / self.path), self.before, self.after)


@dataclass(frozen=True)
class FolderPlan:
    """The outcome for each file of a folder, and its new lock."""

    folder: Path
    outcomes: tuple[FileOutcome, ...]
    lock: Lock

    @property
    def refused(self) -> tuple[FileOutcome, ...]:
        """The edited files of which today's version was not written."""
        return tuple(outcome for outcome in self.outcomes if outcome.action == "refused")


def plan_folder(
    assembled: Assembled, folder: Path, old: Lock | None, force: bool = False
) -> FolderPlan:
    """Return the changes of writing ``assembled`` to ``folder``, whose lock is ``old``.

    Files that the user left alone are written; edited ones that fa4gen would write differently are
    refused, unless ``force``, which overwrites them and restores deleted ones. Raises
    NotCurrentError where a refused file is one of LIBRARY.
    """
    recorded = dict(old.files) if old else {}
    refuse_links(folder, [*assembled.files, *recorded, LOCK_NAME])
    outcomes = []
    for path in sorted({*assembled.files, *recorded}):
        disk, wanted = read_file(folder, path), assembled.files.get(path)
        outcome = _outcome(path, disk, wanted, recorded.get(path), force)
        if outcome.before is not None or outcome.after is not None or outcome.reason:
            outcomes.append(outcome)
    outcomes = _with_recompiled(outcomes, old)
    refused = [outcome for outcome in outcomes if outcome.action == "refused"]
    if any(outcome.path.startswith(LIBRARY) for outcome in refused):
        raise NotCurrentError(*(refusal(folder, outcome) for outcome in refused))
    return finish_plan(folder, outcomes, _with_kept(assembled.lock, old, outcomes), old)


def finish_plan(
    folder: Path, outcomes: Sequence[FileOutcome], lock: Lock, old: Lock | None
) -> FolderPlan:
    """Return the plan with the lock among its files, proofs that still count kept.

    A lock in which only the generator would be another one stays as it is.
    """
    hashes = {o.path: sha256(o.after) for o in outcomes if o.after is not None}
    lock = _with_old_proofs(lock, old, hashes)
    if old is not None and old.changed(generator=lock.generator) == lock:
        lock = old
    disk = read_file(folder, LOCK_NAME)
    text = lock_text(lock).encode()
    action: Action = "unchanged" if disk == text else "created" if disk is None else "updated"
    entry = FileOutcome(LOCK_NAME, action, disk, text)
    return FolderPlan(folder, (*outcomes, entry), lock)


def apply_plan(plan: FolderPlan) -> None:
    """Write the files of ``plan``; ConfigError or NotCurrentError, and nothing is changed then."""
    replace_files(
        plan.folder,
        [
            Change(o.path, sha256(o.before) if o.before is not None else None, o.after)
            for o in plan.outcomes
            if o.before != o.after
        ],
    )


def refusal(folder: Path, outcome: FileOutcome) -> Problem:
    """Return the problem of a file that is not overwritten."""
    return Problem(
        f"not overwritten: {outcome.reason}",
        "Your repository has the file as fa4gen wrote it: --force writes today's, to which your "
        f"edit can be applied again. fa4gen vendor check {shown_path(folder)} --diff shows both.",
        file=shown_path(folder / outcome.path),
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


def _outcome(
    path: str, disk: bytes | None, wanted: bytes | None, recorded: str | None, force: bool
) -> FileOutcome:
    if disk == wanted:
        return FileOutcome(path, "unchanged", disk, disk)
    if disk is None:
        if recorded is None:
            return FileOutcome(path, "created", None, wanted)
        if force:
            return FileOutcome(path, "restored", None, wanted, "you had deleted it")
        return FileOutcome(path, "missing", None, None, "you deleted it; --force restores it")
    if recorded == sha256(disk) and is_generated(path, disk):
        return FileOutcome(path, "deleted" if wanted is None else "updated", disk, wanted)
    if wanted is None:
        if not (_is_compiled(path) and is_generated(path, disk)):
            why = f"{EDITED}, which has no such file any more: yours now"
            return FileOutcome(path, "kept", disk, disk, why)
        why = f"{EDITED}, which has no such file any more; left here, it would be compiled"
        if force:
            return FileOutcome(path, "deleted", disk, None)
        return FileOutcome(path, "refused", disk, disk, why)
    if recorded is not None and recorded == sha256(wanted):
        return FileOutcome(path, "kept", disk, disk, "your changes; fa4gen has none")
    if force:
        return FileOutcome(path, "updated", disk, wanted)
    return FileOutcome(path, "refused", disk, disk, UNKNOWN if recorded is None else EDITED)


def _is_compiled(path: str) -> bool:
    """Whether the file is one of those that a build compiles together: src/*.c and cubins/*.c."""
    return path.startswith(("src/", "cubins/")) and path.endswith(".c")


def _with_recompiled(outcomes: Sequence[FileOutcome], old: Lock | None) -> list[FileOutcome]:
    """Keep machine code that was compiled from a kernel's edited sources, which are kept."""
    kept = {outcome.path for outcome in outcomes if outcome.action == "kept"}
    recompiled = {
        cubin_path(kernel.symbol): f"compiled from your kernels/{kernel.symbol}.cu"
        for kernel in (old.kernels if old else ())
        if kept & source_paths(kernel.symbol)
    }
    return [
        replace(outcome, action="kept", after=outcome.before, reason=recompiled[outcome.path])
        if outcome.path in recompiled and outcome.action == "updated"
        else outcome
        for outcome in outcomes
    ]


def source_paths(symbol: str) -> frozenset[str]:
    """Return the paths of the .cu of a kernel and of its headers."""
    return frozenset(f"kernels/{symbol}{end}" for end in (".cu", "_barriers.h", "_device.cuh"))


def _with_kept(lock: Lock, old: Lock | None, outcomes: Iterable[FileOutcome]) -> Lock:
    """Return ``lock`` with the old entries of files that were not written."""
    if old is None:
        return lock
    stay = {o.path for o in outcomes if o.action in ("kept", "refused") and o.path in lock.files}
    files = {path: old.files.get(path, digest) if path in stay else digest
             for path, digest in lock.files.items()}  # fmt: skip
    before = {kernel.symbol: kernel for kernel in old.kernels}
    kernels = tuple(
        before[kernel.symbol] if cubin_path(kernel.symbol) in stay else kernel
        for kernel in lock.kernels
    )
    return lock.changed(files=files, kernels=kernels)


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
        kernels.append(kernel.changed(proofs=(*new, *kept)))
    return lock.changed(kernels=tuple(kernels))
