"""Tells whether a vendored folder is what its lock says, and what fa4gen would write today.

Nothing is compiled: the images in the folder are taken as they are, and a kernel whose source
would come out differently is stale. So the result does not depend on this machine's compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from fa4gen.config.load import config_from_data
from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, NotCurrentError, Problem
from fa4gen.render.manifest import config_data, sha256
from fa4gen.vendoring.assemble import text_files
from fa4gen.vendoring.changes import UNKNOWN, unified_diff
from fa4gen.vendoring.cubins import recorded_sources
from fa4gen.vendoring.from_lock import locked_choices, locked_configs, locked_request
from fa4gen.vendoring.kernels import render_kernels
from fa4gen.vendoring.lock import (
    LOCK_NAME,
    Lock,
    LockedKernel,
    made_with,
    proof_sha256,
    read_lock,
)
from fa4gen.vendoring.on_disk import foreign_files, is_free, links_in, read_file
from fa4gen.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.render.environment import TemplateSet
    from fa4gen.vendoring.model import Request

Verdict = Literal["current", "stale", "edited", "missing", "foreign", "allowed"]


@dataclass(frozen=True)
class FileVerdict:
    """One file of the folder, compared with the lock and with today's text."""

    path: str
    """Relative to the folder; of a folder, with a slash behind it."""
    verdict: Verdict
    reason: str = ""
    on_disk: bytes | None = None
    rendered: bytes | None = None
    """The contents as written today; None where there are none, or they are not known."""

    def diff(self, name: str) -> str:
        """Return the unified diff from the file on disk to what fa4gen writes today, if known."""
        unknown = self.rendered is None and self.verdict != "stale"
        return "" if unknown else unified_diff(name, self.on_disk, self.rendered)


@dataclass(frozen=True)
class FolderVerdict:
    """The result of ``check_folder``."""

    folder: Path
    lock: Lock
    files: tuple[FileVerdict, ...]
    kernels: tuple[str, ...]
    """Names of the kernels whose own source would change."""
    request: tuple[str, ...]
    """The differences of the request from the lock, in words."""
    unasked: tuple[str, ...]
    """Kernels and adapters that the project's file does not name."""
    unproved: tuple[str, ...]
    """Kernels with a proof that does not count, because files changed since."""
    templates: Path | None = None
    """The folder of own templates that were given."""

    @property
    def current(self) -> bool:
        """Whether there is nothing to do."""
        wrong = any(file.verdict not in ("current", "allowed") for file in self.files)
        return not (wrong or self.request or self.unasked)

    @property
    def generator_note(self) -> str:
        """Say that another version wrote the folder; empty if it is the same."""
        if self.lock.generator.version == __version__:
            return ""
        return f"written by {self.lock.generator}, checked with fa4gen {__version__}"


def check_folder(
    folder: Path,
    templates: TemplateSet,
    *,
    asked: tuple[Request, Sequence[LoadedConfig]] | None = None,
    allowed: Sequence[str] = (),
) -> FolderVerdict:
    """Compare ``folder`` with its lock and with today's fa4gen; writes nothing.

    ``asked`` is what a project file wants of the folder; ``allowed`` are patterns (``*`` also
    matches slashes) of files that may be edited, missing or the user's own. Raises ConfigError for
    a folder that is not ours, or whose lock cannot be used; NotCurrentError for a folder of the
    project's that is not there yet.
    """
    if asked is not None and is_free(folder):
        why = "the project names this folder, and it is not there yet"
        raise NotCurrentError(Problem(why, "fa4gen vendor update writes it.", shown_path(folder)))
    lock = read_lock(folder)
    links = links_in(folder, lock.files)
    disk = {path: None if _linked(path, links) else read_file(folder, path) for path in lock.files}
    choices = locked_choices(lock, folder)
    planned = render_kernels(locked_configs(lock.kernels), lock.prefix, templates, choices)
    today: dict[str, bytes] = text_files(locked_request(lock), planned, templates)
    differences = [*_other_templates(lock, templates), *_differences(lock, asked)]
    files = [
        _allow(_verdict(path, lock, disk, today, links), allowed)
        for path in sorted({*lock.files, *today})
    ]
    files += [
        FileVerdict(path, "allowed", "foreign, which the project allows")
        if is_allowed
        else FileVerdict(path, "foreign", UNKNOWN)
        for path, is_allowed in foreign_files(
            folder, {*lock.files, LOCK_NAME}, lambda path: _allows(path, allowed)
        )
    ]
    hashes = {path: sha256(data) for path, data in disk.items() if data is not None}
    return FolderVerdict(
        folder,
        lock,
        tuple(files),
        tuple(
            kernel.name
            for kernel in planned
            if any(
                lock.files.get(f"kernels/{name}") != sha256(text)
                for name, text in kernel.rendered.files.items()
                if not name.endswith(".json")
            )
        ),
        tuple(differences),
        _unasked(lock, asked),
        tuple(
            kernel.name
            for kernel in lock.kernels
            if any(p.files_sha256 != proof_sha256(kernel.symbol, hashes) for p in kernel.proofs)
        ),
        templates.user_folder,
    )


