"""The ``fa4gen`` command: finds the subcommand, turns errors into messages and exit statuses."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.options import RunOptions, asked_format
from fa4gen.cli.streams import printable_streams, trusted
from fa4gen.errors import ConfigError, Fa4genError, Problem
from fa4gen.termination import exit_on_sigterm, raise_on_sigint
from fa4gen.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
_DISK_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS}
CLOSED_PIPE = 141
"""Exit status when the reader of the results has gone, as shells have it."""


@dataclass(frozen=True)
class LazyCommand:
    """A subcommand that is imported only when it is called."""

    module: str
    """Module whose attribute ``command`` is the click command."""
    short_help: str


COMMANDS: Mapping[str, LazyCommand] = {
    name: LazyCommand(f"fa4gen.cli.{name}", short_help)
    for name, short_help in (
        ("init", "Write a commented config to begin with."),
        ("render", "Write the kernels of configs: .cu, header, manifest."),
        ("check", "Report whether generated files are what configs render to."),
        ("compile", "Compile kernels and lint the compiler's log. No GPU needed."),
        ("verify", "Prove kernels correct against NumPy."),
        ("emulate", "Run any kernel's PTX on the CPU, with checks."),
        ("record", "Run any CUDA host program on the emulator, without a GPU."),
        ("sweep", "Render, compile and verify a matrix of configs."),
        ("tune", "Choose kernels for problems: a table, and the kernels that it names."),
        ("bench", "Time kernels on the GPU against their peers."),
        ("vendor", "Take kernels into another project, with a C launcher."),
        ("explain", "Show what a config resolves to, and why."),
        ("diff", "Show what two configs' kernels differ in."),
        ("sass", "Show the machine code of each source line."),
        ("list", "List configs and what they are."),
        ("templates", "Show what kernels are made from, and copy it to change it."),
        ("schema", "Print the JSON Schema of configs and other files, for editors."),
        ("doctor", "Show what this machine can compile and run."),
    )
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def __init__(
        self, *args: Any, lazy_commands: Mapping[str, LazyCommand] | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.lazy_commands = dict(lazy_commands or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        return [*self.lazy_commands, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or None for an unknown name."""
        lazy = self.lazy_commands.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        command = import_module(lazy.module).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{lazy.module}.command is not a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that ``args`` starts with; an unknown name gets the nearest one."""
        if args and args[0] not in self.lazy_commands and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.lazy_commands, n=1)
            hint = (
                f"Did you mean {near[0]!r}?"
                if near
                else f"Commands: {', '.join(self.lazy_commands)}."
            )
            raise click.UsageError(f"there is no command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the command line, which prints ``--help`` where it is asked for."""
        with _closed_pipes():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _closed_pipes():
            status = super().invoke(ctx)
            sys.stdout.flush()
            return status

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands from the table, so that ``--help`` imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, lazy.short_help) for name, lazy in self.lazy_commands.items()]
            )


@click.group(
    cls=LazyGroup,
    lazy_commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done; 1 a kernel failed to compile or verify; 2 usage or config; "
    "3 generated files not current; 4 a needed capability is absent.",
)
@click.version_option(__version__, prog_name="fa4gen", message="%(prog)s %(version)s")
def group() -> None:
    """Generate specialised CUDA kernels from YAML files, compile them, and prove them correct."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line ``args`` (sys.argv when None) and return the exit status.

    Anything that a user can cause ends as a message on stderr; under ``--format json`` the
    problems are also the document on stdout. Other exceptions are bugs and keep their traceback.
    """
    args = sys.argv[1:] if args is None else list(args)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (to the end)
    if sys.stdout is None:
        print("error: stdout is closed: there is nowhere to print results", file=sys.stderr)
        return ConfigError.exit_status
    if isinstance(sys.stdout, io.TextIOWrapper):  # do not fail on a name that cannot be encoded
        sys.stdout.reconfigure(errors="backslashreplace")
    with printable_streams():
        return _main(args)


def _main(args: Sequence[str]) -> int:
    run = RunOptions(asked_format(args))
    _take_signals()
    try:
        status = _run(args, run)
        sys.stdout.flush()
    except KeyboardInterrupt:  # while an error is reported
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError as error:  # while an error's document is printed
        if error.filename is not None:
            raise
        _discard_stdout()
        return CLOSED_PIPE
    except OSError as error:
        if not _stdout_fails():
            raise
        _discard_stdout()
        run.output_format = "text"
        reason = (error.strerror or "").lower()
        problem = Problem(
            f"results cannot be written to stdout: {reason}",
            "Make room, or print to another place.",
        )
        return _report((problem,), ConfigError.exit_status, run)
    return status


def _run(args: Sequence[str], run: RunOptions) -> int:
    """Run the command line, report the error that ended it and return the exit status."""
    try:
        status = group.main(
            args,
            prog_name="fa4gen",
            standalone_mode=False,
            obj=run,
        )
        sys.stdout.flush()
    except click.Abort:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except click.ClickException as error:
        return _report_usage(error, run)
    except Fa4genError as error:
        return _report(error.problems, error.exit_status, run)
    except OSError as error:
        if error.filename is not None:
            return _report((_path_problem(error),), ConfigError.exit_status, run)
        if _stdout_fails() or not (problem := _disk_problem(error)):
            raise
        return _report((problem,), ConfigError.exit_status, run)
    return status if isinstance(status, int) else 0


def _disk_problem(error: OSError) -> Problem | None:
    """Return an error of a disk, which names no file; None for any other."""
    try:
        Path.cwd()
    except OSError:
        return Problem("the current folder is gone", "Change to a folder that exists.")
    if error.errno not in _DISK_ERRORS:
        return None
    reason = (error.strerror or "").lower()
    return Problem(f"a file cannot be written: {reason}", "Make room, or choose another place.")


@contextmanager
def _closed_pipes() -> Iterator[None]:
    """End with CLOSED_PIPE when the reader of stdout has gone; click would end with 1."""
    try:
        yield
    except BrokenPipeError as error:
        if error.filename is not None:  # a named pipe of the user's
            raise
        _discard_stdout()
        raise click.exceptions.Exit(CLOSED_PIPE) from error


def _stdout_fails() -> bool:
    """Whether nothing can be written to stdout, as on a full disk; tried with an empty line."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def _discard_stdout() -> None:
    """Let nothing more be written to a stdout that takes no more, not even when Python exits."""
    if isinstance(trusted(sys.stdout), io.TextIOWrapper):
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        # What the old one still holds is not written: under a limit of sizes that can fail as well.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (to the end)


def _take_signals() -> None:
    """Let Ctrl-C and SIGTERM end the command like an error would: nothing half-written or left."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as __main__ left it
        raise_on_sigint()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        exit_on_sigterm()


def _report(problems: tuple[Problem, ...], status: int, run: RunOptions) -> int:
    from fa4gen.cli.output import report_problems

    report_problems(problems, status, run.output_format)
    return status


def _report_usage(error: click.ClickException, run: RunOptions) -> int:
    if run.output_format == "text":
        error.show()
        return error.exit_code
    return _report((Problem(error.format_message()),), error.exit_code, run)


def _path_problem(error: OSError) -> Problem:
    reason = (error.strerror or type(error).__name__).lower()
    return Problem(f"{reason}: {error.filename}", "Check the path and its permissions.")


if __name__ == "__main__":
    sys.exit(main())
