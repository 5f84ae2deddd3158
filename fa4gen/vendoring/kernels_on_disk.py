"""The kernels of a vendored folder as they are on disk; the lock file is not read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.config.load import config_from_data
from fa4gen.config.paths import shown_path
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError, Fa4genError, Problem
from fa4gen.render.choice import choice_of
from fa4gen.render.manifest import plan_data, read_manifest
from fa4gen.vendoring.names import with_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.designs.common.plans import Plan

WHERE_FROM = "choices"
"""The plan's key that says what chose each value, which is not compared."""


@dataclass(frozen=True)
class KernelOnDisk:
    """A kernel of a folder: what its manifest says, and its source as it is now."""

    symbol: str
    plan: Plan
    """By the fa4gen of today."""
    source: str
    headers: Mapping[str, str]
    manifest: Path
    replanned: tuple[str, ...]
    """Keys of the plan that the fa4gen of today would plan otherwise."""


@dataclass(frozen=True)
class Contents:
    """A vendored folder."""

    folder: Path
    prefix: str
    kernels: tuple[KernelOnDisk, ...]


def read_contents(folder: Path) -> Contents:
    """Read the kernels in ``folder``; ConfigError for any other folder."""
    headers = sorted((folder / "include").glob("*.h"))
    manifests = sorted((folder / "kernels").glob("*.json"))
    if len(headers) != 1 or not manifests:
        raise ConfigError(
            Problem(
                f"{shown_path(folder)}: no vendored folder: expected one header in include and "
                f"manifests in kernels, found {len(headers)} and {len(manifests)}",
                "Name the folder that was given to fa4gen vendor add --into.",
            )
        )
    prefix = headers[0].stem
    return Contents(folder, prefix, tuple(_kernel(path, prefix) for path in manifests))


def _kernel(manifest: Path, prefix: str) -> KernelOnDisk:
    shown = shown_path(manifest)
    recorded = read_manifest(manifest)
    if recorded is None:
        raise ConfigError(
            Problem(
                "the manifest was edited: what the kernel is to compute is not known",
                "Write it again: fa4gen vendor update.",
                file=shown,
            )
        )
    data: dict[str, Any] = json.loads(manifest.read_bytes())
    config = config_from_data(data["config"], recorded.name, shown)
    plan = with_prefix(build_plan(config, choice_of(data).keys), prefix)
    if plan.name != recorded.name:
        raise ConfigError(
            Problem(
                f"the kernel is called {recorded.name}, but include/{prefix}.h makes its name "
                f"{plan.name}",
                "Write the folder again: fa4gen vendor update.",
                file=shown,
            )
        )
    texts = {}
    for name in recorded.files:
        try:
            texts[name] = (manifest.parent / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Fa4genError(
                Problem(
                    f"cannot be read: {error}",
                    "Write it again: fa4gen vendor update.",
                    file=shown_path(manifest.parent / name),
                )
            ) from error
    source = texts.pop(f"{recorded.name}.cu", "")
    today, then = json.loads(json.dumps(plan_data(plan))), data["plan"]
    keys = sorted((today.keys() | then.keys()) - {WHERE_FROM})
    replanned = tuple(key for key in keys if today.get(key) != then.get(key))
    return KernelOnDisk(recorded.name, plan, source, texts, manifest, replanned)
