"""``fa4gen vendor verify``: verify's cases through the C code of vendored folders."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    compiler_option,
    format_option,
    jobs_option,
    require_gpu_option,
    show_coverage_option,
    strict_option,
)
from fa4gen.counts import counted
from fa4gen.errors import NotCurrentError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.vendoring.lock import Lock
    from fa4gen.vendoring.verify import FolderVerdict
    from fa4gen.verify.verdict import Verdict

MOST_SHOWN = 8
"""Files that a message names."""


@click.command(name="verify")
@click.argument("folder", type=FilePath(path_type=Path), metavar="[DIR]", required=False)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    help="Seed of the inputs; a new one each time when not given. It is printed.",
)
@click.option(
    "--cases",
    "patterns",
    multiple=True,
    metavar="GLOB",
    help="Only the cases of this name, which prove nothing for the lock.",
)
@click.option(
    "--run-changed",
    is_flag=True,
    help="Compile and run C code of DIR also where it is not as fa4gen.lock has it. Without this, "
    "the command asks on a terminal, and refuses elsewhere.",
)
@strict_option
@show_coverage_option
@require_gpu_option
@compiler_option
@jobs_option
@format_option
def command(
    folder: Path | None,
    seed: int | None,
    patterns: tuple[str, ...],
    run_changed: bool,
    strict: bool,
    show_coverage: bool,
    require_gpu: bool,
    compiler: str,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Build DIR with the host's compiler and run verify's cases through it.

    Compiles and runs the C code of DIR, and says so before it does. Ends with status 1 when a
    kernel fails; what is proved is written into fa4gen.lock, and counts until a file changes that
    decides a run. Without DIR, in every folder of the project.
    """
    from fa4gen.vendoring.targets import folders_to_read

    call = VerifyCall(
        seed,
        patterns,
        run_changed,
        strict,
        show_coverage,
        require_gpu,
        compiler,
        jobs,
        output_format,
    )
    return call.run([target.folder for target in folders_to_read(folder)])


@dataclass(frozen=True)
class VerifyCall:
    """A call with its options."""

    seed: int | None
    patterns: tuple[str, ...]
    run_changed: bool
    strict: bool
    show_coverage: bool
    require_gpu: bool
    compiler: str
    jobs: int
    output_format: OutputFormat

    def run(self, folders: Sequence[Path]) -> int:
        """Verify every kernel of ``folders``, record the proofs, and return the exit status."""
        from fa4gen.verify.blas import use_one_blas_thread

        use_one_blas_thread()  # before anything imports NumPy
        from fa4gen.cli.output import note
        from fa4gen.cli.verify import (
            check_cases,
            document_of,
            exit_status_of,
            new_seed,
            print_verdicts,
        )
        from fa4gen.config.paths import shown_path
        from fa4gen.designs.build import build_plan
        from fa4gen.vendoring.from_lock import locked_configs
        from fa4gen.vendoring.lock import read_lock
        from fa4gen.verify.run import VerifyOptions

        locks = [read_lock(folder) for folder in folders]  # all are ours before any is verified
        if self.require_gpu:
            from fa4gen.runtime.device import require_device

            for arch in dict.fromkeys(kernel.arch for lock in locks for kernel in lock.kernels):
                require_device(arch)
        seed = new_seed() if self.seed is None else self.seed
        planned = [
            (loaded, build_plan(loaded.config))
            for lock in locks
            for loaded in locked_configs(lock.kernels)
        ]
        check_cases(planned, VerifyOptions(seed, self.patterns))
        changed = _changed(folders, locks)
        if changed and not self.run_changed:
            _ask_for(changed)
        for folder in folders:
            note(f"{shown_path(folder)}: its C code is compiled and run here")
        found: list[FolderVerdict] = []
        notes: list[str] = []
        for folder in folders:
            verdicts, lines = self._one(folder, seed)
            found += verdicts
            notes += lines
        verdicts_alone: list[Verdict] = [item.verdict for item in found]
        document = document_of(verdicts_alone, VerifyOptions(seed, self.patterns))
        print_verdicts(
            verdicts_alone, document, self.output_format, show_coverage=self.show_coverage
        )
        for text in notes:
            note(text)
        status = exit_status_of(verdicts_alone)
        if any(verdict.stopped for verdict in verdicts_alone):
            # A kernel that hangs would keep the process from ending, too.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        return status

    def _one(self, folder: Path, seed: int) -> tuple[list[FolderVerdict], list[str]]:
        from fa4gen.cli.output import note
        from fa4gen.cli.progress import progress
        from fa4gen.config.paths import shown_path
        from fa4gen.vendoring.lock import read_lock
        from fa4gen.vendoring.proofs import Outcome, hashes_on_disk, record_proofs
        from fa4gen.vendoring.verify import verify_folder

        lock = read_lock(folder)
        hashes = hashes_on_disk(folder, lock)
        count = len(lock.kernels)
        note(f"verifying {counted(count, 'kernel')} of {shown_path(folder)}, seed {seed}")
        with progress(count, "kernels") as bar:
            verdicts = verify_folder(
                folder,
                seed=seed,
                jobs=self.jobs,
                progress=lambda _: bar.advance(),
                patterns=self.patterns,
                strict=self.strict,
                compiler=self.compiler,
            )
        agreed = ("--run-changed",) if self.run_changed else ()
        again = ("fa4gen", "vendor", "verify", shown_path(folder), *agreed)
        verdicts = [replace(v, verdict=replace(v.verdict, again=again)) for v in verdicts]
        lines = [f"note: {text}" for verdict in verdicts for text in verdict.notes]
        if self.patterns:
            lines.append("Only some cases ran: nothing is recorded in fa4gen.lock.")
            return verdicts, lines
        outcomes = [
            Outcome(v.symbol, v.verdict.proof, v.passed, v.verdict.num_cases) for v in verdicts
        ]
        for symbol in record_proofs(folder, hashes, outcomes, seed):
            lines.append(f"recorded in {shown_path(folder)}/fa4gen.lock: {symbol}")
        return verdicts, lines


def _changed(folders: Sequence[Path], locks: Sequence[Lock]) -> dict[Path, dict[str, str]]:
    """Return, by folder, the C code that is not as its lock has it; nothing for other folders."""
    from fa4gen.vendoring.changed_code import changed_code

    found = {
        folder: changed_code(folder, lock) for folder, lock in zip(folders, locks, strict=True)
    }
    return {folder: changed for folder, changed in found.items() if changed}


def _ask_for(changed: Mapping[Path, Mapping[str, str]]) -> None:
    """Ask on a terminal whether changed code is to be run; NotCurrentError where it is not."""
    from fa4gen.cli.output import note

    problems = [_refusal(folder, files) for folder, files in changed.items()]
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotCurrentError(*problems)
    for problem in problems:
        note(str(problem))
    if not click.confirm("Compile and run it?", default=False, err=True):
        raise NotCurrentError(Problem("nothing was compiled or run"))


def _refusal(folder: Path, files: Mapping[str, str]) -> Problem:
    from fa4gen.config.paths import shown_path

    listed = [f"{path} ({why})" for path, why in list(files.items())[:MOST_SHOWN]]
    if len(files) > MOST_SHOWN:
        listed.append(f"and {counted(len(files) - MOST_SHOWN, 'file')} more")
    file = shown_path(folder)
    return Problem(
        "verify compiles and runs C code here, and some of it is not as fa4gen.lock has it: "
        f"{', '.join(listed)}",
        f"See it with fa4gen vendor check {file} --diff; --run-changed agrees to run it.",
        file,
    )
