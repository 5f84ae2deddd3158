"""``fa4gen vendor``: kernels into other people's projects, with all that it takes to call them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fa4gen.cli.generated import diff_option, templates_option
from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    configs_argument,
    force_option,
    format_option,
    jobs_option,
    require_gpu_option,
    set_option,
    show_coverage_option,
    strict_option,
)
from fa4gen.cli.vendor_recover import make_good
from fa4gen.counts import counted
from fa4gen.vendor.targets import ADAPTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.settings import Setting
    from fa4gen.render.environment import TemplateSet
    from fa4gen.vendor.check import FolderVerdict
    from fa4gen.vendor.lock import Lock
    from fa4gen.vendor.model import Request, VendoredKernel
    from fa4gen.vendor.targets import Target
    from fa4gen.vendor.write import FolderPlan

AnyCommand = TypeVar("AnyCommand", bound="Callable[..., Any]")


def _action(name: str, what: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return an option that takes a folder, or stands alone for all folders of the project."""
    return click.option(
        name,
        is_flag=False,
        flag_value="",
        metavar="[DIR]",
        help=f"{what} Without DIR, every folder that the project's file names.",
    )


@click.command(name="vendor")
@configs_argument
@set_option
@click.option("--into", type=FilePath(path_type=Path), metavar="DIR", help="The folder to write.")
@click.option("--prefix", metavar="P", help="What all its C names and files begin with.")
@click.option(
    "--adapter",
    "adapters",
    type=click.Choice(ADAPTERS),
    multiple=True,
    help="Also write files for this; c and cmake always come. May be repeated.",
)
@_action("--check", "Tell whether DIR is as fa4gen wrote it and would write it today.")
@_action("--update", "Bring DIR up to date; edits are merged.")
@_action("--verify", "Build DIR with the host's compiler and run verify's cases through it.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    help="Of --verify: seed of the inputs; a new one each time when not given. It is printed.",
)
@click.option(
    "--cases",
    "patterns",
    multiple=True,
    metavar="GLOB",
    help="Of --verify: only the cases of this name, which prove nothing for the lock.",
)
@click.option(
    "--run-changed",
    is_flag=True,
    help="Of --verify: compile and run C code of DIR also where it is not as fa4gen.lock has it. "
    "Without this, --verify asks on a terminal, and refuses elsewhere.",
)
@strict_option
@show_coverage_option
@require_gpu_option
@click.option(
    "--compiler",
    type=click.Choice(("auto", "nvrtc", "nvcc")),
    default="auto",
    show_default=True,
    help="auto is nvrtc, which needs no CUDA toolkit.",
)
@templates_option
@force_option
@click.option("--dry-run", is_flag=True, help="Print what would be done and do nothing.")
@diff_option
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    settings: tuple[Setting, ...],
    into: Path | None,
    prefix: str | None,
    adapters: tuple[str, ...],
    check: str | None,
    update: str | None,
    verify: str | None,
    seed: int | None,
    patterns: tuple[str, ...],
    run_changed: bool,
    strict: bool,
    show_coverage: bool,
    require_gpu: bool,
    compiler: str,
    templates: Path | None,
    force: bool,
    dry_run: bool,
    diff: bool,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Write kernels as a folder for another project: C launcher, compiled kernels, build files.

    The folder needs nothing of fa4gen to be built: a C99 or C++17 compiler will do. fa4gen.lock in
    it says what each file came from. All is made before anything is written; a disk that fills up
    leaves every file as it was, and an interrupted run is made good by the next.

    CONFIG may be a set of kernels (NAME.set.yaml) or a tuning table (NAME.tuning.yaml): its kernels
    are taken, of which P_best picks one for a problem, by the table's regions first.

    Without CONFIG, --into and --prefix, and with actions without DIR, the project's file says what
    is meant: fa4gen.toml, or [tool.fa4gen] in pyproject.toml, here or above.

    --check ends with status 3 when a file was edited, is missing, is not fa4gen's, or would come
    out differently today. --update takes the configs that are in the lock, or the project's, or
    CONFIG; it merges edits, keeps FILE.orig beside a file with conflicts, and ends with status 3
    then. A file that was deleted stays deleted, but for --force. --verify compiles and runs the C
    code of DIR, and says so before it does. It ends with status 1 when a kernel fails; what it
    proves is written into fa4gen.lock, and counts until a file changes that decides a run.
    """
    from fa4gen.vendor.targets import Asked, targets_to_write, targets_with_lock

    actions = {"--check": check, "--update": update, "--verify": verify}
    given = [name for name, value in actions.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other")
    if given and into is not None:
        raise click.UsageError(f"{given[0]} takes the folder itself: {given[0]} {into}")
    asked = Asked(configs, prefix, adapters, templates, settings)
    if settings and not configs:
        raise click.UsageError("--set changes the configs that are named: give CONFIG, too")
    of_verify = (seed is not None, patterns, run_changed, strict, show_coverage, require_gpu)
    if verify is None and any(of_verify):
        raise click.UsageError(
            "--seed, --cases, --run-changed, --strict, --show-coverage and --require-gpu are "
            "options of --verify"
        )
    reading = check if check is not None else verify
    if reading is not None:
        if configs or prefix or adapters:
            raise click.UsageError(
                f"{given[0]} takes one folder, and no CONFIG, --prefix or --adapter"
            )
        targets = targets_with_lock(Path(reading) if reading else None, asked)
        if verify is not None:
            from fa4gen.cli.vendor_verify import VerifyCall

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
            return call.run([target.folder for target in targets])
        return _check(targets, diff, output_format)
    if update is not None:
        targets = targets_with_lock(Path(update) if update else None, asked)
    elif into is not None and (configs or prefix) and not (configs and prefix is not None):
        raise click.UsageError("give CONFIG, --into DIR and --prefix P")
    elif configs and into is None:
        raise click.UsageError("give --into DIR and --prefix P with CONFIG")
    else:
        targets = targets_to_write(into, asked)
    work = _Work(compiler, jobs, force, dry_run, merges=update is not None)
    plans = [work.plan(target) for target in targets]
    if not dry_run:
        from fa4gen.vendor.write import apply_plan

        for plan in plans:
            apply_plan(plan)
    return _report(plans, dry_run, diff, output_format)


class _Work:
    """Makes of each folder a plan: renders, compiles, compares with what is there."""

    def __init__(
        self, compiler: str, jobs: int, force: bool, dry_run: bool, *, merges: bool
    ) -> None:
        self.compiler = compiler
        self.jobs = jobs
        self.force = force
        self.dry_run = dry_run
        self.merges = merges

    def plan(self, target: Target) -> FolderPlan:
        from fa4gen.vendor.assemble import assemble
        from fa4gen.vendor.locked import locked_configs, locked_request
        from fa4gen.vendor.transaction import refuse_pending
        from fa4gen.vendor.update import plan_update
        from fa4gen.vendor.write import plan_write

        if self.dry_run:
            refuse_pending(target.folder)
        else:
            make_good(target.folder)
        lock = self._lock(target)
        if target.request is not None:
            request, loaded = target.request, list(target.loaded)
        else:
            assert lock is not None
            request, loaded = locked_request(lock), locked_configs(lock)
        templates = _templates(target)
        kernels = self._compile(request, loaded, templates)
        if lock is None:
            return plan_write(assemble(request, kernels, templates), target.folder, self.force)
        assembled = assemble(request, kernels, templates)
        if self.merges:
            return plan_update(assembled, target.folder, lock, self.force)
        return plan_write(assembled, target.folder, self.force)

    def _lock(self, target: Target) -> Lock | None:
        """Return the folder's lock; None for a new folder, and for one to be overwritten."""
        from fa4gen.errors import ConfigError
        from fa4gen.vendor.lock import read_lock
        from fa4gen.vendor.on_disk import is_free

        if target.request is not None and is_free(target.folder):
            return None
        try:
            return read_lock(target.folder)
        except ConfigError:
            if self.merges:
                raise
            return None  # plan_write says what is wrong, or overwrites by force

    def _compile(
        self, request: Request, loaded: Sequence[LoadedConfig], templates: TemplateSet
    ) -> list[VendoredKernel]:
        from fa4gen.cli.output import note
        from fa4gen.cli.progress import progress
        from fa4gen.vendor.kernels import compile_kernels

        note(f"compiling {counted(len(loaded), 'kernel')}")
        with progress(len(loaded), "kernels") as bar:
            return compile_kernels(
                loaded,
                request.prefix,
                templates,
                compiler=self.compiler,
                jobs=self.jobs,
                on_done=bar.advance,
            )


