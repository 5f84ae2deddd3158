"""``fa4gen vendor add``: kernels and adapters into a folder, new or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.generated import diff_option
from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    compiler_option,
    configs_argument,
    force_option,
    format_option,
    jobs_option,
    set_option,
)
from fa4gen.cli.own_templates import vendor_templates_option
from fa4gen.cli.vendor_write import Writing, dry_run_option, remove_option
from fa4gen.vendoring.targets import ADAPTERS

if TYPE_CHECKING:
    from fa4gen.config.settings import Setting


@click.command(name="add")
@configs_argument
@set_option
@click.option("--into", type=FilePath(path_type=Path), metavar="DIR", help="The folder to write.")
@click.option(
    "--prefix", metavar="P", help="Beginning of all C names and files of a folder that is made."
)
@click.option(
    "--adapter",
    "--layout",
    "adapters",
    type=click.Choice(ADAPTERS),
    multiple=True,
    help="Also write files for this; c and cmake always come. hf-kernels is the layout of "
    "Hugging Face's loader. May be repeated.",
)
@remove_option
@compiler_option
@vendor_templates_option
@force_option
@dry_run_option
@diff_option
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    settings: tuple[Setting, ...],
    into: Path | None,
    prefix: str | None,
    adapters: tuple[str, ...],
    remove: tuple[str, ...],
    compiler: str,
    templates: Path | None,
    force: bool,
    dry_run: bool,
    diff: bool,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Add kernels to a folder, which is made where there is none.

    CONFIG may be a set of kernels (NAME.set.yaml) or a tuning table (NAME.tuning.yaml): its kernels
    are taken, of which P_best picks one for a problem, by the table's regions first. A kernel of
    the same name is replaced; all others stay, and are written as fa4gen renders them today.

    Edited files are left alone. Where one of them would come out differently today, it is named
    and the command ends with status 3; where it is part of the C library or of a kernel, nothing
    is written.
    """
    from fa4gen.vendoring.targets import Addition, folder_to_add_to

    if into is None:
        raise click.UsageError("give the folder with --into DIR")
    if not (configs or adapters or remove):
        raise click.UsageError(
            "give CONFIG, --adapter or --remove; `fa4gen vendor update` writes what the project's "
            "file or the folder's lock says"
        )
    if settings and not configs:
        raise click.UsageError("--set changes the configs that are named: give CONFIG, too")
    addition = Addition(into, configs, prefix, adapters, settings, remove, templates, force)
    work = Writing(compiler, jobs, force, dry_run, diff, output_format)
    return work.write([folder_to_add_to(addition)])
