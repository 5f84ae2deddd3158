"""``fa4gen tune``: which kernel to use for which problem, measured or predicted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.completion import complete_config
from fa4gen.cli.options import (
    FilePath,
    NumberRange,
    OutputFormat,
    compiler_option,
    executor_option,
    force_option,
    format_option,
    jobs_option,
    require_gpu_option,
    set_option,
    shard_option,
)
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.settings import Setting
    from fa4gen.executors import Executor
    from fa4gen.sweep.results import News
    from fa4gen.tune.search.record import TuneRecord
    from fa4gen.tune.search.run import TuneOptions

COLUMNS = ("problem", "kernel", "from", "us", "predicted", "config itself", "best peer", "to peer")


@click.command(name="tune")
@click.argument("config", metavar="CONFIG", shell_complete=complete_config)
@set_option
@click.option(
    "--shapes",
    type=FilePath(path_type=Path),
    metavar="FILE",
    help="Problems to tune for, as YAML or CSV: see docs/guide/tuning.md.",
)
@click.option(
    "--problem",
    "problems",
    multiple=True,
    metavar="SIZE",
    help="A problem, such as 16x4096x14336 (m x n x k), 32x256:4096x7168 (groups x rows : n x k), "
    "32/8192@0:4096x7168 or 0+17+300:4096x7168 (uneven groups, see `fa4gen bench`), or of "
    "attention 2x32/8x512x16k (batch x heads/key heads x rows x keys). May be repeated.",
)
@click.option(
    "--out",
    type=FilePath(path_type=Path),
    default=Path(),
    show_default="the current folder",
    metavar="DIR|FILE.yaml",
    help="Folder of the table, or a file that holds the tables of a chip.",
)
@click.option(
    "--budget",
    type=NumberRange(min=1.0),
    metavar="SECONDS",
    help="Of measuring, divided equally among the problems; 20 for each when not given.",
)
@click.option(
    "--candidates",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    metavar="N",
    help="How many kernels to measure at a problem: those that the model predicts to be fastest.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=9,
    show_default=True,
    metavar="N",
    help="The most rounds; fewer where the winner is clear.",
)
@click.option(
    "--fa3",
    type=FilePath(path_type=Path, exists=True, dir_okay=False),
    metavar="LIB",
    help="FlashAttention-3's library, a peer of attention: see `fa4gen bench`.",
)
@click.option("--no-measure", is_flag=True, help="Let the model choose, even where there is a GPU.")
@click.option("--chip", default="", metavar="NAME", help="The chip that the model chooses for.")
@click.option(
    "--results",
    type=FilePath(path_type=Path),
    default=Path("tune-results"),
    show_default=True,
    metavar="PLACE",
    help="Folder or .jsonl file for the results, one line of JSON a problem.",
)
@click.option("--fresh", is_flag=True, help="Start over, without results that are still current.")
@click.option(
    "--plot",
    type=FilePath(path_type=Path),
    metavar="FILE.svg",
    help="Also draw the choice and the config itself over the problems.",
)
@templates_option
@compiler_option
@shard_option
@executor_option
@jobs_option
@require_gpu_option
@force_option
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    config: str,
    settings: tuple[Setting, ...],
    shapes: Path | None,
    problems: tuple[str, ...],
    out: Path,
    budget: float | None,
    candidates: int,
    rounds: int,
    fa3: Path | None,
    no_measure: bool,
    chip: str,
    results: Path,
    fresh: bool,
    plot: Path | None,
    templates: Path | None,
    compiler: str,
    shard: tuple[int, int],
    executor: str,
    jobs: int,
    require_gpu: bool,
    force: bool,
    output_format: OutputFormat,
) -> None:
    """Choose the kernel of CONFIG's computation for each problem, and write a table of them.

    Candidates are CONFIG, shipped configs that compute the same, and other tiles. On a GPU of
    their architecture, those that the cost model predicts to be the fastest are checked against
    float64 and measured with their peers in shuffled rounds, until the winner is clear; else the
    model chooses, which the table says. NAME.tuning.yaml has the kernel for each region of
    problems, and the keys of new tiles: NAME.tuning.yaml stands for these where configs are taken,
    NAME.tuning.yaml/TILE for one. A run that was interrupted resumes. Ends with status 1 when a
    problem has no kernel.
    """
    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path
    from fa4gen.executors import executor_for
    from fa4gen.render.batch import plan_configs
    from fa4gen.tune.family import family_of
    from fa4gen.tune.search.possible import refuse_impossible
    from fa4gen.tune.search.run import TuneOptions
    from fa4gen.tune.search.shapes import read_problems
    from fa4gen.tune.search.table import make_table, write_table

    ((base, plan),) = plan_configs([_one_config(config)], settings)
    family = family_of(plan)
    wanted = read_problems(family, problems, shapes)[shard[0] - 1 :: shard[1]]
    _check(plot, plan.arch, require_gpu=require_gpu)
    refuse_impossible(plan, wanted, chip)
    for problem in wanted:
        if details := family.details(problem):
            note(f"{family.word(problem)}: {details}")
    options = TuneOptions(
        candidates=candidates,
        rounds=rounds,
        seconds=20.0 if budget is None else budget / max(1, len(wanted)),
        measuring="never" if no_measure else "auto",
        fa3=str(fa3 or ""),
        chip=chip,
        compiler=compiler,
        templates=templates,
    )
    execute = executor_for(executor, jobs=1)  # one at a time: they would disturb each other
    if executor == "local":
        _compile_ahead(base, wanted, options, jobs)
    path, records = _run(base, wanted, options, execute, results, shard, fresh=fresh)
    failed = [record for record in records if not record.winner]
    if shard == (1, 1) and len(failed) < len(records):
        files = make_table(base, records, out)
        write_table(files, force=force)
        written = [shown_path(files.file)]
    else:
        written = []
    if plot is not None and len(failed) < len(records):
        from fa4gen.bench.plot import draw_plot
        from fa4gen.tune.search.picture import picture_data

        draw_plot(picture_data(family, plan, records), plot)
    _print(records, path, written, output_format)
    if failed:
        ctx.exit(1)


def _one_config(config: str) -> Path:
    from fa4gen.config.find import find_configs
    from fa4gen.errors import ConfigError, Problem

    paths = find_configs([config])
    if len(paths) != 1:
        raise ConfigError(
            Problem(f"{config} names {counted(len(paths), 'config')}", "Name one of them.")
        )
    return paths[0]


def _check(plot: Path | None, arch: str, *, require_gpu: bool) -> None:
    """Refuse impossible requests, before any work."""
    if require_gpu:
        from fa4gen.runtime.device import require_device

        require_device(arch)
    if plot is not None:
        from fa4gen.bench.plot import check_plot
        from fa4gen.cli.result_files import check_result_file

        check_plot(plot)
        check_result_file("--plot", plot)


def _compile_ahead(
    base: LoadedConfig, problems: Sequence[Any], options: TuneOptions, jobs: int
) -> None:
    """Compile the kernels to be timed, into the cache, in parallel; errors come up later."""
    from fa4gen.cli.progress import progress
    from fa4gen.tune.search.run import gpu_timer, kernels_to_compile
    from fa4gen.workers import run_tasks

    if gpu_timer(base.config.kernel, base.config.arch, options) is None:
        return
    tasks, function = kernels_to_compile(base, problems, options)
    with progress(len(tasks), "kernels compiled") as bar:
        for _ in run_tasks(function, tasks, jobs=jobs):
            bar.advance()


def _run(
    base: LoadedConfig,
    problems: Sequence[Any],
    options: TuneOptions,
    execute: Executor,
    place: Path,
    shard: tuple[int, int],
    *,
    fresh: bool,
) -> tuple[Path, list[TuneRecord]]:
    from fa4gen.cli.output import note
    from fa4gen.cli.progress import progress
    from fa4gen.sweep.results import ResultsFile, results_path
    from fa4gen.tune.search.record import read_record
    from fa4gen.tune.search.run import run_tune, tasks_for

    name = base.config.name
    path = results_path(place, name, shard)
    num_kept = 0
    with (
        ResultsFile(path, name, fresh=fresh, read=read_record, kind="tuning") as file,
        progress(len(problems), "problems") as bar,
    ):

        def report(record: TuneRecord, news: News) -> None:
            nonlocal num_kept
            num_kept += news == "kept"
            bar.advance("" if record.winner else f"no kernel for {record.problem}")

        try:
            earlier = {**_of_shards(path, name), **file.records}
            tasks = tasks_for(base, problems, options, earlier)
            records = run_tune(tasks, file, execute, report, earlier)
        except KeyboardInterrupt:
            note(f"stopped; the same command resumes from {path}")
            raise
    if num_kept:
        note(
            f"{num_kept} of {counted(len(records), 'result')} kept from {path}; --fresh starts over"
        )
    return path, records


def _of_shards(path: Path, name: str) -> dict[str, TuneRecord]:
    """Return the records that shards left in the same folder."""
    from fa4gen.sweep.results import ResultsFile
    from fa4gen.tune.search.record import read_record

    found: dict[str, TuneRecord] = {}
    for shard in sorted(path.parent.glob(f"{name}.*of*.jsonl")):
        if shard != path:
            with ResultsFile(shard, name, fresh=False, read=read_record, kind="tuning") as file:
                found |= file.records
    return found


def _print(
    records: Sequence[TuneRecord],
    path: Path,
    written: Sequence[str],
    output_format: OutputFormat,
) -> None:
    from fa4gen.cli.output import note, print_json, print_table, report

    if output_format == "json":
        print_json(
            {
                "results": str(path),
                "written": list(written),
                "problems": [record.data() for record in records],
            }
        )
    else:
        print_table(COLUMNS, [_row(record) for record in records], right=COLUMNS[3:])
    for record in records:
        for problem in record.problems:
            report(problem, output_format, text=f"{record.problem}: {problem}")
    say = note if output_format == "json" else print
    if any(record.decided_by == "model" for record in records if record.winner):
        say("The cost model chose: nothing was measured.")
    unclear = sum(
        record.decided_by == "measurement" and bool(record.winner) and not record.clear
        for record in records
    )
    if unclear:
        say(f"{counted(unclear, 'winner')} not clear when rounds or time ran out.")
    if written:
        say(f"written: {', '.join(written)}")
    say(f"results: {path}")


def _row(record: TuneRecord) -> tuple[str, ...]:
    chosen = record.chosen
    if chosen is None:
        return (record.problem, "none", *[""] * (len(COLUMNS) - 2))
    own = next((one for one in record.kernels if one.source == "config"), None)
    of_own = None if own is None else own.us if chosen.us is not None else own.predicted_us
    peer = min(record.peers_us.items(), key=lambda item: item[1], default=None)
    return (
        record.problem,
        chosen.name,
        chosen.source,
        "" if chosen.us is None else f"{chosen.us:.1f}",
        f"{chosen.predicted_us:.1f}",
        "" if of_own is None else f"{of_own:.1f}",
        "" if peer is None else f"{peer[0]} {peer[1]:.1f}",
        "" if peer is None or chosen.us is None else f"{peer[1] / chosen.us:.2f}",
    )