def _report(
    plans: Sequence[FolderPlan], dry_run: bool, diff: bool, output_format: OutputFormat
) -> int:
    from fa4gen.cli.output import print_json
    from fa4gen.cli.vendor_report import annotate_conflicts, plan_data, print_plan
    from fa4gen.errors import NotCurrentError

    status = NotCurrentError.exit_status if any(plan.conflicts for plan in plans) else 0
    if output_format == "json":
        folders = [plan_data(plan, dry_run=dry_run, diff=diff) for plan in plans]
        print_json({"exit_status": status, "folders": folders})
    else:
        for plan in plans:
            print_plan(plan, dry_run=dry_run, diff=diff)
    for plan in plans:
        annotate_conflicts(plan, output_format)
    return status


def _templates(target: Target) -> TemplateSet:
    """Open the target's templates; say so where they are not only the shipped ones."""
    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path
    from fa4gen.render.environment import open_templates

    if target.templates is not None:
        note(
            f"templates of {shown_path(target.templates)} take precedence over the shipped ones, "
            f"as the project's file says"
        )
    return open_templates(target.templates)


def _check(targets: Sequence[Target], diff: bool, output_format: OutputFormat) -> int:
    from fa4gen.cli.output import print_json
    from fa4gen.cli.vendor_report import annotate_check, check_data, print_check
    from fa4gen.errors import NotCurrentError
    from fa4gen.vendor.check import check_folder

    verdicts: list[FolderVerdict] = [
        check_folder(
            target.folder,
            _templates(target),
            asked=target.asked,
            allowed=target.allow,
        )
        for target in targets
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
