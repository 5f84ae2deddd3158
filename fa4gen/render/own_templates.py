"""A folder of own templates: which shipped ones it overrides, what it must not hold, its hash.

A file overrides the shipped template of the same name, which is its path in the folder; any other
file must be one that these include or import, by its whole name. Names that begin with a dot, and
copies that editors leave (``name~``), are not looked at.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem
from fa4gen.resources import data_root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ENDING = ".j2"
MOST_NAMED = 5
"""Files that override nothing, of which a message names the first."""


def shipped_templates() -> dict[str, Path]:
    """Return the files of the shipped templates by name, sorted."""
    root = data_root("templates")
    files = (path for path in root.rglob(f"*{ENDING}") if path.is_file())
    return dict(sorted((path.relative_to(root).as_posix(), path) for path in files))


def overriding_files(folder: Path) -> dict[str, Path]:
    """Return the files of ``folder`` that override a shipped template, by its name, sorted."""
    named = ((name, folder / name) for name in shipped_templates())
    return {name: path for name, path in named if path.is_file()}


def folder_sha256(folder: Path | None) -> str:
    """Hash the names and contents of ``folder``'s files, for keys of results; "" for None."""
    if folder is None:
        return ""
    files = sorted((overriding_files(folder) | _files(folder)).items())
    lines = [f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for name, path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def check_folder(folder: Path) -> None:
    """Refuse a folder of templates that is none, or holds a file that has no effect.

    Such a file overrides nothing, and none that does includes it. Raises ConfigError, which names
    the first such files, each with the nearest template.
    """
    shipped = data_root("templates")
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(
            Problem(
                f"the template folder {what}",
                "Give --templates, or templates in the project's file, a folder that mirrors the "
                f"shipped one; files that it lacks are taken from {shown_path(shipped)}.",
                file=shown_path(folder),
            )
        )
    files = _files(folder)
    others = {name: path for name, path in files.items() if not (shipped / name).is_file()}
    overriding = [path for name, path in files.items() if name not in others]
    unknown = _not_included(others, overriding)
    if not unknown:
        return
    problems = [
        Problem(
            "the file overrides no template, and none of yours includes it",
            f"{nearest(name)} `fa4gen templates list` shows all.",
            file=shown_path(path),
        )
        for name, path in list(unknown.items())[:MOST_NAMED]
    ]
    if len(unknown) > MOST_NAMED:
        what = f"{len(unknown) - MOST_NAMED} more of its files override no template"
        problems.append(Problem(what, file=shown_path(folder)))
    raise ConfigError(*problems)


def nearest(name: str) -> str:
    """Return the question whether the template of the nearest name is meant."""
    import difflib

    names = list(shipped_templates())
    last = name.rpartition("/")[2].removesuffix(ENDING)
    alike = [one for one in names if one.rpartition("/")[2].removesuffix(ENDING) == last]
    (near,) = difflib.get_close_matches(name, alike or names, n=1, cutoff=0.0)
    return f"Did you mean {near}?"


def _not_included(files: Mapping[str, Path], used: Sequence[Path]) -> dict[str, Path]:
    """Return those of ``files`` that no text of ``used`` names, directly or by way of others."""
    left = dict(files)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in used]
    while left and texts:
        text = texts.pop()
        for name in [name for name in left if f'"{name}"' in text or f"'{name}'" in text]:
            texts.append(left.pop(name).read_text(encoding="utf-8", errors="replace"))
    return left


def _files(folder: Path) -> dict[str, Path]:
    """Return the files below ``folder`` that are meant as templates by name, sorted."""
    found = {path.relative_to(folder): path for path in sorted(folder.rglob("*"))}
    return {
        name.as_posix(): path
        for name, path in found.items()
        if path.is_file() and not _is_ignored(name.parts)
    }


def _is_ignored(parts: Sequence[str]) -> bool:
    return any(part.startswith(".") for part in parts) or parts[-1].endswith("~")
