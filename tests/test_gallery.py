"""The gallery in generated/: each design, architecture, type and feature has a kernel there."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from fa4gen.config.find import shipped_configs
from fa4gen.config.project import read_project
from fa4gen.designs.registry import design_of
from tests.shipped import loaded, plan_of

ROOT = Path(__file__).parents[1]
MOST = 45
"""Kernels: four files of each and the hashes are at most 181 files."""
FEATURES = (
    "activation",
    "batching",
    "blocks",
    "dtype",
    "key_lengths",
    "keys",
    "kv_scale",
    "mask",
    "ping_pong",
    "residual",
    "scheduler",
    "score",
    "sinks",
    "softcap",
    "split_k",
    "split_keys",
    "swap_operands",
    "tile_heads",
)
"""Keys of which each kind of value is shown."""


def kind(value: Any) -> str:
    """The kind of a value for readers: a word, a mask's name, or that there is a value at all."""
    if isinstance(value, dict):
        return "/".join(value)
    if isinstance(value, str):
        return value if value.isidentifier() else "expression"
    return "given" if value else "none"


def kernel(path: Path) -> str:
    config = loaded(path).config
    return f"{config.arch}/{config.name}"


def shown(path: Path) -> set[tuple[str, ...]]:
    """The features of a config, and its design and architecture."""
    config = loaded(path).config
    data = config.data()
    family = str(data["kernel"])
    found = {(family, key, kind(data[key])) for key in FEATURES if key in data}
    return found | {(design_of(plan_of(path)).template, config.arch)}


def test_the_gallery_shows_everything_that_is_shipped() -> None:
    project = read_project(ROOT / "fa4gen.toml")
    assert project is not None
    missing: dict[tuple[str, ...], list[str]] = defaultdict(list)
    gallery = [path for path in shipped_configs() if project.keeps_files_of(kernel(path))]
    there = set().union(*map(shown, gallery))
    for path in shipped_configs():
        for feature in shown(path) - there:
            missing[feature].append(path.stem)
    assert missing == {}
    assert len(gallery) == len(project.content.written) <= MOST
    for path in gallery:
        assert (ROOT / "generated" / kernel(path) / f"{path.stem}.cu").is_file()
