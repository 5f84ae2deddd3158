"""The request, the configs and the choices that a lock was made from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.load import LoadedConfig, validate_document
from fa4gen.config.yaml_positions import read_document
from fa4gen.errors import ConfigError, Problem
from fa4gen.render.choice import FIRST, choice_of
from fa4gen.render.manifest import intact_manifest
from fa4gen.vendoring.lock import LOCK_NAME
from fa4gen.vendoring.model import Request
from fa4gen.vendoring.on_disk import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.render.choice import ChoiceRecord
    from fa4gen.vendoring.lock import Lock, LockedKernel


def locked_request(lock: Lock) -> Request:
    """Return the requested contents of the folder."""
    return Request(lock.prefix, lock.adapters, lock.table)


def locked_configs(kernels: Sequence[LockedKernel]) -> list[LoadedConfig]:
    """Return the configs of a lock's kernels, read by the fa4gen of today.

    Raises ConfigError with the problems of all that it does not take any more.
    """
    loaded = []
    problems: list[Problem] = []
    for kernel in kernels:
        file = f"{kernel.source} (in {LOCK_NAME})"
        try:
            document = read_document(kernel.config_text, file)
            config = validate_document(document, file, kernel.name)
        except ConfigError as error:
            problems += error.problems
            continue
        loaded.append(
            LoadedConfig(config, Path(kernel.source), kernel.config_text, document.places)
        )
    if problems:
        remedy = "Give the config anew: fa4gen vendor add CONFIG --into DIR."
        raise ConfigError(*problems, Problem("the folder's configs are not valid today", remedy))
    return loaded


def locked_choices(lock: Lock, folder: Path) -> list[ChoiceRecord]:
    """Return the candidate of each kernel of ``folder``; the first where no manifest names it."""
    return [_choice(folder, f"kernels/{kernel.symbol}.json") for kernel in lock.kernels]


def _choice(folder: Path, manifest: str) -> ChoiceRecord:
    try:
        found = intact_manifest(read_file(folder, manifest))
    except ConfigError:  # a link, or unreadable
        return FIRST
    return FIRST if found is None else choice_of(found)
