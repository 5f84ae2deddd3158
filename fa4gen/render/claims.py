"""The kernels of an output folder that belong to configs outside of a command.

Generated files do not say where their config file is. So before kernels are called orphans, the
config files of the project are searched: a kernel of one of them is not an orphan.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.find import SUFFIXES
from fa4gen.config.text import MAX_BYTES
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

MAX_ENTRIES = 50_000
"""Files and folders that are looked through: some hundred milliseconds."""


@dataclass(frozen=True)
class Claims:
    """Configs outside the command that render to kernels of its output folder."""

    configs: Mapping[str, Path] = field(default_factory=dict)
    """By ``arch/name`` of the kernel."""
    complete: bool = True
    """Whether all config files could be looked through."""


def find_claims(kernels: Collection[str], root: Path, more: Iterable[Path] = ()) -> Claims:
    """Return those of ``kernels`` (``arch/name``) that a config file renders to.

    Config files are those of ``more``, and all below ``root`` that are not in hidden folders. A
    file with an invalid config claims the kernels of its name.
    """
    if not kernels:
        return Claims()
    names = {kernel.rpartition("/")[2] for kernel in kernels}
    found: dict[str, Path] = {}
    for path in more:
        _claim(path, kernels, names, found)
    entries = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            return Claims(found, complete=False)
        for name in sorted(files):
            if name.endswith(SUFFIXES):
                _claim(Path(folder, name), kernels, names, found)
    return Claims(found)


def _claim(
    path: Path, kernels: Collection[str], names: Collection[str], found: dict[str, Path]
) -> None:
    for kernel in _kernels_of(path, kernels, names):
        found.setdefault(kernel, path)


def _kernels_of(path: Path, kernels: Collection[str], names: Collection[str]) -> Iterator[str]:
    from fa4gen.config.entries import entries_in
    from fa4gen.config.load import load_config

    if path.stem not in names and not _mentions(path, names):
        return
    if cases := [case for case in entries_in(path) if case.name in names]:
        for case in cases:
            yield from _kernels_of(case, kernels, names)
        return
    try:
        config = load_config(path).config
    except ConfigError:
        yield from (kernel for kernel in kernels if kernel.endswith(f"/{path.stem}"))
        return
    kernel = f"{config.arch}/{config.name}"
    if kernel in kernels:
        yield kernel


def _mentions(path: Path, names: Collection[str]) -> bool:
    """Whether the file could give one of ``names`` as its kernel's name."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return False
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return False
    return "name" in text and any(name in text for name in names)
