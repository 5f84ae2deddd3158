"""``fa4gen list``: shows the configs and their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.options import OutputFormat, configs_argument, format_option
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.kernel_config import KernelConfig


@click.command(name="list")
@configs_argument
@format_option
def command(configs: tuple[str, ...], output_format: OutputFormat) -> None:
    """List configs: without CONFIG the shipped ones, under the names that other commands take.

    With --format github as tables in Markdown, for the summary of a job.
    """
    from fa4gen.cli.output import print_json
    from fa4gen.config.find import find_configs

    loaded, problems = _load(find_configs(configs))
    if output_format == "json":
        if not problems:
            print_json([_data(item) for item in loaded])
    else:
        _print_tables(loaded, markdown=output_format == "github")
    if problems:
        raise ConfigError(*problems)


def _print_tables(loaded: Sequence[LoadedConfig], *, markdown: bool) -> None:
    """Print a table for each family that has a config, with an empty line between them."""
    from fa4gen.cli.output import print_markdown, print_table
    from fa4gen.designs.registry import FAMILIES

    shown_before = False
    for family in FAMILIES.values():
        columns = family.list_columns
        rows = [
            (
                _name(item),
                *(_cell(item.config, key) for key in columns),
                _tuned(item.config, columns),
            )
            for item in loaded
            if item.config.kernel == family.name
        ]
        if rows:
            if shown_before:
                click.echo()
            heads = ("config", *columns, "set besides")
            if markdown:
                print_markdown(heads, rows)
            else:
                print_table(heads, rows, right=("depth",))
            shown_before = True


def _load(paths: list[Path]) -> tuple[list[LoadedConfig], list[Problem]]:
    from fa4gen.config.load import load_config

    loaded: list[LoadedConfig] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            loaded.append(load_config(path))
        except ConfigError as error:
            problems += error.problems
    return loaded, problems


def _name(loaded: LoadedConfig) -> str:
    """Return a word by which other commands find the config."""
    from fa4gen.config.find import shipped_name
    from fa4gen.config.paths import shown_path

    return shipped_name(loaded.path) or shown_path(loaded.path)


def _data(loaded: LoadedConfig) -> dict[str, Any]:
    return {"name": _name(loaded), "path": str(loaded.path), "config": loaded.config.data()}


def _cell(config: KernelConfig, key: str) -> str:
    from fa4gen.yaml_words import shown

    value = config.data()[key]
    if value is None:
        return "none"
    if not isinstance(value, dict):
        return str(value)
    return shown(value).removeprefix("{").removesuffix("}")


def _tuned(config: KernelConfig, columns: Sequence[str]) -> str:
    """Return the other keys that do not have their default: "cta_group: 2, lse: false"."""
    from fa4gen.yaml_words import shown

    given = config.data(only_changed=True)
    others = [key for key in given if key not in ("name", *columns)]
    return ", ".join(f"{key}: {shown(given[key])}" for key in others)
