"""Config files to validated configs; all problems of a file at once, each with its place."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.config.find import find_configs
from fa4gen.config.json_schema import config_schema, file_schema
from fa4gen.config.layers import EXTENDS, Origin, origin_of, read_layers, relocated
from fa4gen.config.paths import shown_path
from fa4gen.config.yaml_positions import Document, KeyPath, Place
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.config.layers import Layers
    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.kernel_config import KernelConfig

__all__ = [
    "LoadedConfig",
    "config_from_data",
    "config_schema",
    "find_configs",
    "load_config",
    "load_mapping",
    "locate",
    "validate_document",
]

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class LoadedConfig:
    """A valid config and the places of its keys in the file that it came from."""

    config: KernelConfig
    path: Path
    """The file as it was named; for a config that came from no file, a name for messages."""
    text: str
    """YAML that gives the config on its own: the file's text where it extends no other."""
    positions: Mapping[KeyPath, Place]
    """Line and column of every key and value that is given; keys left out are not in it."""
    origins: Mapping[KeyPath, Origin] = field(default_factory=dict)
    """Origins of values that the file itself does not give."""
    files: tuple[Path, ...] = ()
    """The files that were read."""

    @property
    def file(self) -> Path:
        """The file that it stands in, which for an entry of one is not ``path``."""
        return self.files[0] if self.files else self.path

    def place_of(self, key: str) -> str:
        """Return the place of ``key``: ``file:line``, ``--set key=value`` or ""."""
        position = self.positions.get((key,))
        if position is None:
            return ""
        origin = origin_of((key,), self.origins) or Origin()
        return origin.option or f"{origin.file or shown_path(self.file)}:{position.line}"


def load_config(path: str | Path, settings: Sequence[Setting] = ()) -> LoadedConfig:
    """Read and validate the config file at ``path``, with the keys of ``settings`` in its place.

    A config without ``name`` is called like its file. Raises ConfigError with all problems.
    """
    path = Path(path)
    return load_layers(read_layers(path, settings), path)


def load_layers(layers: Layers, path: Path) -> LoadedConfig:
    """Validate ``layers``, which messages call ``path``; see ``load_config``."""
    try:
        config = validate_document(layers.document, shown_path(layers.files[0]), path.stem)
    except ConfigError as error:
        raise ConfigError(*map(layers.located, error.problems)) from error
    document = layers.document
    return LoadedConfig(config, path, layers.text, document.places, layers.origins, layers.files)


def load_mapping(data: Mapping[str, Any], name: str, path: Path | None = None) -> LoadedConfig:
    """Validate a config given as plain data; ``name`` is its name where it has none.

    ``path`` is what messages call it. Raises ConfigError; its problems have no line.
    """
    import yaml

    file = shown_path(path) if path else ""
    if EXTENDS in data:
        what = "extends is a key of files: this config is plain data"
        raise ConfigError(Problem(what, "Write the keys out.", file, key=EXTENDS))
    config = config_from_data(data, name, file)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # tuning loads hundreds of tiles
    text = yaml.dump(dict(data), Dumper=dumper, sort_keys=False)
    return LoadedConfig(config, path or Path(name), text, {})


def config_from_data(data: Mapping[str, Any], name: str, file: str = "") -> KernelConfig:
    """Validate plain data without positions; see ``load_mapping``. Raises ConfigError."""
    return validate_document(Document(dict(data), {}, {}, (), frozenset()), file, name)


def locate(error: ConfigError, loaded: LoadedConfig) -> ConfigError:
    """Return ``error`` with file, line and column added to the problems that name only a key.

    A key that the file leaves to its default is placed at no line.
    """
    return ConfigError(*(_located(problem, loaded) for problem in error.problems))


def _located(problem: Problem, loaded: LoadedConfig) -> Problem:
    if problem.file:
        return problem
    from fa4gen.config.schema_errors import place_of

    path = tuple(problem.key.split(".")) if problem.key else ()
    line, column = place_of(path, loaded.positions, value=True)
    placed = dataclasses.replace(problem, file=shown_path(loaded.file), line=line, column=column)
    return relocated(placed, loaded.origins)


def validate_document(document: Document, file: str, default_name: str) -> KernelConfig:
    """Return the config in ``document``; ``default_name`` is its name where it has none.

    ``file`` is what messages call the document. Raises ConfigError with the problems of the
    document and of its content, from top to bottom.
    """
    from fa4gen.designs.registry import models_of
    from fa4gen.strict import ModelError

    data = document.value
    if not isinstance(data, dict):
        raise ConfigError(*document.problems, _not_a_mapping(data, file))
    problems = list(document.problems)
    is_named = "name" in data
    if not is_named and _NAME.fullmatch(default_name):
        data = {**data, "name": default_name}
    elif not is_named:
        problems.append(_no_name(default_name, file))
        data = {**data, "name": "unnamed"}
    document = dataclasses.replace(document, value=data)
    faults = []
    for model in models_of(data):
        try:
            config: KernelConfig = model.load().model_validate(data)
        except ModelError as error:
            faults.append(error.faults)
    if faults:
        from fa4gen.config.schema_errors import explain_faults

        problems += explain_faults(faults, document, file_schema(), file)
    if problems:
        raise ConfigError(*sorted(problems, key=lambda problem: (problem.line, problem.column)))
    return config


def _no_name(default_name: str, file: str) -> Problem:
    usable = re.sub(r"[^a-z0-9_]+", "_", default_name.casefold()).strip("_")
    if not _NAME.fullmatch(usable):
        usable = f"kernel_{usable}".rstrip("_")
    return Problem(
        f"no name is given, and the file's own, {default_name!r}, is not a kernel name: "
        "lower-case letters, digits and _, a letter first",
        f"Add name: {usable}, or rename the file to {usable}.yaml.",
        file,
        key="name",
    )


def _not_a_mapping(data: Any, file: str) -> Problem:
    example = (
        "Begin with:\n    kernel: attention\n    arch: sm_90a\n    dtype: bf16\n    depth: 128"
    )
    if data is None:
        return Problem("the config is empty", example, file, 1, 1)
    kind = "a list" if isinstance(data, list) else "a single value"
    return Problem(f"a config is a mapping of keys to values, not {kind}", example, file, 1, 1)
