"""``fa4gen emulate``: runs any kernel's PTX on the CPU and reports its errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.findings import finding_data, finding_text, own_line
from fa4gen.cli.launch_files import MAX_PTX_BYTES, Places, load_launch_file, refusal
from fa4gen.cli.options import FilePath, OutputFormat, format_option
from fa4gen.cli.output import annotate, note
from fa4gen.cli.timeline import draw_timeline, print_figures, trace_for
from fa4gen.config.paths import shown_path
from fa4gen.config.text import read_text
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.emulator.launch_file.model import LaunchFile
    from fa4gen.emulator.launch_file.run import Run

SCHEMA_VERSION = 1
COLUMNS = ("seed", "schedule", "verdict", "findings", "results", "ctas", "instructions", "seconds")
RIGHT = ("seed", "findings", "ctas", "instructions", "seconds")
STYLES = {
    "error": "bold red", "wrong": "bold red",
    "isa": "yellow", "review": "yellow", "incomplete": "yellow",
}  # fmt: skip


@click.command(name="emulate")
@click.argument("ptx", type=FilePath(path_type=Path))
@click.option(
    "--launch",
    "launch_path",
    type=FilePath(path_type=Path),
    required=True,
    metavar="LAUNCH.yaml",
    help="Grid, block, arguments, seeds and schedules: docs/reference/emulator.md has all keys.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), metavar="N", help="Run the seeds 0 to N-1 instead."
)
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    type=click.Choice(("uniform", "priority", "starve", "eager", "lazy")),
    help="Run these schedules instead. May be repeated.",
)
@click.option("--checks/--no-checks", default=None, help="Make all checks, or none.")
@click.option(
    "--strict",
    is_flag=True,
    help="Count findings of severity isa as errors, and let only clean runs pass.",
)
@click.option(
    "--trace",
    type=FilePath(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Write the first run's timeline for Perfetto or chrome://tracing.",
)
@click.option(
    "--timeline",
    type=FilePath(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Draw the steady state of the first run's main loop, and print its figures.",
)
@click.option(
    "--out",
    "out",
    type=FilePath(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the files that `output` names; that of the launch file when not given.",
)
@click.option("--force", is_flag=True, help="Let `output` replace files that are no .npy files.")
@click.option(
    "--expect",
    "expected",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="What an array must hold after every run. May be repeated.",
)
@format_option
def command(
    ptx: Path,
    launch_path: Path,
    seeds: int | None,
    schedules: tuple[str, ...],
    checks: bool | None,
    strict: bool,
    trace: Path | None,
    timeline: Path | None,
    out: Path | None,
    force: bool,
    expected: tuple[str, ...],
    output_format: OutputFormat,
) -> int:
    """Run a kernel's PTX on the CPU under several schedules, with checks for races and deadlocks.

    PTX is a file for sm_90 to sm_103, from any compiler. Ends with status 0 when no run has an
    error, every run was checked to its end and every array holds what is expected; with 1
    otherwise; with 2 for what cannot be run. Findings of severity isa and review do not fail a
    run unless --strict is given: docs/reference/emulator.md says what they mean.
    """
    from fa4gen.verify.blas import use_one_blas_thread

    use_one_blas_thread()  # before anything imports NumPy
    from fa4gen.emulator import EmulatorError, LaunchError, Program
    from fa4gen.emulator.launch_file.arrays import prepare
    from fa4gen.emulator.launch_file.outputs import output_files, save_outputs
    from fa4gen.emulator.launch_file.run import expectations

    named = dict(map(_split, expected))
    for option, path in ("--trace", trace), ("--timeline", timeline):
        if path is not None:
            from fa4gen.cli.result_files import check_result_file

            check_result_file(option, path)
    folder = launch_path.parent
    places: Places = {}
    try:
        loaded = load_launch_file(launch_path)
        places = loaded.places
        changes = {
            "seeds": seeds,
            "schedules": schedules or None,
            "checks": checks,
        }
        file = _override(loaded.file, changes)
        launch = prepare(file, folder)
        wanted = expectations(launch, folder, named)
        outputs = output_files(launch, out or folder, force=force)
    except EmulatorError as error:
        raise refusal(error, launch_path, places) from error
    text = read_text(ptx, "ptx", MAX_PTX_BYTES)
    missing: ConfigError | None = None
    figures: dict[str, Any] = {}
    try:
        program = Program(text)
        with trace_for(trace, timeline) as traced:
            runs = _run(program, launch, wanted, traced, strict)
            try:
                figures = draw_timeline(traced, timeline, ptx.stem)
            except ConfigError as error:  # after the results, which do not depend on it
                missing = error
    except LaunchError as error:
        raise refusal(error, launch_path if error.key else ptx, places) from error
    except EmulatorError as error:
        raise refusal(error, ptx, places) from error
    written = save_outputs(outputs, runs[0])
    document = _document(ptx, launch_path, runs, written)
    _print(ptx, runs, document | figures, output_format)
    if figures and output_format != "json":
        print_figures(figures)
    failed = not all(run.passed for run in runs)
    if missing is not None:
        for problem in missing.problems:
            note(str(problem))
    return 1 if failed else 2 if missing is not None else 0


def _split(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise click.BadParameter(
            f"{text!r} is not of the form NAME=FILE.npy", param_hint="--expect"
        )
    return name, Path(path)


def _override(file: LaunchFile, changes: Mapping[str, Any]) -> LaunchFile:
    """Give the command line precedence over the file; None changes nothing."""
    given = {key: value for key, value in changes.items() if value is not None}
    try:
        return file.changed(**given)
    except ModelError as error:
        raise click.BadParameter(error.faults[0].message, param_hint="--seeds") from None


def _run(program: Any, launch: Any, wanted: Any, trace: Path | None, strict: bool) -> list[Run]:
    from fa4gen.cli.progress import pulse
    from fa4gen.emulator.launch_file.run import run_launch
    from fa4gen.emulator.state.budget import process_bytes, shown_bytes

    count = launch.file.num_runs()
    runs: list[Run] = []
    with pulse() as show:

        def progress(done: int, ctas: int) -> None:
            show(
                f"run {len(runs) + 1} of {count}: {done} of {ctas} CTAs done, "
                f"{shown_bytes(process_bytes())} in use"
            )

        for run in run_launch(
            program, launch, wanted, trace=trace, strict=strict, progress=progress
        ):
            runs.append(run)
    return runs


def _document(
    ptx: Path, launch: Path, runs: Sequence[Run], written: Sequence[Path]
) -> dict[str, object]:
    from fa4gen.emulator.coverage.words import coverage_data

    return {
        "schema_version": SCHEMA_VERSION,
        "ptx": shown_path(ptx),
        "launch": shown_path(launch),
        "passed": all(run.passed for run in runs),
        "runs": [_run_data(run) for run in runs],
        "coverage": coverage_data(_coverage(runs)),
        "outputs": [shown_path(path) for path in written],
    }


def _coverage(runs: Sequence[Run]) -> Coverage:
    """Return the coverage of the kernel by all runs together."""
    from fa4gen.emulator.coverage.counts import merge

    coverage = merge(run.report.coverage for run in runs)
    assert coverage is not None
    return coverage


def _run_data(run: Run) -> dict[str, object]:
    report = run.report
    return {
        "seed": report.seed,
        "schedule": report.schedule,
        "verdict": report.verdict.value,
        "passed": run.passed,
        "ctas": report.ctas,
        "instructions": report.instructions,
        "seconds": round(report.elapsed, 3),
        "model_cycles": report.model_cycles,
        "totals": {
            severity.value: {"findings": groups, "times": times}
            for severity, (groups, times) in report.totals().items()
        },
        "findings": [finding_data(finding) for finding in report.findings],
        "comparisons": [
            {
                "array": one.array,
                "passed": one.passed,
                "wrong": one.wrong,
                "elements": one.elements,
                "largest_error": one.largest_error,
                "at": list(one.at),
            }
            for one in run.comparisons
        ],
    }


def _print(
    ptx: Path, runs: Sequence[Run], document: dict[str, object], output_format: OutputFormat
) -> None:
    from fa4gen.cli.output import print_json, print_table
    from fa4gen.emulator.coverage.words import coverage_lines

    if output_format == "json":
        print_json(document)
        return
    rows = [
        (
            run.report.seed,
            run.report.schedule,
            run.report.verdict.value,
            len(run.report.findings),
            _results(run),
            run.report.ctas,
            run.report.instructions,
            f"{run.report.elapsed:.2f}",
        )
        for run in runs
    ]
    print_table(COLUMNS, rows, right=RIGHT, styles=STYLES)
    for line in (*_details(runs), *coverage_lines(_coverage(runs))):
        click.echo(line)
    if output_format == "github":
        for finding in {
            (one.line, one.kind, one.earlier): one for run in runs for one in run.report.findings
        }.values():
            own = own_line(finding)
            path, number = (own.path, own.line) if own else (ptx, finding.line)
            problem = Problem(finding_text(finding), file=shown_path(path), line=number, column=1)
            error = finding.severity.value == "error"
            annotate("error" if error else "warning", problem)


def _results(run: Run) -> str:
    if not run.comparisons:
        return ""
    return "right" if all(one.passed for one in run.comparisons) else "wrong"


def _details(runs: Sequence[Run]) -> list[str]:
    """Each finding and each wrong array once, with the first run that had it."""
    lines: dict[str, str] = {}
    for run in runs:
        how = f"[seed {run.report.seed}, {run.report.schedule}]"
        for finding in run.report.findings:
            apart = finding.who if finding.kind == "deadlock" else ""
            key = f"{finding.severity} {finding.kind} {finding.line} {finding.earlier} {apart}"
            lines.setdefault(key, finding_text(finding, f" {how}"))
        for one in run.comparisons:
            if not one.passed:
                by = "NaN or infinity" if one.largest_error is None else f"{one.largest_error:.3g}"
                at = ", ".join(map(str, one.at))
                lines.setdefault(
                    f"array {one.array}",
                    f"wrong: {one.wrong} of {one.elements} elements of {one.array}, "
                    f"[{at}] by {by} {how}",
                )
    return list(lines.values())
