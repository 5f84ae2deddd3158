"""Writes rendered kernels to disk: all files of a run or none, and no edit overwritten."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, NotCurrentError, Problem
from fa4gen.render.check import FileVerdict, kernel_verdicts, read_bytes
from fa4gen.temporary import temporary_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.render.render import RenderedKernel

Action = Literal["created", "updated", "unchanged", "pruned"]


@dataclass(frozen=True)
class FileOutcome:
    """The action on one file, done or planned."""

    path: Path
    action: Action
    verdict: FileVerdict
    """The file as it was found."""


def plan_writes(
    kernels: Sequence[RenderedKernel],
    out_dir: Path,
    force: bool = False,
    *,
    see: str = "fa4gen check --diff",
) -> list[list[FileOutcome]]:
    """Return the outcome of writing each of ``kernels``; writes nothing.

    Raises NotCurrentError, with all of them, when files would be overwritten that are not as
    fa4gen wrote them, unless ``force``; ``see`` is the command that shows the edits.
    """
    verdicts = [kernel_verdicts(kernel, out_dir) for kernel in kernels]
    edited = [v for of_kernel in verdicts for v in of_kernel if v.verdict == "edited"]
    if edited and not force:
        raise NotCurrentError(
            *(
                Problem(
                    f"not overwritten: {verdict.reason}",
                    f"See the edit with `{see}`. Keep it in a template or under another name, then "
                    "overwrite the file with --force.",
                    file=shown_path(verdict.path),
                )
                for verdict in edited
            )
        )
    return [[FileOutcome(v.path, _action(v), v) for v in of_kernel] for of_kernel in verdicts]


def apply_writes(planned: Iterable[Sequence[FileOutcome]]) -> None:
    """Carry out what ``plan_writes`` returned: see ``write_texts``."""
    changed = {
        outcome.path: outcome.verdict.rendered
        for outcomes in planned
        for outcome in outcomes
        if outcome.action != "unchanged" and outcome.verdict.rendered is not None
    }
    write_texts(changed)


def write_text(path: Path, text: str) -> None:
    """Put ``text`` at ``path`` by a rename, overwriting; ConfigError when it cannot be written."""
    write_texts({path: text})


def write_texts(texts: Mapping[Path, str]) -> None:
    """Put every text at its path: see ``write_files``."""
    write_files({path: text.encode() for path, text in texts.items()})


def write_files(files: Mapping[Path, bytes]) -> None:
    """Put every content at its path by a rename, overwriting; other files stay.

    Raises ConfigError, with all files as they were, where one cannot be written, as on a full disk.
    """
    changes = {path: content for path, content in files.items() if read_bytes(path) != content}
    made: list[Path] = []
    beside: dict[Path, Path] = {}
    try:
        for path, content in changes.items():
            _make_folders(path.parent, made)
            beside[path] = temporary_path(path)
            beside[path].write_bytes(content)
        # Everything is on disk: from here on there are only renames, a kernel's manifest last.
        for path, temporary in beside.items():
            temporary.replace(path)
    except BaseException as error:  # an interruption, too, leaves nothing
        for temporary in beside.values():
            with suppress(OSError):
                temporary.unlink()
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise unwritable(error, next(reversed(beside), next(iter(changes))).parent) from error
        raise


def unwritable(error: OSError, path: Path) -> ConfigError:
    """Return the error for a path that cannot be written."""
    return ConfigError(
        Problem(
            f"cannot write: {error.strerror or error}",
            "Choose a folder that you can write to with -o/--out.",
            file=shown_path(Path(error.filename) if isinstance(error.filename, str) else path),
        )
    )


def prune(orphans: Iterable[FileVerdict]) -> list[FileOutcome]:
    """Delete the orphans that are exactly as a manifest recorded them, and folders left empty.

    The others stay. Raises ConfigError when a file cannot be deleted.
    """
    outcomes = plan_prune(orphans)
    for outcome in outcomes:
        try:
            outcome.path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(error, outcome.path) from error
    for folder in {outcome.path.parent for outcome in outcomes}:
        with suppress(OSError):  # not empty: the user has files there
            folder.rmdir()
            folder.parent.rmdir()
    return outcomes


def plan_prune(orphans: Iterable[FileVerdict]) -> list[FileOutcome]:
    """Return the files that ``prune`` would delete."""
    return [FileOutcome(orphan.path, "pruned", orphan) for orphan in orphans if orphan.prunable]


def _action(verdict: FileVerdict) -> Action:
    if verdict.verdict == "current":
        return "unchanged"
    return "created" if verdict.verdict == "missing" else "updated"


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Create ``folder`` and its parents; append those that were not there to ``made``."""
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            path.mkdir(exist_ok=True)
            made.append(path)
