"""A config file with what it builds on: its base (``extends``) below, ``--set`` above it.

Each layer gives whole values of keys; places say which file or option a value came from.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fa4gen.config.entries import entry_of, read_tile, unknown_entry
from fa4gen.config.find import find_configs
from fa4gen.config.paths import shown_path
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import Document, KeyPath, Place, read_document
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.config.entries import Entry
    from fa4gen.config.settings import Setting

_T = TypeVar("_T")
EXTENDS = "extends"
_NOT_INHERITED = ("name",)
"""The key of a base that is not inherited: two kernels cannot have one name."""
_NO_PLACE = Place(0, 0, 0, 0)


class Origin(NamedTuple):
    """The origin of a value that the config's own file does not give."""

    file: str = ""
    """The base, as messages name it."""
    option: str = ""


@dataclass(frozen=True)
class Layers:
    """A config as its layers give it, not yet validated."""

    document: Document
    """With the keys of all layers, without ``extends``."""
    files: tuple[Path, ...]
    """The config file, then its base."""
    origins: Mapping[KeyPath, Origin] = field(default_factory=dict)
    text: str = ""
    """YAML that gives the same keys on its own: the file's own text if it is the only layer."""

    def located(self, problem: Problem) -> Problem:
        """Return ``problem`` with the file or option that its key's value came from.

        Those of the documents themselves have their place already.
        """
        if problem in self.document.problems:
            return problem
        return relocated(problem, self.origins)


def read_layers(path: Path, settings: Sequence[Setting] = ()) -> Layers:
    """Read the config file at ``path``, its base and ``settings``.

    Raises ConfigError for what cannot be read, and for a base that is not one config without a
    base of its own; other problems are in the document.
    """
    own = _read(path)
    document, files, file = own.document, own.files, shown_path(own.files[0])
    if not isinstance(document.value, dict) or (EXTENDS not in document.value and not settings):
        return own
    origins = dict(own.origins)
    comments = []
    if EXTENDS in document.value:
        base_path = _find_base(document, files[0], file)
        base = _read(base_path)
        above = _as_base(base.document, document, base_path, file)
        document = _over(document, above, origins, base.files[0])
        files += base.files
        comments.append(f"extends {base_path.name}")
    for setting in settings:
        document = _set(document, setting, origins)
        comments.append(setting.option)
    return Layers(document, files, origins, standing_alone(document, path, comments))


def _read(path: Path) -> Layers:
    """Return the config at ``path`` without what it extends: a file, or an entry of one."""
    entry = entry_of(path)
    if entry is None:
        text = read_text(path)
        return Layers(read_document(text, shown_path(path)), (path,), text=text)
    tile = read_tile(entry)
    if tile is None:
        return _read_case(path, entry)
    text = standing_alone(tile, path, [f"a tile of {entry.file.name}"])
    return Layers(tile, (entry.file,), text=text)


def _read_case(path: Path, entry: Entry) -> Layers:
    """Return a case that has a name in its sweep: its own keys over those of the sweep's base."""
    sweep = _read_sweep(read_text(entry.file, "sweep"), shown_path(entry.file))
    keys = sweep.value if isinstance(sweep.value, dict) else {}
    cases = keys.get("include")
    names = (
        [one.get("name") for one in cases if isinstance(one, dict)]
        if isinstance(cases, list)
        else []
    )
    if entry.name not in names or "matrix" in keys:
        raise ConfigError(unknown_entry(entry, "case", [str(name) for name in names if name]))
    own = _without_name(_part(sweep, ("include", names.index(entry.name))))
    origins: dict[KeyPath, Origin] = {}
    files: tuple[Path, ...] = (entry.file,)
    base = _part(sweep, ("base",))
    if isinstance(base.value, str):
        base_path = _find_base(sweep, entry.file, shown_path(entry.file), "base")
        if entry_of(base_path):
            place = sweep.places["base",]
            what = "the base of a case with a name is a file, not an entry of one"
            file = shown_path(entry.file)
            raise ConfigError(
                Problem(what, "Name a file.", file, place.value_line, place.value_column, "base")
            )
        layers = _read(base_path)
        base, files = layers.document, (*files, *layers.files)
    document = _over(own, base, origins, files[-1])
    text = standing_alone(document, path, [f"a case of {entry.file.name}"])
    return Layers(document, files, origins, text)


@lru_cache(maxsize=8)
def _read_sweep(text: str, file: str) -> Document:
    """Return the document of a sweep, which is read once for all its cases."""
    return read_document(text, file)


def _part(document: Document, at: KeyPath) -> Document:
    """Return the part of ``document`` at a path that it has, as a document."""
    value = document.value
    for key in at:
        value = value.get(key) if isinstance(value, dict) else value[key]
    length = len(at)

    def below(values: Mapping[KeyPath, _T]) -> dict[KeyPath, _T]:
        return {path[length:]: one for path, one in values.items() if path[:length] == at}

    unreadable = frozenset(path[length:] for path in document.unreadable if path[:length] == at)
    return Document(
        value, below(document.places), below(document.notes), document.problems, unreadable
    )


def _without_name(document: Document) -> Document:
    value = {key: one for key, one in document.value.items() if key != "name"}
    return replace(document, value=value)


def set_keys(path: Path, settings: Sequence[Setting]) -> Layers:
    """Return a config of ``settings`` alone, which ``path`` is the name of."""
    document = Document({}, {}, {}, (), frozenset())
    origins: dict[KeyPath, Origin] = {}
    for setting in settings:
        document = _set(document, setting, origins)
    return Layers(document, (path,), origins)


