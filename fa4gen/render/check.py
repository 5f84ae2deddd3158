"""Compares generated files on disk with what their configs render to today; writes nothing."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem
from fa4gen.render.manifest import read_manifest, sha256, with_proof_on_disk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fa4gen.render.render import RenderedKernel

Verdict = Literal["current", "stale", "edited", "missing", "orphan"]
KERNEL_FILES = (".cu", "_barriers.h", "_device.cuh", ".json")
"""The endings of a kernel's files after its name."""


@dataclass(frozen=True)
class FileVerdict:
    """The state of one generated file."""

    path: Path
    verdict: Verdict
    kernel: str
    """``arch/name`` of the kernel that it belongs to."""
    reason: str = ""
    rendered: str | None = None
    """The text that it should have; None for orphans."""
    on_disk: bytes | None = None
    prunable: bool = False
    """An orphan of a name that fa4gen gives, exactly as a manifest recorded it: deleting it loses
    nothing."""
    is_hash: bool = False
    """Not a file but the kernel's line in the file of hashes at ``path``."""

    @property
    def place(self) -> str:
        """The file as messages call it, with the kernel where it is a line of hashes."""
        return f"{shown_path(self.path)}: {self.kernel}" if self.is_hash else shown_path(self.path)

    def diff(self) -> str:
        """Return the unified diff from the file on disk to what its config renders to today."""
        from difflib import unified_diff

        old = (self.on_disk or b"").decode("utf-8", errors="replace")
        new = self.rendered or ""
        name = shown_path(self.path)
        lines = unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            f"{name} (on disk)" if self.on_disk is not None else "/dev/null",
            f"{name} (rendered)" if self.rendered is not None else "/dev/null",
        )
        return "".join(
            line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
            for line in lines
        )


def kernel_verdicts(rendered: RenderedKernel, out_dir: Path) -> list[FileVerdict]:
    """Return the verdict of each file of one kernel, in the order of its files.

    current: the bytes that its config renders to; missing: not there; stale: as its manifest
    recorded it, but no longer what the config renders to; edited: neither.
    """
    folder = out_dir / rendered.folder
    manifest_name = f"{rendered.name}.json"
    record = read_manifest(folder / manifest_name)
    verdicts = []
    for name, text in rendered.files.items():
        path = folder / name
        data = read_bytes(path)
        if name == manifest_name and data not in (None, text.encode()):
            text = with_proof_on_disk(text, data)
        verdict: Verdict
        if data is None:
            verdict, reason = "missing", "not there"
        elif data == text.encode():
            verdict, reason = "current", ""
        elif record is None:
            verdict = "edited"
            reason = (
                "not as fa4gen wrote it"
                if name == manifest_name
                else f"not what its config renders to, and no intact {manifest_name} records it"
            )
        elif name == manifest_name or record.files.get(name) == sha256(data):
            verdict, reason = "stale", "its config, the templates or fa4gen changed"
        else:
            verdict, reason = "edited", "changed since fa4gen wrote it"
        verdicts.append(FileVerdict(path, verdict, rendered.folder, reason, text, data))
    return verdicts


def find_orphans(
    rendered: Sequence[RenderedKernel], out_dir: Path, *, are_all: bool
) -> list[FileVerdict]:
    """Return the files in the folders of ``rendered`` that no config renders to, sorted by path.

    Where these are all kernels of ``out_dir``, also those in the folders of others. Files whose
    names begin with a dot are left alone.
    """
    known = {kernel.folder: set(kernel.files) for kernel in rendered}
    return [
        orphan
        for folder in _kernel_folders(out_dir)
        if are_all or _kernel(folder) in known
        for orphan in _folder_orphans(folder, known.get(_kernel(folder), set()))
    ]


def read_bytes(path: Path) -> bytes | None:
    """Return the file's bytes, None if it does not exist; ConfigError when unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            # reading it might wait for ever, and writing would put a file in its place
            what = "a pipe or device is here, not a file"
            raise ConfigError(Problem(what, "Choose another name.", file=shown_path(path)))
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(
            Problem(
                f"cannot read: {error.strerror}",
                "Move it, or choose another folder with -o/--out.",
                file=shown_path(path),
            )
        ) from error


def _kernel_folders(out_dir: Path) -> Iterator[Path]:
    for arch in _sorted_folders(out_dir):
        if arch.name.startswith("sm_"):
            yield from _sorted_folders(arch)


def _sorted_folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _kernel(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def _folder_orphans(folder: Path, rendered_names: set[str]) -> list[FileVerdict]:
    manifest_name = f"{folder.name}.json"
    record = read_manifest(folder / manifest_name)
    given = {f"{folder.name}{end}" for end in KERNEL_FILES}
    files = dict(record.files) if record else {}
    # a manifest may be anybody's: it says nothing of other files
    recorded = {name: digest for name, digest in files.items() if name in given}
    contents = {
        path.name: read_bytes(path) or b""
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }
    intact = {name for name, data in contents.items() if recorded.get(name) == sha256(data)}
    if record and all(name in intact for name in recorded if name in contents):
        intact.add(manifest_name)  # kept while it is needed to recognise an edited file
    why = f"no config renders to it{' any more' if not rendered_names else ''}"
    return [
        FileVerdict(
            folder / name,
            "orphan",
            _kernel(folder),
            why if name in intact else f"{why}; {_why_kept(name, recorded)}",
            on_disk=data,
            prunable=name in intact,
        )
        for name, data in contents.items()
        if name not in rendered_names
    ]


def _why_kept(name: str, recorded: dict[str, str]) -> str:
    if name in recorded:
        return "changed since fa4gen wrote it"
    return "no manifest records it"
