"""``fa4gen bench``: times kernels on the GPU against their peers."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.options import (
    FilePath,
    OutputFormat,
    compiler_option,
    configs_argument,
    format_option,
    jobs_option,
    set_option,
    shipped_option,
)
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.bench.family import Family
    from fa4gen.bench.peers import Peers
    from fa4gen.bench.report import Table
    from fa4gen.bench.results import ConfigResult
    from fa4gen.bench.run import BenchOptions
    from fa4gen.bench.vendored import VendoredLibrary
    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.plans import Plan
    from fa4gen.errors import Problem
    from fa4gen.runtime.device import DeviceInfo
    from fa4gen.verify.build import BuiltKernel


@click.command(name="bench")
@configs_argument
@shipped_option
@set_option
@click.option(
    "--sizes",
    metavar="N,N,...",
    help="Attention: numbers of rows of the sequences; BATCHxROWSxKEYS, or BATCHxKEYS of one row, "
    "with @HEADS/KEYHEADS or without; lognormal, equal, giant or dwarfs, which are batches; by "
    "default what the kernel is for. Matrix products: m = n = k, "
    "MxNxK, BATCHxMxNxK or GROUPSxROWS:NxK; uneven groups, GROUPS/ROWS@SEED:NxK, "
    "ROWS in all dealt at random, or the rows of each, ROWS+ROWS+...:NxK. k means 1024.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="N",
    help="How many rounds the kernels of a size take turns.",
)
@click.option(
    "--fa3",
    type=FilePath(path_type=Path, exists=True, dir_okay=False),
    metavar="LIB",
    help="A FlashAttention-3 library for torch.ops.load_library, as a peer of attention.",
)
@click.option("--no-peers", is_flag=True, help="Time our kernels alone.")
@click.option(
    "--vendored",
    is_flag=True,
    help="Also vendor the kernels, build their C launcher and time it: the kernels through it, and "
    "how long one launch occupies the host. Needs a C compiler.",
)
@templates_option
@compiler_option
@click.option(
    "--json",
    "json_path",
    type=FilePath(path_type=Path),
    metavar="FILE.json",
    help="Also write everything that was measured as JSON.",
)
@click.option(
    "--plot",
    type=FilePath(path_type=Path),
    metavar="FILE.svg",
    help="Also draw the ratios to the fastest peer, for light and dark pages.",
)
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    shipped: bool,
    settings: tuple[Setting, ...],
    sizes: str | None,
    rounds: int,
    fa3: Path | None,
    no_peers: bool,
    vendored: bool,
    templates: Path | None,
    compiler: str,
    json_path: Path | None,
    plot: Path | None,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Time kernels of one family on the GPU against their peers, in turn in one run.

    Attention: a number of rows has 16384 tokens (batch times rows) and 2048 columns (heads times
    depth) of random numbers. A batch has 4096 columns of query heads that share 8 key heads:
    2x512x16k is 2 sequences of 512 new rows over 16384 keys each, 16x8k is 16 of one new row over
    8192 keys, and 16x8k@16/1 has 16 query heads that share one key head; lognormal is 33 sequences
    of 78 to 6775 rows, equal 16 of 2048, giant one of 16384 and 400 of 33, dwarfs 1024 of 48. Peers
    are cuDNN and FlashAttention-2 through PyTorch where it can be imported, and FlashAttention-3
    where --fa3 names its library; where sequences differ in length or keys are in pages,
    FlashAttention-3 alone, which gets the same tensors. A causal mask counts half at a number of
    rows; otherwise the pairs that a mask leaves count. Of kernels with packed heads, which memory
    limits, figures are GB/s of the keys and values that count; their peers are FlashAttention-3
    with splits of its own choice, and floor, a kernel that only reads as many bytes.

    Matrix products: alpha is 1, beta 0.5 with a matrix as residual and 1 with a bias. The peer is
    cuBLAS through PyTorch: mm without a residual, addmm with one, scaled_mm with scales of blocks.
    Where a run has configs with a
    residual and without, it also says what the residual costs.
    32/8192@5:4096x7168 deals 8192 rows to 32 groups: to group i with a chance like exp(z_i), where
    z_i are drawn from N(0, 1) with seed 5 (0 where it is left out); some groups may have no rows.
    The rows of each are printed and in the JSON. Groups of up to 128 rows on average have figures
    in GB/s of the rows and weights that have to be read, with floor as a peer.

    Before anything is timed, outputs are compared with float64 and with the peers'. Other figures
    are TFLOP/s; all are from medians of CUDA-event timings with a cold L2.
    """
    from fa4gen.bench.run import BenchOptions
    from fa4gen.config.selection import select_configs
    from fa4gen.designs.registry import FAMILIES
    from fa4gen.render.batch import plan_configs
    from fa4gen.runtime.device import require_device

    _check_files(json_path, plot)
    paths = select_configs(configs, shipped=shipped)
    planned = plan_configs(paths, settings)
    if shipped:  # without the kinds of kernels that bench has nothing for
        planned = [pair for pair in planned if FAMILIES[pair[1].config.kernel].bench is not None]
        paths = [loaded.path for loaded, _ in planned]
    plans = [plan for _, plan in planned]
    family = _one_family(plans, sizes, fa3)
    parsed = family.parse_sizes(family.default_sizes if sizes is None else sizes)
    options = BenchOptions(parsed, rounds, family=family.name)
    arches = dict.fromkeys(plan.arch for plan in plans)
    device, *_ = [require_device(arch) for arch in arches]
    peers = _find_peers(family, fa3, no_peers)
    notes = (*peers.notes, *_own_templates(templates))
    files = [str(path) for path in paths]
    with _vendored_library(files, settings, templates, vendored) as library:
        results = _measure(
            files,
            settings,
            templates,
            options,
            peers,
            library,
            compiler,
            jobs,
            output_format,
        )
    document = _document(results, options, device, notes)
    if output_format == "json":
        from fa4gen.cli.output import print_json

        print_json(document)
    if json_path is not None:
        import json

        from fa4gen.render.write import write_text

        write_text(json_path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    if plot is not None and any(result.sizes for result in results):
        from fa4gen.bench.plot import draw_plot

        draw_plot(document, plot)
    return _conclude(results, output_format)


def _one_family(plans: Sequence[Plan], sizes: str | None, fa3: Path | None) -> Family:
    """Return the family of all plans; ConfigError for two, or for an option of the other one."""
    from fa4gen.bench.family import family_of
    from fa4gen.errors import ConfigError, Problem

    families = [family_of(plan) for plan in plans]
    family, *others = dict.fromkeys(families)
    if sizes is not None:
        family.parse_sizes(sizes)  # reported first: it is wrong whatever is timed
    if others:
        counts = ", ".join(f"{families.count(one)} of {one.name}" for one in (family, *others))
        raise ConfigError(
            Problem(
                f"a run times configs of one family, and these are of {1 + len(others)}: {counts}",
                f"Name some, or the folder of a family: fa4gen bench configs/{family.name}",
            )
        )
    if fa3 is not None and not family.has_fa3:
        raise ConfigError(
            Problem(
                f"--fa3 is for attention, and these configs are of {family.name}",
                "Leave --fa3 out.",
            )
        )
    return family


def _check_files(json_path: Path | None, plot: Path | None) -> None:
    from fa4gen.cli.result_files import check_result_file

    if json_path is not None:
        check_result_file("--json", json_path)
    if plot is not None:
        from fa4gen.bench.plot import check_plot

        check_plot(plot)
        check_result_file("--plot", plot)


def _find_peers(family: Family, fa3: Path | None, no_peers: bool) -> Peers:
    from fa4gen.bench.peers import Peers
    from fa4gen.cli.output import note

    peers = Peers((), ("no peers: --no-peers",)) if no_peers else family.find_peers(fa3)
    for text in peers.notes:
        note(text)
    return peers


def _own_templates(folder: Path | None) -> tuple[str, ...]:
    """Return a note for the results that own templates were used, with their hash."""
    if folder is None:
        return ()
    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path
    from fa4gen.render.own_templates import folder_sha256

    text = f"own templates: {shown_path(folder)}, SHA-256 {folder_sha256(folder)}"
    note(text)
    return (text,)


@contextmanager
def _vendored_library(
    configs: Sequence[str], settings: Sequence[Setting], templates: Path | None, wanted: bool
) -> Iterator[VendoredLibrary | None]:
    """Build the vendored launcher of the run's kernels where it is requested."""
    if not wanted:
        yield None
        return
    from tempfile import TemporaryDirectory

    from fa4gen.bench.vendored import VendoredLibrary
    from fa4gen.cli.output import note

    note(f"vendoring {counted(len(configs), 'kernel')}")
    with TemporaryDirectory(prefix="fa4gen-bench-") as folder:
        yield VendoredLibrary(configs, Path(folder), settings, templates)


def _measure(
    configs: Sequence[str],
    settings: Sequence[Setting],
    templates: Path | None,
    options: BenchOptions,
    peers: Peers,
    library: VendoredLibrary | None,
    compiler: str,
    jobs: int,
    output_format: OutputFormat,
) -> list[ConfigResult]:
    """Time the configs, and print each one's table as soon as it is measured."""
    from fa4gen.bench.results import ConfigResult
    from fa4gen.bench.run import Bench
    from fa4gen.cli.output import note
    from fa4gen.cli.progress import progress
    from fa4gen.errors import Fa4genError
    from fa4gen.verify.build import build_kernels

    note(f"compiling {counted(len(configs), 'kernel')}")
    # all at once: the compiler's work must not be timed
    built = []
    with progress(len(configs), "kernels") as bar:
        for one in build_kernels(configs, jobs, compiler, settings, templates):
            built.append(one)
            bar.advance()
    if library is not None:
        from fa4gen.bench.vendored import VendoredPeer

        peers = replace(peers, found=(*peers.found, VendoredPeer(library)))
    kernels = [(one.plan, one.compiled) for one in built if one.compiled is not None]
    timer = Bench(options, peers.found, kernels)
    results = []

    def failed(kernel: BuiltKernel, problems: tuple[Problem, ...]) -> ConfigResult:
        config, name, family = kernel.config, kernel.name, options.family
        return ConfigResult(config, name, {}, problems=problems, family=family)

    for kernel in built:
        if kernel.plan is None or kernel.compiled is None:
            result = failed(kernel, kernel.problems)
        else:
            try:
                result = timer.time_kernel(kernel.plan, kernel.compiled, kernel.config)
                if library is not None:
                    from fa4gen.bench.host_time import host_times

                    times = host_times(kernel.plan, kernel.compiled, library)
                    result = replace(result, host_us=times)
            except Fa4genError as error:
                result = failed(kernel, error.problems)
        results.append(result)
        if output_format != "json":
            _print_result(result)
    return results


def _print_result(result: ConfigResult) -> None:
    from fa4gen.bench.report import config_table, rows_of_groups
    from fa4gen.cli.output import note

    if result.sizes:
        _print_table(config_table(result))
        for line in rows_of_groups(result):
            print(line)
        print()
    for peer, reason in result.left_out.items():
        note(f"{result.name}: {peer} left out: {reason}")


def _print_table(table: Table) -> None:
    from fa4gen.cli.output import print_table

    right = table.columns[table.names :]
    print_table(table.columns, table.rows, title=table.title, right=right)


def _document(
    results: Sequence[ConfigResult],
    options: BenchOptions,
    device: DeviceInfo,
    notes: Sequence[str],
) -> dict[str, Any]:
    from datetime import UTC, datetime

    from fa4gen.bench.machine import describe_gpu, describe_versions
    from fa4gen.bench.report import results_data

    return results_data(
        results,
        options,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        gpu=describe_gpu(device),
        versions=describe_versions(),
        notes=notes,
    )


def _conclude(results: Sequence[ConfigResult], output_format: OutputFormat) -> int:
    from fa4gen.bench.report import closing_tables
    from fa4gen.cli.output import report

    if output_format != "json":
        for number, table in enumerate(closing_tables(results)):
            if number:
                print()
            _print_table(table)
    problems = [problem for result in results for problem in result.problems]
    for problem in problems:
        report(problem, output_format)
    return 1 if problems else 0
