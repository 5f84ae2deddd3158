"""``fa4gen vendor update``: the same kernels, as they are rendered today."""

from __future__ import annotations

from pathlib import Path

import click

from fa4gen.cli.generated import diff_option
from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    compiler_option,
    force_option,
    format_option,
    jobs_option,
)
from fa4gen.cli.own_templates import vendor_templates_option
from fa4gen.cli.vendor_write import Writing, dry_run_option, remove_option


@click.command(name="update")
@click.argument("folder", type=FilePath(path_type=Path), metavar="[DIR]", required=False)
@remove_option
@compiler_option
@vendor_templates_option
@force_option
@dry_run_option
@diff_option
@jobs_option
@format_option
def command(
    folder: Path | None,
    remove: tuple[str, ...],
    compiler: str,
    templates: Path | None,
    force: bool,
    dry_run: bool,
    diff: bool,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Write the kernels of DIR as they are rendered today; of every folder of the project without.

    A folder that the project's file names gets the kernels and adapters that it says, and is made
    where it is not there yet; one that it says no more stays until it is named with --remove.

    Edited files are left alone. Where one of them would come out differently today, it is named
    and the command ends with status 3; where it is part of the C library or of a kernel, nothing
    is written. --force overwrites these files and restores those that were deleted.
    """
    from fa4gen.vendoring.targets import folders_to_update

    work = Writing(compiler, jobs, force, dry_run, diff, output_format)
    return work.write(folders_to_update(folder, templates, remove))
