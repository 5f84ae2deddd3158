"""The shell's completions at the Tab key: names of configs, sweeps, templates; keys, values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click
    from click.shell_completion import CompletionItem


def complete_config(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer shipped configs by the names that commands take, and config files; else any file.

    Of a shipped config's folders the next one is offered, its last part where that is enough.
    """
    from fa4gen.config.find import SUFFIXES, shipped_configs, shipped_name

    whole = [shipped_name(path) for path in shipped_configs()]
    last = [name.rpartition("/")[2] for name in whole]
    short = [name for name in last if last.count(name) == 1]
    return _names_or_files([*(name for name in whole if "/" in incomplete), *short], incomplete,
                           SUFFIXES)  # fmt: skip


def complete_sweep(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer shipped sweeps, and files."""
    from fa4gen.config.find import SUFFIXES, SWEEPS
    from fa4gen.resources import data_root

    names = [path.stem for path in (data_root("configs") / SWEEPS).rglob("*.yaml")]
    return _names_or_files(names, incomplete, SUFFIXES)


def complete_template(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the names of the shipped templates."""
    from fa4gen.render.own_templates import shipped_templates

    return _items(name for name in shipped_templates() if name.startswith(incomplete))


def complete_setting(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the keys of configs, and after ``key=`` the words and numbers that the key takes."""
    from fa4gen.config.expectations import Expectations
    from fa4gen.config.load import config_schema

    expected = Expectations(config_schema(), {})
    key, equals, _ = incomplete.partition("=")
    if not equals:
        offered = [f"{name}=" for name in expected.keys(())]
    else:
        values = [_as_yaml(value) for value in expected.values((key,))]
        offered = [f"{key}={value}" for value in values]
    unique = dict.fromkeys(offered)  # several models have the same
    return _items(text for text in unique if text.startswith(incomplete))


def _as_yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names_or_files(
    names: list[str], incomplete: str, suffixes: tuple[str, ...]
) -> list[CompletionItem]:
    here = [path.name for path in Path().iterdir() if path.suffix in suffixes]
    found = [name for name in sorted({*names, *here}) if name.startswith(incomplete)]
    return _items(found) if found else _items([incomplete], "file")


def _items(offered: Iterable[str], kind: str = "plain") -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # when the shell asks for it

    return [CompletionItem(text, type=kind) for text in offered]
