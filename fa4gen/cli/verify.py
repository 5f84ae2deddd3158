"""``fa4gen verify``: proves kernels correct against float64 NumPy, on a GPU or in the emulator."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.generated import Invocation, generated_out_option
from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    compiler_option,
    configs_argument,
    format_option,
    jobs_option,
    require_gpu_option,
    set_option,
    shipped_option,
    show_coverage_option,
    strict_option,
)
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.plans import Plan
    from fa4gen.verify.run import VerifyOptions
    from fa4gen.verify.verdict import Verdict

MAX_SEED = 2**32
COLUMNS = (
    "kernel",
    "result",
    "cases",
    "rings",
    "branches",
    "frobenius",
    "row",
    "element",
    "lse",
    "seconds",
)
RIGHT = COLUMNS[2:]
ERRORS = COLUMNS[5:9]
MOST_SHOWN = 3
"""The most kernels for which figures of coverage are printed; with more, only causes of
warnings."""
STYLES = {"FAILED": "bold red", "compiled": "yellow"}


@click.command(name="verify")
@configs_argument
@shipped_option
@set_option
@click.option(
    "--seed",
    type=click.IntRange(0, MAX_SEED - 1),
    metavar="N",
    help="Seed of the inputs; a new one each time when not given. It is printed.",
)
@click.option(
    "--cases",
    "patterns",
    multiple=True,
    metavar="GLOB",
    help="Only the cases of this name, such as 'gqa/*'. May be repeated.",
)
@click.option("--list-cases", is_flag=True, help="Show the cases and run nothing.")
@click.option(
    "--large",
    is_flag=True,
    help="Add long sequences and large matrices, with a float64 reference on the GPU.",
)
@compiler_option
@click.option(
    "--report",
    type=FilePath(path_type=Path),
    metavar="FILE.json",
    help="Also write everything that was found as JSON.",
)
@click.option(
    "--record",
    is_flag=True,
    help="Write what was proved, with date and seed, into the manifests of the generated kernels.",
)
@generated_out_option
@templates_option
@strict_option
@show_coverage_option
@require_gpu_option
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    shipped: bool,
    settings: tuple[Setting, ...],
    seed: int | None,
    patterns: tuple[str, ...],
    list_cases: bool,
    large: bool,
    compiler: str,
    report: Path | None,
    record: bool,
    out: Path | None,
    templates: Path | None,
    strict: bool,
    show_coverage: bool,
    require_gpu: bool,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Prove kernels correct: compile them, run them, compare with float64 NumPy.

    Without CONFIG, those that the project's fa4gen.toml names. Every kernel is run on problems of
    many sizes, layouts and kinds of data, on fresh random numbers. Outputs begin as NaN, bytes
    around them are checked, inputs must stay as they are, and a second run must give the same bits.
    An error may not exceed what the same computation has in NumPy with the kernel's roundings by
    more than chance allows.

    Without a GPU of the kernel's architecture kernels are emulated on the CPU, with fewer and
    smaller cases, under several schedules, and with checks for races and deadlocks; the result says
    which it was.
    The columns of errors show the error that was closest to its bound, and how close. Of emulated
    kernels the columns rings and branches show what ran: rings of the plan that wrapped twice, and
    branches that went both ways. Cases are added for what is missing. A kernel is emulated when
    each of its instructions ran in some case, and else partly emulated, which --strict makes a
    failure; branches that always went the same way are counted.
    """
    from fa4gen.verify.blas import use_one_blas_thread

    use_one_blas_thread()  # before anything imports NumPy
    from fa4gen.cli.verify_record import Recorder
    from fa4gen.config.selection import select_configs
    from fa4gen.render.batch import plan_configs
    from fa4gen.verify.run import VerifyOptions

    paths = select_configs(configs, shipped=shipped)
    # all problems of configs are reported before anything is run
    planned = plan_configs(paths, settings)
    options = VerifyOptions(new_seed() if seed is None else seed, patterns, large, strict=strict)
    check_cases(planned, options)
    if list_cases:
        _list_cases(planned, options, output_format)
        return 0
    if require_gpu:
        from fa4gen.runtime.device import require_device

        for arch in dict.fromkeys(plan.arch for _, plan in planned):
            require_device(arch)
    recorder = Recorder.of(record, out, paths, settings, templates, patterns, jobs)
    if report is not None:
        from fa4gen.cli.result_files import check_result_file

        check_result_file("--report", report)
    call = Invocation(configs, shipped, None, templates, settings)
    verdicts: list[Verdict] = []
    try:
        for verdict in _verify(paths, options, compiler, jobs, _emulates_all(planned), call):
            verdicts.append(verdict)
    except (KeyboardInterrupt, SystemExit):  # a time limit's SIGTERM is the latter
        _print_finished(verdicts, options, len(paths), output_format)
        raise
    document = document_of(verdicts, options)
    if report is not None:
        _write_report(report, document)
    print_verdicts(verdicts, document, output_format, show_coverage=show_coverage)
    _say_where(verdicts, options)
    if recorder is not None:
        recorder.record(verdicts)
    status = exit_status_of(verdicts)
    if any(verdict.stopped for verdict in verdicts):
        # A kernel that hangs would keep the process from ending, too.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def new_seed() -> int:
    """Return a random seed."""
    import secrets

    return secrets.randbelow(MAX_SEED)


