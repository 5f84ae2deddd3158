"""``fa4gen record``: runs a host program over a stand-in for the CUDA driver, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.findings import finding_data, finding_text
from fa4gen.cli.options import FilePath, OutputFormat, bytes_given, format_option
from fa4gen.config.file_kinds import refuse_path
from fa4gen.errors import ConfigError, Fa4genError, MissingCapabilityError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.emulator.recorder.recorder import Recorded

SCHEMA_VERSION = 1
_STDERR = 2
COLUMNS = ("launch", "entry", "grid", "block", "verdict", "findings", "seconds")
RIGHT = ("launch", "findings", "seconds")
STYLES = {"error": "bold red", "isa": "yellow", "review": "yellow", "incomplete": "yellow"}


@click.command(name="record")
@click.argument("folder", type=FilePath(path_type=Path, file_okay=False))
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--arch",
    type=click.Choice(("sm_90a", "sm_100a", "sm_103a")),
    default="sm_90a",
    show_default=True,
    help="The device that the program is to see.",
)
@click.option(
    "--ptx",
    "ptx_files",
    multiple=True,
    type=FilePath(path_type=Path, exists=True),
    metavar="PATH",
    help="PTX of kernels that the program loads as machine code: a file, or a folder in which "
    "the program's compiler leaves it. May be repeated.",
)
@click.option(
    "--execute/--no-execute",
    default=True,
    help="Run each launch, so that the program gets its results; or only record it.",
)
@click.option("--checks/--no-checks", default=True, help="Make all checks, or none.")
@click.option(
    "--memory",
    type=click.IntRange(min=1, max=128),
    default=16,
    show_default=True,
    metavar="GIB",
    help="Device memory; unused memory costs nothing.",
)
@click.option(
    "--max-memory",
    callback=bytes_given,
    metavar="SIZE",
    help="Memory that fa4gen itself may use for a launch, such as 8GiB; a launch that needs more "
    "gets CUDA_ERROR_OUT_OF_MEMORY. Default: half of what is free.",
)
@format_option
def command(
    folder: Path,
    program: tuple[str, ...],
    arch: str,
    ptx_files: tuple[Path, ...],
    execute: bool,
    checks: bool,
    memory: int,
    max_memory: int | None,
    output_format: OutputFormat,
) -> int:
    """Run PROGRAM, whose launches are written below FOLDER and run in the emulator.

    Write `fa4gen record FOLDER -- PROGRAM ARGUMENTS`. PROGRAM may be anything that loads
    libcuda.so.1: C, C++, Python. Each launch becomes a folder for `fa4gen emulate`. Ends with
    status 0 when the program did and no launch has an error, with 1 otherwise.
    """
    from fa4gen.verify.blas import use_one_blas_thread

    use_one_blas_thread()  # before anything imports NumPy
    from fa4gen.emulator import EmulatorError
    from fa4gen.emulator.recorder.build import NoCompilerError
    from fa4gen.emulator.recorder.recorder import Options, recording
    from fa4gen.toolchain.cache import Cache

    if problems := [p for path in ptx_files if path.is_file() and (p := refuse_path(path, "ptx"))]:
        raise ConfigError(*problems)
    options = Options(
        arch,
        ptx_files,
        execute=execute,
        checks=checks,
        memory=memory << 30,
        max_memory=max_memory,
    )
    cache = Cache.default().root / "recorder"
    try:
        with recording(folder, cache, options) as recorder:
            status = _run(program, recorder.environment(), output_format)
            launches = list(recorder.launches)
    except NoCompilerError as error:
        raise MissingCapabilityError(Problem(str(error), "Install one, such as gcc.")) from None
    except EmulatorError as error:
        raise Fa4genError(Problem(str(error))) from None
    passed = status == 0 and all(_good(one) for one in launches)
    _print(program, status, launches, passed, output_format)
    return 0 if passed else 1


def _run(program: Sequence[str], environment: dict[str, str], output_format: OutputFormat) -> int:
    """Return the exit status of the program; under json its output goes to stderr."""
    import subprocess

    try:
        return subprocess.run(
            program,
            env=environment,
            check=False,
            stdout=_STDERR if output_format == "json" else None,
        ).returncode
    except OSError as error:
        if problem := refuse_path(Path(program[0]), "program"):
            raise ConfigError(problem) from None
        reason = (error.strerror or str(error)).lower()
        raise click.UsageError(f"cannot run {program[0]}: {reason}") from None


def _good(one: Recorded) -> bool:
    return one.report is None or one.report.verdict.value in ("clean", "isa", "review")


def _print(
    program: Sequence[str],
    status: int,
    launches: Sequence[Recorded],
    passed: bool,
    output_format: OutputFormat,
) -> None:
    from fa4gen.cli.output import print_json, print_table
    from fa4gen.emulator.ptx.mangled import shown_name

    if output_format == "json":
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "program": list(program),
                "status": status,
                "passed": passed,
                "launches": [_data(one) for one in launches],
            }
        )
        return
    print_table(COLUMNS, [_row(one) for one in launches], right=RIGHT, styles=STYLES)
    lines: dict[str, None] = {}
    for one in launches:
        for finding in one.report.findings if one.report else ():
            lines.setdefault(f"{shown_name(one.launch.entry)}: {finding_text(finding)}")
    for line in lines:
        click.echo(line)
    if status:
        click.echo(f"{program[0]} ended with status {status}", err=True)


def _row(one: Recorded) -> tuple[object, ...]:
    from fa4gen.emulator.ptx.mangled import shown_name

    launch, report = one.launch, one.report
    return (
        launch.number,
        shown_name(launch.entry),
        " x ".join(map(str, launch.grid)),
        " x ".join(map(str, launch.block)),
        report.verdict.value if report else "not run",
        len(report.findings) if report else "",
        f"{report.elapsed:.2f}" if report else "",
    )


def _data(one: Recorded) -> dict[str, object]:
    launch, report = one.launch, one.report
    found: dict[str, object] = {
        "number": launch.number,
        "entry": launch.entry,
        "folder": str(one.folder),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "cluster": list(launch.cluster),
        "dynamic_shared": launch.dynamic_shared,
        "verdict": None,
        "findings": [],
    }
    if report:
        found["verdict"] = report.verdict.value
        found["seconds"] = round(report.elapsed, 3)
        found["findings"] = [finding_data(finding) for finding in report.findings]
    return found
