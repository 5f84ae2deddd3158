"""Finds config files by what a user names: files, folders, globs, shipped configs."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.expectations import similar
from fa4gen.config.file_kinds import refuse_path
from fa4gen.config.paths import shown_path
from fa4gen.config.text import missing_file
from fa4gen.errors import ConfigError, Problem
from fa4gen.resources import data_root
from fa4gen.yaml_words import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SUFFIXES = (".yaml", ".yml")
TABLE_SUFFIXES = (".tuning.yaml", ".tuning.yml")
SET_SUFFIXES = (".set.yaml", ".set.yml", *TABLE_SUFFIXES)
"""Files that name kernels, next to the configs of a folder: not configs themselves."""
SWEEPS = "sweeps"
"""Folder of sweep files among the shipped configs: not configs themselves."""
TUNED = "tuned"
"""Folder of tables by ``fa4gen tune`` next to the shipped configs, with the tiles that they
name."""


def find_configs(arguments: Sequence[str | Path], base: Path | None = None) -> list[Path]:
    """Return the config files that ``arguments`` name, each once, in the order they were named.

    An argument is a file, a folder (searched through, except folders called ``sweeps``), a glob
    with * ? [ ] or **, or a shipped config: ``attention/sm_90a/d128_causal_bf16`` or the last part
    of it alone, where only one has it. A file of several configs stands for these, and FILE/NAME
    for one of them: see ``entries``. No arguments mean all shipped configs. A file in the folder
    ``base`` (the current one) takes precedence over a shipped config. Raises
    ConfigError for every argument that names nothing, or more than one shipped config by its last
    part.
    """
    if not arguments:
        return shipped_configs()
    found: dict[Path, Path] = {}
    problems: list[Problem] = []
    for argument in arguments:
        try:
            for path in _resolve(str(argument), base):
                found.setdefault(path.resolve(), path)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    return list(found.values())


def shipped_configs() -> list[Path]:
    """Return the configs that come with fa4gen, sorted."""
    from fa4gen.config.entries import entries_in

    root = data_root("configs")
    files = [path for path in _in_folder(root) if path.relative_to(root).parts[0] != TUNED]
    sweeps = sorted((root / SWEEPS).rglob("*.yaml"))
    found = [*files, *(case for sweep in sweeps for case in entries_in(sweep))]
    return sorted(found, key=lambda path: _name_of(path.relative_to(root)).split("/"))


def shipped_name(path: Path) -> str:
    """Return the name of a shipped config: attention/sm_90a/d128_causal_bf16; "" for others."""
    try:
        relative = path.resolve().relative_to(data_root("configs").resolve())
    except ValueError:
        return ""
    return _name_of(relative)


def portable_name(path: Path) -> str:
    """Return what names a config on any machine: a shipped one's name, a file without its folders.

    The configs of a checkout have the names of those of the fa4gen that runs, which may be another
    copy. A relative path without a suffix is such a name already.
    """
    if name := shipped_name(path) or _name_in_checkout(path):
        return name
    return path.name if path.suffix or path.is_absolute() else path.as_posix()


def _name_in_checkout(path: Path) -> str:
    """Return the name of the shipped config at the same place below a folder configs/; or ""."""
    *folders, found = path.resolve().parts
    if "configs" not in folders:
        return ""
    first = len(folders) - folders[::-1].index("configs")
    relative = Path(*folders[first:], found)
    place = data_root("configs") / relative
    return _name_of(relative) if place.is_file() or place.parent.is_file() else ""


def _name_of(relative: Path) -> str:
    """Return the name of the shipped config at a path below the configs; "" for others.

    A case of sweeps/attention/sm_90a/FILE is called as if it stood in attention/sm_90a; the sweep
    itself, as the file of cases without names, is none.
    """
    first, *others = relative.parts
    if first == SWEEPS:
        is_case = relative.parent.suffix
        return "/".join((*others[:-2], others[-1])) if is_case else ""
    return "" if first == TUNED else relative.with_suffix("").as_posix()


def _resolve(argument: str, base: Path | None) -> list[Path]:
    if not argument or "\0" in argument:
        raise ConfigError(Problem(f"{argument!r} names no config", "Give a file or a folder."))
    from fa4gen.config.entries import entries_in, find_entry

    path = base / argument if base else Path(argument)
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return entries_in(path) or [path]
    if entry := find_entry(path):
        return [entry]
    if glob.has_magic(argument):
        return _matches(f"{Path(glob.escape(str(base))) / argument}" if base else argument)
    shipped = _shipped(argument)
    if shipped:
        return shipped
    raise ConfigError(_nothing_called(argument, path))


def _folder(path: Path) -> list[Path]:
    configs = _in_folder(path)
    if not configs:
        raise ConfigError(
            refuse_path(path, "config")
            or Problem(
                "there is no config in this folder",
                f"Configs end with {' or '.join(SUFFIXES)}; `fa4gen list` shows the shipped ones.",
                shown_path(path),
            )
        )
    return configs


def _matches(pattern: str) -> list[Path]:
    # Path.glob takes no absolute pattern.
    paths = sorted(Path(match) for match in glob.glob(pattern, recursive=True))  # noqa: PTH207
    configs = [
        config
        for path in paths
        for config in (_in_folder(path) if path.is_dir() else [path])
        if config.suffix in SUFFIXES and not config.name.endswith(SET_SUFFIXES)
    ]
    if not configs:
        what = "matches no config" if paths else "matches no file"
        raise ConfigError(
            Problem(
                f"{pattern!r} {what}",
                f"Configs end with {' or '.join(SUFFIXES)}; ** goes through folders.",
            )
        )
    return configs


def _shipped(argument: str) -> list[Path]:
    """Return the shipped configs called ``argument``: a whole name, a folder, or a last part."""
    wanted = argument.strip("/")
    for suffix in SUFFIXES:
        wanted = wanted.removesuffix(suffix)
    root = data_root("configs")
    names = {_name_of(path.relative_to(root)): path for path in shipped_configs()}
    if wanted in names:
        return [names[wanted]]
    inside = [path for name, path in names.items() if name.startswith(f"{wanted}/")]
    if inside:
        return inside
    same_stem = [path for name, path in names.items() if name.endswith(f"/{wanted}")]
    if len(same_stem) > 1:
        raise ConfigError(
            Problem(
                f"{argument!r} names {len(same_stem)} shipped configs",
                f"Say which: {listing([shipped_name(path) for path in same_stem])}.",
            )
        )
    return same_stem


def _nothing_called(argument: str, path: Path) -> Problem:
    problem = missing_file(path)
    names = [shipped_name(shipped) for shipped in shipped_configs()]
    stems = [name.rpartition("/")[2] for name in names]
    candidates = [*names, *(stem for stem in stems if stems.count(stem) == 1)]
    near = [] if problem.remedy.startswith("Did") else similar(Path(argument).stem, candidates)
    remedy = f"Did you mean the shipped config {near[0]}?" if near else problem.remedy
    return Problem(
        "no such file, folder or shipped config",
        remedy or "`fa4gen list` shows the shipped configs.",
        problem.file,
    )


def _in_folder(folder: Path) -> list[Path]:
    """Return the configs below ``folder``, sorted; hidden folders and sweeps are left out."""
    return sorted(_walk(folder))


def _walk(folder: Path) -> Iterable[Path]:
    from fa4gen.config.entries import configs_of

    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != SWEEPS and not name.startswith(".")]
        for name in files:
            if name.endswith(SUFFIXES) and not name.endswith(SET_SUFFIXES):
                path = Path(where, name)
                if path.is_file():  # no broken link or pipe
                    holds_others = not {SWEEPS, TUNED}.isdisjoint(path.parts)
                    yield from configs_of(path) if holds_others else [path]


def find_sweep(argument: str) -> Path:
    """Return the sweep file that ``argument`` names: a file, or the name of a shipped sweep.

    Raises ConfigError when there is none.
    """
    path = Path(argument)
    if path.exists() or "\0" in argument:
        return path
    shipped = {file.stem: file for file in sorted((data_root("configs") / SWEEPS).rglob("*.yaml"))}
    if argument in shipped:
        return shipped[argument]
    near = similar(argument, shipped)
    if near:
        remedy = f"Did you mean the shipped sweep {near[0]}?"
    else:
        remedy = missing_file(path).remedy or f"Shipped sweeps: {', '.join(shipped)}."
    raise ConfigError(Problem("no such file or shipped sweep", remedy, shown_path(path)))