def relocated(problem: Problem, origins: Mapping[KeyPath, Origin]) -> Problem:
    """Return ``problem`` with the file or option that its key's value came from."""
    origin = origin_of(_path_of(problem.key), origins)
    if origin is None:
        return problem
    if origin.option:
        return replace(problem, option=origin.option, line=0, column=0)
    return replace(problem, file=origin.file)


def origin_of(path: KeyPath, origins: Mapping[KeyPath, Origin]) -> Origin | None:
    """Return the origin of the value at ``path``; None for the config's own file."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return None


def _find_base(document: Document, path: Path, file: str, key: str = EXTENDS) -> Path:
    """Return the base that ``key`` names: a path relative to the file's folder, or shipped."""
    base = document.value[key]
    place = document.places[key,]

    def refusal(message: str, remedy: str = "") -> ConfigError:
        line, column = place.value_line, place.value_column
        return ConfigError(Problem(message, remedy, file, line, column, key))

    if not isinstance(base, str) or not base:
        raise refusal(
            f"{key} names one config: the path of a file, or a shipped name",
            f"Write for example {key}: d128_causal_bf16.",
        )
    try:
        found = find_configs([base], path.parent)
    except ConfigError as error:
        (problem,) = error.problems
        named = f" ({problem.file})" if problem.file else ""
        raise refusal(f"{key}: {problem.message}{named}", problem.remedy) from error
    if len(found) != 1:
        raise refusal(f"{key}: {base} names {len(found)} configs", "Name one.")
    if found[0].resolve() == path.resolve():
        raise refusal("a config cannot extend itself", "Name another config.")
    short = Path(os.path.normpath(found[0]))  # another file where a folder is a link
    return short if short.resolve() == found[0].resolve() else found[0]


def _as_base(base: Document, document: Document, base_path: Path, file: str) -> Document:
    place = document.places[EXTENDS,]
    shown = shown_path(base_path)
    if not isinstance(base.value, dict):
        what, remedy = f"extends: {shown} is not a config", "Name a config."
    elif EXTENDS in base.value:
        what = f"extends: {shown} extends another config itself, and there is one level only"
        remedy = "Name that config, or write the keys out."
    else:
        return base
    raise ConfigError(
        *base.problems,
        Problem(what, remedy, file, place.value_line, place.value_column, EXTENDS),
    )


def _over(
    document: Document, base: Document, origins: dict[KeyPath, Origin], base_path: Path
) -> Document:
    """Return ``document`` without ``extends``, with the keys of ``base`` that it does not give."""
    own = {key: value for key, value in document.value.items() if key != EXTENDS}
    inherited = {
        key: value
        for key, value in base.value.items()
        if key not in own and key not in _NOT_INHERITED
    }
    origins.update({(key,): Origin(file=shown_path(base_path)) for key in inherited})

    def merged(of_own: Mapping[KeyPath, Any], of_base: Mapping[KeyPath, Any]) -> dict[KeyPath, Any]:
        return {path: v for path, v in of_base.items() if path and path[0] in inherited} | {
            path: v for path, v in of_own.items() if path[:1] != (EXTENDS,)
        }

    return Document(
        {**inherited, **own},
        merged(document.places, base.places),
        merged(document.notes, base.notes),
        (*document.problems, *base.problems),
        frozenset(path for path in base.unreadable if path[:1] and path[0] in inherited)
        | document.unreadable,
    )


def _set(document: Document, setting: Setting, origins: dict[KeyPath, Origin]) -> Document:
    """Return ``document`` with the value of ``setting`` in place of what is there."""
    path: KeyPath = _first_replaced(document.value, setting.path)

    def outside(values: Mapping[KeyPath, Any]) -> dict[KeyPath, Any]:
        return {key: value for key, value in values.items() if key[: len(path)] != path}

    kept = outside(origins)
    origins.clear()
    origins.update(kept)
    origins[path] = Origin(option=setting.option)
    notes = outside(document.notes)
    if setting.note:
        notes[setting.path] = setting.note
    return Document(
        _with_value(document.value, setting.path, setting.value),
        {**outside(document.places), path: _NO_PLACE, setting.path: _NO_PLACE},
        notes,
        document.problems,
        frozenset(key for key in document.unreadable if key[: len(path)] != path),
    )


def _first_replaced(values: Any, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the beginning of ``path`` below which nothing of ``values`` remains."""
    for length in range(1, len(path)):
        values = values.get(path[length - 1])
        if not isinstance(values, dict):
            return path[:length]
    return path


def _with_value(values: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    inside = values if isinstance(values, dict) else {}
    return {**inside, path[0]: _with_value(inside.get(path[0]), path[1:], value)}


def _path_of(key: str) -> KeyPath:
    """Return the keys of a problem's ``key``, without the indices of lists."""
    return tuple(re.sub(r"\[\d+\]", "", part) for part in key.split(".")) if key else ()


def standing_alone(document: Document, path: Path, comments: Sequence[str]) -> str:
    """Return the YAML of ``document`` alone, under a comment that says where it is from."""
    import yaml

    dumped: str = yaml.safe_dump(document.value, sort_keys=False, allow_unicode=True)
    comment = " ".join(f"{path.name}: {'; '.join(comments)}".split())
    return f"# {comment}\n{dumped}"