def check_cases(planned: Sequence[tuple[LoadedConfig, Plan]], options: VerifyOptions) -> None:
    """Refuse patterns that name no case; ConfigError."""
    from dataclasses import replace

    from fa4gen.verify.choose import check_patterns
    from fa4gen.verify.family import family_of
    from fa4gen.verify.run import choose_cases

    everything = replace(options, patterns=())
    cases = [case for _, plan in planned for case in choose_cases(plan, everything)]
    cases += [case for _, plan in planned for case in family_of(plan).emulated_cases()]
    check_patterns(cases, options.patterns)


def _list_cases(
    planned: Sequence[tuple[LoadedConfig, Plan]],
    options: VerifyOptions,
    output_format: OutputFormat,
) -> None:
    from fa4gen.cli.output import print_json, print_table
    from fa4gen.verify.run import choose_cases

    chosen = [
        (plan.name, choose_cases(plan, options, emulated=_emulates_all([(loaded, plan)])))
        for loaded, plan in planned
    ]
    if output_format == "json":
        kernels = [{"name": n, "cases": [c.data_items() for c in cases]} for n, cases in chosen]
        print_json({"kernels": kernels})
        return
    for name, cases in chosen:
        rows = [case.row() for case in cases]
        columns = cases[0].COLUMNS if cases else ()
        print_table(columns, rows, title=f"{name}: {counted(len(rows), 'case')}")


def _emulates_all(planned: Sequence[tuple[LoadedConfig, Plan]]) -> bool:
    """Whether no kernel of these will run on a GPU."""
    from fa4gen.verify.backends import pick_backend

    backends = [pick_backend(arch) for arch in dict.fromkeys(plan.arch for _, plan in planned)]
    return all(backend is not None and backend.emulates for backend in backends)


def _verify(
    paths: Sequence[Path],
    options: VerifyOptions,
    compiler: str,
    jobs: int,
    emulates_all: bool,
    call: Invocation,
) -> Iterator[Verdict]:
    """Yield the verdict of each kernel when it is known, and say how far the work is."""
    from dataclasses import replace

    from fa4gen.cli.output import note
    from fa4gen.cli.progress import progress
    from fa4gen.verify.backends import pick_backend
    from fa4gen.verify.report import problems
    from fa4gen.verify.run import verify_configs

    note(f"verifying {counted(len(paths), 'kernel')}, seed {options.seed}")
    with progress(len(paths), "kernels") as bar:
        for verdict in verify_configs(
            paths,
            options,
            pick=pick_backend,
            jobs=jobs,
            compiler=compiler,
            emulates_all=emulates_all,
            settings=call.settings,
            templates=call.templates,
            on_case=bar.part,
        ):
            again = ("fa4gen", "verify", *call.options, verdict.config)
            wrong = sum(1 for _ in problems(verdict))
            bar.advance(f"{verdict.name}: {counted(wrong, 'problem')}" if wrong else "")
            yield replace(verdict, again=again)


