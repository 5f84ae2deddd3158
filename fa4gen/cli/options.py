"""Options that several commands share, so that they mean the same everywhere.

A decorated function takes them as: ``configs`` (tuple of str), ``output_format`` ("text", "json"
or "github"), ``jobs`` (int), ``shipped`` (bool), ``settings`` (tuple of
Setting), ``force`` (bool), ``require_gpu`` (bool).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import click

from fa4gen.cli.completion import complete_config, complete_setting
from fa4gen.resources import usable_cpus

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from fa4gen.config.settings import Setting

OutputFormat = Literal["text", "json", "github"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = ("text", "json", "github")


@dataclass
class RunOptions:
    """Facts that ``main`` needs about a command that failed: the click context's ``obj``."""

    output_format: OutputFormat = "text"


def asked_format(args: Sequence[str]) -> OutputFormat:
    """Return the last ``--format`` of a command line that may be wrong; "text" when unclear."""
    words = [word for arg in args for word in (arg.split("=", 1) if "--format=" in arg else [arg])]
    values = [value for option, value in pairwise(words) if option == "--format"]
    return next((known for known in OUTPUT_FORMATS if values[-1:] == [known]), "text")


class NumberRange(click.FloatRange):
    """A range of numbers; no range has NaN, which every comparison lets pass."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number that ``value`` says; BadParameter."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number of the range.", param, ctx)
        return number


def bytes_given(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Return the number of bytes that an option's text names, such as 8GiB; BadParameter."""
    from fa4gen.emulator.launch_file.model import bytes_of

    try:
        size: int | None = bytes_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return size


class FilePath(click.Path):
    """A path that is not empty: '' would be the current folder."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; an empty one is a usage error."""
        if value == "":
            self.fail("'' names no file or folder", param, ctx)
        return super().convert(value, param, ctx)


configs_argument = click.argument(
    "configs", nargs=-1, metavar="[CONFIG]...", shell_complete=complete_config
)
"""Config files, folders, globs or shipped names, for ``config.selection.select_configs``."""

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(OUTPUT_FORMATS),
    default="text",
    show_default=True,
    help="text for people; json: one document on stdout; github: annotations for GitHub Actions.",
)

compiler_option = click.option(
    "--compiler",
    type=click.Choice(("auto", "nvrtc", "nvcc")),
    default="auto",
    show_default=True,
    help="auto is nvrtc, which needs no CUDA toolkit.",
)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=usable_cpus,
    show_default="the CPUs of this machine",
    metavar="N",
    help="How many to process at a time.",
)


def _parse_settings(
    _ctx: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[Setting, ...]:
    if not texts:
        return ()
    from fa4gen.config.settings import parse_settings

    return parse_settings(texts)


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_parse_settings,
    shell_complete=complete_setting,
    metavar="KEY=VALUE",
    help="Give a key of the configs this value, written as in YAML. May be repeated.",
)

shipped_option = click.option(
    "--shipped", is_flag=True, help="Take all configs that come with fa4gen, instead of CONFIG."
)

force_option = click.option(
    "--force", is_flag=True, help="Overwrite files that were edited or that fa4gen did not write."
)

require_gpu_option = click.option(
    "--require-gpu",
    is_flag=True,
    help="End with status 4 where no GPU of the kernel's architecture is present.",
)

strict_option = click.option(
    "--strict",
    is_flag=True,
    help="A kernel that is only partly emulated fails: instructions of it ran in no case.",
)

show_coverage_option = click.option(
    "--show-coverage",
    is_flag=True,
    help="List all that did not run or always went the same way, with its source lines.",
)

_SHARD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")


def _read_shard(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    """Read "2/5" as the second of five parts."""
    match = _SHARD.fullmatch(value)
    if match is None or int(match[1]) > int(match[2]):
        raise click.BadParameter(
            f"{value!r} is not I/N with 1 <= I <= N, such as 2/5", ctx, parameter
        )
    return int(match[1]), int(match[2])


shard_option = click.option(
    "--shard", callback=_read_shard, default="1/1", metavar="I/N", help="Only part I of N parts."
)

executor_option = click.option(
    "--executor",
    default="local",
    show_default=True,
    metavar="WHERE",
    help="local: worker processes of this machine. dask:ADDRESS: the workers of a scheduler of "
    "dask.distributed, which results come back from one by one.",
)
