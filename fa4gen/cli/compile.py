"""``fa4gen compile``: configs to cubins, with the compiler's log linted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    configs_argument,
    force_option,
    format_option,
    jobs_option,
    set_option,
    shipped_option,
)
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.cli.compile_report import Row
    from fa4gen.config.settings import Setting


@click.command(name="compile")
@configs_argument
@shipped_option
@set_option
@click.option(
    "--compiler",
    type=click.Choice(("auto", "nvrtc", "nvcc")),
    default="auto",
    show_default=True,
    help="auto is nvrtc, which needs no CUDA toolkit.",
)
@click.option(
    "-o",
    "--out",
    type=FilePath(path_type=Path),
    metavar="DIR",
    help="Keep PTX, cubin, log and N.compile.json in DIR/<arch>/<name>/. Without it, only the "
    "cache keeps them.",
)
@click.option("--no-cache", is_flag=True, help="Compile even what was compiled before.")
@templates_option
@force_option
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    shipped: bool,
    settings: tuple[Setting, ...],
    compiler: str,
    out: Path | None,
    no_cache: bool,
    templates: Path | None,
    force: bool,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Compile kernels for their exact architecture and lint the compiler's log. No GPU needed.

    Without CONFIG, of those that the project's fa4gen.toml names. Kernels are rendered in memory:
    nothing has to be generated before. A kernel fails that spills registers, uses local memory, has
    its setmaxnreg ignored or its wgmma serialised or repaired by ptxas. Nothing is run.
    """
    from fa4gen.cli.choosing import compile_all
    from fa4gen.cli.compile_report import Row
    from fa4gen.cli.output import note
    from fa4gen.config.selection import select_configs
    from fa4gen.render.batch import render_configs
    from fa4gen.toolchain.compile import find_compiler
    from fa4gen.toolchain.origin import Origins
    from fa4gen.toolchain.record import output_files, write_outputs

    rendered = render_configs(select_configs(configs, shipped=shipped), templates, jobs, settings)
    tool = find_compiler(compiler)
    note(f"compiling {counted(len(rendered), 'kernel')} with {tool.name} {tool.version}")
    chosen = compile_all(rendered, tool, templates, jobs=jobs, use_cache=not no_cache)
    rows: list[Row] = []
    for before, one in zip(rendered, chosen, strict=True):
        item = replace(before, kernel=one.candidate.rendered, plan=one.plan)
        files: list[Path] = []
        if out is not None and one.outcome.kernel is not None:
            outputs = output_files(item.kernel, one.outcome.kernel)
            files = write_outputs(outputs, out / item.kernel.folder, force)
        problems = Origins(item, templates).trace(one.outcome.problems)
        rows.append(Row(item, one, problems, tuple(files)))
    return _report(rows, output_format)


def _report(rows: Sequence[Row], output_format: OutputFormat) -> int:
    from fa4gen.cli.compile_report import print_text, row_data
    from fa4gen.cli.output import note, print_json

    statuses = {row.outcome.exit_status for row in rows}
    status = next((status for status in (1, 4) if status in statuses), 0)
    if output_format == "json":
        print_json({"exit_status": status, "kernels": [row_data(row) for row in rows]})
    else:
        print_text(rows)
    _say_problems(rows, output_format)
    for text in dict.fromkeys(r.outcome.kernel.cache_note for r in rows if r.outcome.kernel):
        if text:
            note(f"note: {text}")
    return status


def _say_problems(rows: Sequence[Row], output_format: OutputFormat) -> None:
    """Say on stderr why kernels failed, and warn of what does not fail them."""
    from fa4gen.cli.output import report
    from fa4gen.toolchain.compile import lint_problem

    for row in rows:
        for problem in row.problems:
            report(problem, output_format)
        kernel = row.outcome.kernel
        for finding in kernel.findings if kernel else ():
            if kernel and not finding.forbids:
                problem = lint_problem(kernel, finding)
                warning = replace(
                    problem,
                    message=f"warning: {problem.message}",
                    file=f"{row.item.kernel.folder}/{problem.file}",
                )
                report(warning, output_format, "warning")
