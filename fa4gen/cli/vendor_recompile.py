"""``fa4gen vendor recompile``: machine code from sources that the user edited."""

from __future__ import annotations

from pathlib import Path

import click

from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    compiler_option,
    format_option,
)
from fa4gen.cli.own_templates import vendor_templates_option
from fa4gen.cli.vendor_write import Writing, dry_run_option, templates_of


@click.command(name="recompile")
@click.argument("folder", type=FilePath(path_type=Path), metavar="[DIR]", required=False)
@compiler_option
@vendor_templates_option
@dry_run_option
@format_option
def command(
    folder: Path | None,
    compiler: str,
    templates: Path | None,
    dry_run: bool,
    output_format: OutputFormat,
) -> int:
    """Compile the kernels of DIR whose sources in kernels/ are not those of their machine code.

    Only cubins/ and fa4gen.lock are written. Without DIR, in every folder of the project.
    """
    from fa4gen.vendoring.recompile import plan_recompile
    from fa4gen.vendoring.targets import folders_to_read

    work = Writing(compiler, 1, False, dry_run, False, output_format)
    plans = [
        plan_recompile(target.folder, compiler, templates_of(target.templates))
        for target in folders_to_read(folder, templates)
    ]
    return work.carry_out(plans)
