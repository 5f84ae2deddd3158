"""``fa4gen sweep``: a matrix of configs, each rendered, compiled and verified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.completion import complete_sweep
from fa4gen.cli.options import (
    FilePath,
    NumberRange,
    OutputFormat,
    compiler_option,
    executor_option,
    format_option,
    jobs_option,
    require_gpu_option,
    shard_option,
    strict_option,
)
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from fa4gen.config.sweep import Sweep
    from fa4gen.sweep.record import CaseRecord
    from fa4gen.sweep.results import News
    from fa4gen.sweep.run import SweepOptions
    from fa4gen.sweep.stages import Until

MAX_SEED = 2**32


@click.command(name="sweep")
@click.argument("file", metavar="FILE", shell_complete=complete_sweep)
@jobs_option
@click.option(
    "--until",
    type=click.Choice(("rendered", "compiled", "verified")),
    default="verified",
    show_default=True,
    help="How far to take every case.",
)
@shard_option
@executor_option
@click.option(
    "--results",
    type=FilePath(path_type=Path),
    default=Path("sweep-results"),
    show_default=True,
    metavar="PLACE",
    help="Folder or .jsonl file for the results, one line of JSON a case.",
)
@click.option(
    "--junit",
    type=FilePath(path_type=Path),
    metavar="FILE",
    help="Also write the results as JUnit XML.",
)
@click.option(
    "--summary",
    type=FilePath(path_type=Path),
    metavar="FILE",
    help="Also add the results to FILE as a table in Markdown, such as to $GITHUB_STEP_SUMMARY.",
)
@click.option(
    "--html",
    type=FilePath(path_type=Path),
    metavar="FILE",
    help="Also write the results as one page of HTML with tables that can be sorted.",
)
@click.option(
    "--fresh", is_flag=True, help="Start over, without results that passed and are still current."
)
@click.option(
    "--seed",
    type=click.IntRange(0, MAX_SEED - 1),
    metavar="N",
    help="Seed of the inputs to verify on; a new one each time when not given.",
)
@click.option(
    "--cases",
    "patterns",
    multiple=True,
    metavar="GLOB",
    help="Verify only on the problems of this name, such as 'gqa/*'. May be repeated.",
)
@templates_option
@compiler_option
@click.option(
    "--time-limit",
    type=NumberRange(min=1.0),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop a case as hung after this long.",
)
@strict_option
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="Show the cases, and why some will be skipped; run none.",
)
@require_gpu_option
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    file: str,
    jobs: int,
    until: Until,
    shard: tuple[int, int],
    executor: str,
    results: Path,
    junit: Path | None,
    summary: Path | None,
    html: Path | None,
    fresh: bool,
    seed: int | None,
    patterns: tuple[str, ...],
    templates: Path | None,
    compiler: str,
    time_limit: float,
    strict: bool,
    only_list: bool,
    require_gpu: bool,
    output_format: OutputFormat,
) -> None:
    """Render, compile and verify every config of the sweep FILE.

    FILE names a base config and lists of values (base, matrix, include, exclude: the rules are
    those of a GitHub Actions matrix), or is the name of a shipped sweep. Configs that the schema or
    the plan refuses are skipped, with the reason in the results. Each result is on disk as soon as
    it is known: an interrupted run resumes. Ends with status 1 when a case fails.
    """
    from fa4gen.verify.blas import use_one_blas_thread

    use_one_blas_thread()  # before anything imports NumPy
    from fa4gen.cli.result_files import check_result_file
    from fa4gen.cli.sweep_report import append_summary, check_summary, html_page, print_results
    from fa4gen.config.find import find_sweep
    from fa4gen.config.sweep import expand_sweep
    from fa4gen.render.write import write_text
    from fa4gen.sweep.run import SweepOptions, architectures, check_patterns, select_shard

    whole = expand_sweep(find_sweep(file))
    check_patterns(whole, patterns)
    sweep = select_shard(whole, shard)
    if only_list:
        _list(sweep, output_format)
        return
    if require_gpu and until == "verified":
        from fa4gen.runtime.device import require_device

        for arch in architectures(sweep.cases):
            require_device(arch)
    for option, place, kind in (("--junit", junit, "xml"), ("--html", html, "html")):
        if place is not None:
            check_result_file(option, place, kind)
    if summary is not None:
        check_summary(summary)
    options = SweepOptions(
        until=until,
        jobs=jobs,
        compiler=compiler,
        seed=_new_seed() if seed is None else seed,
        patterns=patterns,
        strict=strict,
        templates=templates,
        time_limit_s=time_limit,
    )
    path, records = _run(sweep, options, results, shard, executor, fresh=fresh)
    if junit is not None:
        from fa4gen.cli.junit import junit_xml

        write_text(junit, junit_xml(sweep.name, records))
    if html is not None:
        write_text(html, html_page(sweep.name, records))
    if summary is not None:
        append_summary(summary, sweep.name, records)
    print_results(sweep.name, records, path, output_format)
    if any(record.outcome == "failed" for record in records):
        ctx.exit(1)
    if shard == (1, 1) and all(record.outcome == "skipped" for record in records):
        from fa4gen.cli.output import note

        note("every case was skipped: nothing was proved; correct the base or the matrix")
        ctx.exit(2)


def _list(sweep: Sweep, output_format: OutputFormat) -> None:
    """Plan the cases of ``sweep`` and print them."""
    from fa4gen.cli.progress import progress
    from fa4gen.cli.sweep_report import print_cases
    from fa4gen.sweep.planning import with_refusals

    with progress(len(sweep.cases), "cases") as bar:
        planned = with_refusals(sweep, bar.advance)
    print_cases(planned.cases, output_format)


def _run(
    sweep: Sweep,
    options: SweepOptions,
    place: Path,
    shard: tuple[int, int],
    executor: str,
    *,
    fresh: bool,
) -> tuple[Path, list[CaseRecord]]:
    from fa4gen.cli.output import note
    from fa4gen.cli.progress import progress
    from fa4gen.executors import executor_for
    from fa4gen.sweep.record import read_line
    from fa4gen.sweep.results import ResultsFile, results_path
    from fa4gen.sweep.run import run_sweep

    execute = executor_for(executor, jobs=options.jobs, time_limit_s=options.time_limit_s)
    path = results_path(place, sweep.name, shard)
    num_kept = 0
    with (
        ResultsFile(path, sweep.name, fresh=fresh, read=read_line) as file,
        progress(len(sweep.cases), "cases") as bar,
    ):

        def report(record: CaseRecord, news: News) -> None:
            nonlocal num_kept
            num_kept += news == "kept"
            failed = record.outcome == "failed"
            bar.advance(f"failed to {record.stage}: {record.case}" if failed else "")

        try:
            records = run_sweep(sweep, options, file, report, execute)
        except KeyboardInterrupt:
            note(f"stopped; the same command resumes from {path}")
            raise
    if num_kept:
        note(
            f"{num_kept} of {counted(len(records), 'result')} kept from {path}; --fresh starts over"
        )
    return path, records


def _new_seed() -> int:
    import secrets

    return secrets.randbelow(MAX_SEED)
