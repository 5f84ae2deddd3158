"""``fa4gen vendor``: kernels into other people's projects, with all that it takes to call them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.generated import diff_option, templates_option
from fa4gen.cli.options import (
    OutputFormat,
    configs_argument,
    force_option,
    format_option,
    jobs_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.render.environment import TemplateSet
    from fa4gen.vendor.model import Request, VendoredKernel

ADAPTERS = ("c", "cmake", "torch", "jax", "tvm-ffi", "python")
ALWAYS = ("c", "cmake")


@click.command(name="vendor")
@configs_argument
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the folder DIR.",
)
@click.option("--prefix", metavar="P", help="What all C names and files begin with.")
@click.option(
    "--adapter",
    "adapters",
    type=click.Choice(ADAPTERS),
    multiple=True,
    help="Also write files for this; c and cmake always come. May be repeated.",
)
@click.option(
    "--compiler",
    type=click.Choice(("auto", "nvrtc", "nvcc")),
    default="auto",
    show_default=True,
    help="auto is nvrtc, which needs no CUDA toolkit.",
)
@templates_option
@force_option
@click.option("--dry-run", is_flag=True, help="Say what would be done and do nothing.")
@diff_option
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    into: Path | None,
    prefix: str | None,
    adapters: tuple[str, ...],
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
    or an interruption leaves every file as it was, or is made good by the next run.
    """
    from fa4gen.cli.output import print_json
    from fa4gen.cli.vendor_report import plan_data, print_plan
    from fa4gen.config.find import find_configs
    from fa4gen.render.environment import open_templates
    from fa4gen.vendor.assemble import assemble
    from fa4gen.vendor.kernels import load_configs
    from fa4gen.vendor.model import Request
    from fa4gen.vendor.names import check_prefix
    from fa4gen.vendor.transaction import recover
    from fa4gen.vendor.write import apply_plan, plan_write

    if into is None or prefix is None or not configs:
        raise click.UsageError("give CONFIG, --into DIR and --prefix P")
    request = Request(check_prefix(prefix), configs, _beside_c(adapters))
    template_set = open_templates(templates)
    loaded = load_configs(find_configs(configs))
    kernels = _build(request, loaded, template_set, compiler, jobs)
    assembled = assemble(request, kernels, template_set)
    if not dry_run:
        recover(into)
    plan = plan_write(assembled, into, force)
    if not dry_run:
        apply_plan(plan)
    if output_format == "json":
        print_json(plan_data(plan, dry_run=dry_run, diff=diff))
    else:
        print_plan(plan, dry_run=dry_run, diff=diff)
    return 0


def _beside_c(adapters: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in ADAPTERS if name in adapters if name not in ALWAYS))


def _build(
    request: Request,
    loaded: Sequence[LoadedConfig],
    templates: TemplateSet,
    compiler: str,
    jobs: int,
) -> list[VendoredKernel]:
    """Render and compile, and say how far it has come."""
    from fa4gen.cli.output import note
    from fa4gen.cli.progress import progress
    from fa4gen.vendor.kernels import compile_kernels, render_kernels

    planned = render_kernels(loaded, request.prefix, templates)
    note(f"compiling {'1 kernel' if len(planned) == 1 else f'{len(planned)} kernels'}")
    with progress(len(planned), "kernels") as bar:
        return compile_kernels(
            planned, compiler=compiler, jobs=jobs, on_done=lambda _: bar.advance()
        )