def _verdict(
    path: str,
    lock: Lock,
    disk: Mapping[str, bytes | None],
    today: Mapping[str, bytes],
    links: Mapping[str, str],
) -> FileVerdict:
    recorded, data, wanted = lock.files.get(path), disk.get(path), today.get(path)
    if recorded is None:
        return FileVerdict(path, "stale", "today's fa4gen also writes this file", None, wanted)
    if link := _linked(path, links):
        return FileVerdict(path, "edited", f"behind a symbolic link, to {link}")
    if data is None:
        return FileVerdict(path, "missing", "not there", None, wanted)
    if sha256(data) != recorded:
        windows = sha256(data.replace(b"\r\n", b"\n")) == recorded
        why = "its line ends were changed to those of Windows" if windows else ""
        return FileVerdict(path, "edited", why or "changed since fa4gen wrote it", data, wanted)
    if path.startswith("cubins/"):
        return _of_cubin(path, data, disk)
    if data == wanted:
        return FileVerdict(path, "current", "", data, data)
    if wanted is None:
        return FileVerdict(path, "stale", "today's fa4gen does not write this file", data, None)
    return FileVerdict(path, "stale", "today's fa4gen writes it differently", data, wanted)


def _of_cubin(path: str, data: bytes, disk: Mapping[str, bytes | None]) -> FileVerdict:
    """Return the verdict on machine code as fa4gen wrote it, by the sources that it names."""
    sources = recorded_sources(data)
    found = {name: disk.get(f"kernels/{name}") for name in sources}
    changed = [n for n, text in found.items() if text is not None and sha256(text) != sources[n]]
    if not sources or changed:
        reason = f"compiled from another {' and '.join(changed)}" if sources else "of an older form"
        return FileVerdict(path, "stale", reason, data)
    return FileVerdict(path, "current", "", data, data)


def _allow(verdict: FileVerdict, patterns: Sequence[str]) -> FileVerdict:
    if verdict.verdict not in ("edited", "missing") or not _allows(verdict.path, patterns):
        return verdict
    reason = f"{verdict.verdict}, which the project allows"
    return FileVerdict(verdict.path, "allowed", reason, verdict.on_disk, verdict.rendered)


def _allows(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _linked(path: str, links: Mapping[str, str]) -> str:
    """Return the target of a link on the way to ``path``, "" without one."""
    parts = path.split("/")
    ways = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((links[way] for way in ways if way in links), "")


def _differences(
    lock: Lock, asked: tuple[Request, Sequence[LoadedConfig]] | None
) -> tuple[str, ...]:
    if asked is None:
        return ()
    request, loaded = asked
    found = []
    if request.prefix != lock.prefix:
        found.append(f"the prefix is {lock.prefix}, and {request.prefix} is asked for")
    lacking = [name for name in request.adapters if name not in lock.adapters]
    found += [f"the adapter {name} is asked for and not there" for name in lacking]
    if request.table != lock.table:
        found.append("the regions of the tuning tables changed")
    held = {kernel.name: kernel for kernel in lock.kernels}
    wanted = {item.config.name: item for item in loaded}
    found += [f"{name} is asked for and not there" for name in wanted if name not in held]
    found += [
        f"the config of {name} changed"
        for name, item in wanted.items()
        if name in held and _config_today(held[name]) != config_data(item.config)
    ]
    return tuple(found)


def _other_templates(lock: Lock, templates: TemplateSet) -> list[str]:
    """Say that the folder was made with own templates, where none are given."""
    words = made_with(lock)
    return [f"{words}, and none are given"] if words and templates.user_folder is None else []


def _unasked(lock: Lock, asked: tuple[Request, Sequence[LoadedConfig]] | None) -> tuple[str, ...]:
    if asked is None:
        return ()
    request, loaded = asked
    wanted = {*request.adapters, *(item.config.name for item in loaded)}
    held = [*(kernel.name for kernel in lock.kernels), *lock.adapters]
    return tuple(name for name in held if name not in wanted)


def _config_today(kernel: LockedKernel) -> dict[str, Any] | None:
    """Return a locked config as this version locks it; None where it is not possible any more."""
    try:
        return config_data(config_from_data(kernel.config, kernel.name))
    except ConfigError:
        return None
