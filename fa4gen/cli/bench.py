"""``fa4gen bench``: times kernels on the GPU beside their peers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.bench.workload import DEFAULT_SIZES, parse_sizes
from fa4gen.cli.options import OutputFormat, configs_argument, format_option, jobs_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.bench.peers import Peers
    from fa4gen.bench.results import ConfigResult
    from fa4gen.bench.run import BenchOptions
    from fa4gen.runtime.device import DeviceInfo


@click.command(name="bench")
@configs_argument
@click.option(
    "--sizes",
    default=DEFAULT_SIZES,
    show_default=True,
    metavar="N,N,...",
    help="Numbers of rows of the sequences; k is 1024.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="N",
    help="How often the kernels of a size take turns.",
)
@click.option(
    "--fa3",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="LIB",
    help="A FlashAttention-3 library for torch.ops.load_library, as a peer.",
)
@click.option(
    "--cudart",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="LIB",
    help="The CUDA runtime that the library of --fa3 needs, if it is not PyTorch's.",
)
@click.option("--no-peers", is_flag=True, help="Time our kernels alone.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N")
@click.option(
    "--compiler",
    type=click.Choice(("auto", "nvrtc", "nvcc")),
    default="auto",
    show_default=True,
    help="auto is nvrtc, which needs no CUDA toolkit.",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Also write everything that was measured as JSON.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE.png",
    help="Also draw it (.png, .svg or .pdf). Needs matplotlib.",
)
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    sizes: str,
    rounds: int,
    fa3: Path | None,
    cudart: Path | None,
    no_peers: bool,
    seed: int,
    compiler: str,
    json_path: Path | None,
    plot: Path | None,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Time kernels on the GPU beside their peers, in one run and in turn.

    Without CONFIG, all configs. Every size has 16384 tokens (batch times rows) and 2048 columns
    (heads times depth) of random numbers. Peers are cuDNN and FlashAttention-2 through PyTorch
    where it can be imported, and FlashAttention-3 where --fa3 names its library. Before anything is
    timed, outputs are compared with float64 and with the peers'. Figures are TFLOP/s, from medians
    of CUDA-event timings with a cold L2; a causal mask counts half, a window the pairs it leaves.
    """
    from fa4gen.bench.run import BenchOptions
    from fa4gen.config.find import find_configs
    from fa4gen.render.batch import plan_configs
    from fa4gen.runtime.device import require_device

    options = BenchOptions(parse_sizes(sizes), rounds, seed)
    _check_files(json_path, plot)
    paths = find_configs(configs)
    arches = dict.fromkeys(plan.arch for _, plan in plan_configs(paths))
    device, *_ = [require_device(arch) for arch in arches]
    peers = _find_peers(fa3, cudart, no_peers)
    results = _measure([str(path) for path in paths], options, peers, compiler, jobs, output_format)
    document = _document(results, options, device, peers)
    if output_format == "json":
        from fa4gen.cli.output import print_json

        print_json(document)
    if json_path is not None:
        import json

        from fa4gen.render.write import write_text

        write_text(json_path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    if plot is not None and any(result.sizes for result in results):
        from fa4gen.bench.plot import draw_plot

        title = f"attention forward, {device.name}, {document['date'][:10]}"
        draw_plot(results, plot, title=title)
    return _conclude(results, output_format)


def _check_files(json_path: Path | None, plot: Path | None) -> None:
    from fa4gen.cli.result_files import check_result_file

    if json_path is not None:
        check_result_file("--json", json_path)
    if plot is not None:
        from fa4gen.bench.plot import check_plot

        check_plot(plot)
        check_result_file("--plot", plot)


def _find_peers(fa3: Path | None, cudart: Path | None, no_peers: bool) -> Peers:
    from fa4gen.bench.peers import Peers, find_peers
    from fa4gen.cli.output import note

    peers = Peers((), ("no peers: --no-peers",)) if no_peers else find_peers(fa3, cudart)
    for text in peers.notes:
        note(text)
    return peers


def _measure(
    configs: Sequence[str],
    options: BenchOptions,
    peers: Peers,
    compiler: str,
    jobs: int,
    output_format: OutputFormat,
) -> list[ConfigResult]:
    """Time the configs, and print each one's table as soon as it is there."""
    from fa4gen.bench.results import ConfigResult
    from fa4gen.bench.run import Bench
    from fa4gen.cli.output import note
    from fa4gen.errors import Fa4genError
    from fa4gen.verify.build import build_kernels

    note(f"compiling {len(configs)} kernels")
    built = list(build_kernels(configs, jobs, compiler))  # the compiler's work must not be timed
    bench = Bench(options, peers.found)
    results = []
    for kernel in built:
        if kernel.plan is None or kernel.compiled is None:
            result = ConfigResult(kernel.config, kernel.name, {}, problems=kernel.problems)
        else:
            try:
                result = bench.time_kernel(kernel.plan, kernel.compiled, kernel.config)
            except Fa4genError as error:
                result = ConfigResult(kernel.config, kernel.name, {}, problems=error.problems)
        results.append(result)
        if output_format != "json":
            _print_result(result)
    return results


def _print_result(result: ConfigResult) -> None:
    from fa4gen.bench.report import config_table
    from fa4gen.cli.output import note, print_table

    if result.sizes:
        table = config_table(result)
        print(table.title)
        print_table(table.columns, table.rows, right=table.columns)
        print()
    for peer, reason in result.left_out.items():
        note(f"{result.name}: {peer} left out: {reason}")


def _document(
    results: Sequence[ConfigResult], options: BenchOptions, device: DeviceInfo, peers: Peers
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
        notes=peers.notes,
    )


def _conclude(results: Sequence[ConfigResult], output_format: OutputFormat) -> int:
    from fa4gen.bench.report import summary_table
    from fa4gen.cli.github import annotation
    from fa4gen.cli.output import note, print_table

    summary = summary_table(results)
    if summary is not None and output_format != "json" and len(results) > 1:
        print_table(summary.columns, summary.rows, right=summary.columns[1:])
    problems = [problem for result in results for problem in result.problems]
    for problem in problems:
        note(annotation("error", problem) if output_format == "github" else f"{problem}")
    return 1 if problems else 0