def _print_finished(
    verdicts: Sequence[Verdict], options: VerifyOptions, kernels: int, output_format: OutputFormat
) -> None:
    """Print the table of what was proved before an interruption; a document would be half."""
    from fa4gen.cli.output import note

    if verdicts and output_format != "json":
        document = document_of(verdicts, options)
        print_verdicts(verdicts, document, output_format, show_coverage=False)
    unfinished = counted(kernels - len(verdicts), "kernel has")
    note(f"stopped: {unfinished} no result, and no file was written")


def document_of(verdicts: Sequence[Verdict], options: VerifyOptions) -> dict[str, object]:
    """Return everything that was found as JSON data."""
    from fa4gen.render.render import GENERATOR
    from fa4gen.verify.report import SCHEMA_VERSION, verdict_data

    return {
        "schema_version": SCHEMA_VERSION,
        "generator": GENERATOR,
        "seed": options.seed,
        "exit_status": exit_status_of(verdicts),
        "kernels": [verdict_data(verdict) for verdict in verdicts],
    }


def exit_status_of(verdicts: Sequence[Verdict]) -> int:
    """Return 1 where a kernel failed, 4 where only a compiler is absent."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if not failed:
        return 0
    return 4 if all(verdict.exit_status == 4 for verdict in failed) else 1


def _write_report(path: Path, document: dict[str, object]) -> None:
    import json

    from fa4gen.render.write import write_text

    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def print_verdicts(
    verdicts: Sequence[Verdict],
    document: dict[str, object],
    output_format: OutputFormat,
    *,
    show_coverage: bool,
) -> None:
    """Print the table or ``document``, and on stderr the errors and the code not reached."""
    from fa4gen.cli.output import note, print_json, print_table, report
    from fa4gen.errors import Problem
    from fa4gen.proof_words import PARTLY
    from fa4gen.verify.report import (
        ERROR_LEGEND,
        error_cell,
        exercise_cells,
        gaps,
        problems,
        verdict_word,
    )

    if output_format == "json":
        print_json(document)
    else:
        rows = [
            (
                verdict.name,
                verdict_word(verdict),
                f"{verdict.num_passed}/{verdict.num_cases}" if verdict.num_cases else "-",
                *exercise_cells(verdict),
                *(error_cell(verdict, error) for error in ERRORS),
                f"{verdict.seconds:.1f}",
            )
            for verdict in verdicts
        ]
        words = (row[1] for row in rows)
        styles = STYLES | {word: "yellow" for word in words if word.startswith(PARTLY)}
        print_table(COLUMNS, rows, right=RIGHT, styles=styles)
        if any(verdict.error_names for verdict in verdicts):
            note(ERROR_LEGEND)
        for verdict in verdicts if len(verdicts) <= MOST_SHOWN else ():
            if verdict.exercise is not None:
                click.echo(f"{verdict.name} covered: {verdict.exercise.summary()}")
    unshown = 0
    for verdict in verdicts:
        for warns, text in gaps(verdict, every=show_coverage):
            problem = Problem(text, file=verdict.config, line=1, column=1)
            if warns:
                report(problem, output_format, "warning", f"warning: {text}")
            elif show_coverage:
                note(f"not exercised: {text}")
            else:
                unshown += 1
        for problem in problems(verdict):
            report(problem, output_format)
    if unshown:
        branches = "1 branch was" if unshown == 1 else f"{unshown} branches were"
        note(f"{branches} always taken the same way: --show-coverage lists them")


def _say_where(verdicts: Sequence[Verdict], options: VerifyOptions) -> None:
    """Say which kernels were emulated, and why."""
    from fa4gen.cli.output import note
    from fa4gen.proof_words import is_emulated
    from fa4gen.runtime.device import all_devices, why_no_device

    emulated = [verdict for verdict in verdicts if is_emulated(verdict.proof)]
    for arch in dict.fromkeys(verdict.arch for verdict in emulated):
        there = ", ".join(map(str, all_devices())) or why_no_device()
        count = sum(verdict.arch == arch for verdict in emulated)
        kernels = counted(count, "kernel was")
        large = " The large cases need a GPU and were left out." if options.large else ""
        note(
            f"{kernels} emulated on the CPU: no GPU here runs {arch} ({there}). "
            f"--require-gpu makes that an error.{large}"
        )
