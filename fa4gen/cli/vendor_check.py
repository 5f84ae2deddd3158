"""``fa4gen vendor check``: a folder against its lock and today's fa4gen; writes nothing."""

from __future__ import annotations

from pathlib import Path

import click

from fa4gen.cli.generated import diff_option
from fa4gen.cli.options import FilePath, OutputFormat, format_option
from fa4gen.cli.own_templates import vendor_templates_option
from fa4gen.cli.vendor_write import templates_of


@click.command(name="check")
@click.argument("folder", type=FilePath(path_type=Path), metavar="[DIR]", required=False)
@vendor_templates_option
@diff_option
@format_option
def command(
    folder: Path | None, templates: Path | None, diff: bool, output_format: OutputFormat
) -> int:
    """Tell whether DIR is as fa4gen wrote it and would write it today; nothing is compiled.

    Ends with status 3 when a file was edited, is missing, is not fa4gen's, or would come out
    differently today, and for machine code whose source has changed. Without DIR, every folder of
    the project is checked, also for what the project's file says of it.
    """
    from fa4gen.cli.output import print_json
    from fa4gen.cli.vendor_report import annotate_check, check_data, print_check
    from fa4gen.errors import NotCurrentError
    from fa4gen.vendoring.check import check_folder
    from fa4gen.vendoring.targets import folders_to_read

    verdicts = [
        check_folder(
            target.folder,
            templates_of(target.templates),
            asked=target.asked,
            allowed=target.allow,
        )
        for target in folders_to_read(folder, templates)
    ]
    status = 0 if all(verdict.current for verdict in verdicts) else NotCurrentError.exit_status
    if output_format == "json":
        folders = [check_data(verdict, diff=diff) for verdict in verdicts]
        print_json({"exit_status": status, "folders": folders})
    else:
        for verdict in verdicts:
            print_check(verdict, diff=diff)
    if output_format == "github":
        for verdict in verdicts:
            annotate_check(verdict)
    return status
