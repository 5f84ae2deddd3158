"""The part that ``fa4gen vendor add``, ``update`` and ``recompile`` have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.cli.options import OutputFormat
    from fa4gen.render.environment import TemplateSet
    from fa4gen.vendoring.changes import FolderPlan
    from fa4gen.vendoring.model import VendoredKernel
    from fa4gen.vendoring.targets import WrittenFolder

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what would be done and do nothing."
)
remove_option = click.option(
    "--remove",
    multiple=True,
    metavar="NAME",
    help="Delete the files of this kernel or adapter. May be repeated.",
)


@dataclass(frozen=True)
class Writing:
    """A call that writes folders, with its options."""

    compiler: str
    jobs: int
    force: bool
    dry_run: bool
    diff: bool
    output_format: OutputFormat

    def write(self, targets: Sequence[WrittenFolder]) -> int:
        """Render, compile and write ``targets``; print the changes and return the status."""
        return self.carry_out([self._plan(target) for target in targets])

    def carry_out(self, plans: Sequence[FolderPlan]) -> int:
        """Write the planned files, unless this is a dry run; print them and return the status."""
        from fa4gen.cli.output import print_json
        from fa4gen.cli.vendor_report import plan_data, print_plan, report_refused
        from fa4gen.errors import NotCurrentError
        from fa4gen.vendoring.changes import apply_plan

        if not self.dry_run:
            for plan in plans:
                apply_plan(plan)
        status = NotCurrentError.exit_status if any(plan.refused for plan in plans) else 0
        if self.output_format == "json":
            folders = [plan_data(plan, dry_run=self.dry_run, diff=self.diff) for plan in plans]
            print_json({"exit_status": status, "folders": folders})
        else:
            for plan in plans:
                print_plan(plan, dry_run=self.dry_run, diff=self.diff)
        for plan in plans:
            report_refused(plan, self.output_format)
        return status

    def _plan(self, target: WrittenFolder) -> FolderPlan:
        from fa4gen.vendoring.assemble import assemble
        from fa4gen.vendoring.changes import plan_folder

        templates = templates_of(target.templates)
        kernels = self._compile(target, templates)
        assembled = assemble(target.request, kernels, templates)
        return plan_folder(assembled, target.folder, target.lock, self.force)

    def _compile(self, target: WrittenFolder, templates: TemplateSet) -> list[VendoredKernel]:
        from fa4gen.cli.output import note
        from fa4gen.cli.progress import progress
        from fa4gen.vendoring.kernels import compile_kernels

        note(f"compiling {counted(len(target.loaded), 'kernel')}")
        with progress(len(target.loaded), "kernels") as bar:
            return compile_kernels(
                target.loaded,
                target.request.prefix,
                templates,
                compiler=self.compiler,
                jobs=self.jobs,
                on_done=bar.advance,
            )


def templates_of(folder: Path | None) -> TemplateSet:
    """Open the shipped templates, or those of ``folder`` before them, and say so then."""
    from fa4gen.cli.own_templates import note_templates
    from fa4gen.render.environment import open_templates

    if folder is not None:
        note_templates(folder)
    return open_templates(folder)
