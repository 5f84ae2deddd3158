"""``fa4gen explain``: shows the plan of a config, and its reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import (
    OutputFormat,
    configs_argument,
    format_option,
    jobs_option,
    set_option,
    shipped_option,
)
from fa4gen.cli.own_templates import templates_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.settings import Setting
    from fa4gen.render.explanation import Section

PAGE_WIDTH = 120
"""Columns of sentences in a pipe where COLUMNS is not set."""
_STYLES = {"auto": "cyan", "default": "dim"}


@click.command(name="explain")
@configs_argument
@shipped_option
@set_option
@click.option(
    "--problem",
    "problems",
    multiple=True,
    metavar="SIZE",
    help="Show instead which kernels suit a problem, by predicted time. Matrix products: MxNxK or "
    "BATCHxMxNxK, with groups GROUPSxROWS:NxK; attention: BATCHxHEADSxROWS or "
    "BATCHxHEADS/KEY_HEADSxROWSxKEYS. May be repeated.",
)
@click.option(
    "--candidates",
    "most",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="With --problem, how many kernels to show.",
)
@click.option(
    "--chip",
    metavar="NAME",
    default="",
    help="With --problem, the chip, such as 'NVIDIA H200'; the first of the architecture when not "
    "given.",
)
@click.option(
    "--compile",
    "compiles",
    is_flag=True,
    help="Ask the compiler which of the design's candidates it takes, as compile does.",
)
@templates_option
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    shipped: bool,
    settings: tuple[Setting, ...],
    problems: tuple[str, ...],
    most: int,
    chip: str,
    compiles: bool,
    templates: Path | None,
    jobs: int,
    output_format: OutputFormat,
) -> None:
    """Show what configs resolve to: every value with who chose it and which limit bound it.

    What a config leaves to a compiler is what the manifests and hashes in the output folder say
    that it took, else what its design tries first; --compile asks it, and shows what it left and
    why.

    Also the map of shared memory, the barriers with who arrives and who waits, the roles with
    their registers, the tensor maps, the launch and the parameters. --format json prints the plans
    as the manifests hold them.

    With --problem: the config, shipped ones that compute the same and other tiles of it, with the
    time that each should take on the problem, its parts, and why the first won. No GPU is needed.
    """
    from fa4gen.cli.choosing import choose_candidates
    from fa4gen.cli.generated import project_records
    from fa4gen.config.paths import shown_path
    from fa4gen.config.selection import select_configs
    from fa4gen.render.batch import plan_configs, render_configs
    from fa4gen.render.explanation import explain
    from fa4gen.render.manifest import plan_data

    paths = select_configs(configs, shipped=shipped)
    if problems:
        loaded_configs = [loaded for loaded, _ in plan_configs(paths, settings)]
        _explain_problems(loaded_configs, problems, most, chip, output_format)
        return
    records = project_records()
    rendered = render_configs(paths, templates, jobs, settings, records)
    chosen = rendered
    if compiles:
        chosen = choose_candidates(rendered, records, templates, jobs=jobs)
    if output_format == "json":
        from fa4gen.cli.output import print_json

        print_json(
            {
                "kernels": [
                    {
                        "config": shown_path(item.config),
                        "candidates": item.choice.data(),
                        "plan": plan_data(item.plan),
                    }
                    for item in chosen
                ]
            }
        )
        return
    for number, item in enumerate(chosen):
        if number:
            click.echo()
        for section in explain(item.plan, item.loaded, item.choice):
            _print_section(section)


def _explain_problems(
    configs: Sequence[LoadedConfig],
    problems: Sequence[str],
    most: int,
    chip: str,
    output_format: OutputFormat,
) -> None:
    from fa4gen.cli.output import print_json, print_table
    from fa4gen.config.paths import shown_path
    from fa4gen.tune.candidates import find_candidates
    from fa4gen.tune.committed import find_table
    from fa4gen.tune.explain import (
        COLUMNS,
        LEGEND,
        choose,
        measured,
        measured_data,
        questions,
        region_of,
        why,
    )
    from fa4gen.tune.model.chips import known_chip

    document = []
    for loaded in configs:
        its_chip = known_chip(loaded.config.arch, chip)
        candidates = find_candidates(loaded)
        table = find_table(loaded, its_chip.name)
        for problem in problems:
            choice = choose(loaded, problem, its_chip, candidates)
            region = region_of(choice, table)
            if output_format == "json":
                data = choice.data(most) | {"table": measured_data(choice, region, table)}
                document.append({"config": shown_path(loaded.path), **data})
                continue
            title = f"{loaded.config.name} at {choice.family.word(choice.problem)}, {its_chip.name}"
            print_table(COLUMNS, choice.rows(most), title=title, right=COLUMNS[2:-1])
            reasons = (*why(choice), *measured(choice, region, table))
            for line in (*questions(choice), *reasons, LEGEND, its_chip.note):
                click.echo(f"  {line}")
            click.echo()
    if output_format == "json":
        print_json({"problems": document})


def _print_section(section: Section) -> None:
    from fa4gen.cli.output import print_table, print_title, table_width
    from fa4gen.cli.table import wrapped

    if section.title:
        print_title(section.title)
    width = table_width() or PAGE_WIDTH
    for line in section.lines:
        drawn = any("\u2500" <= character <= "\u257f" for character in line)
        for part in [line] if drawn else wrapped(line, width - 2):
            click.echo(f"  {part}".rstrip())
    if section.columns:
        print_table(section.columns, section.rows, right=section.right, styles=_STYLES)
    click.echo()
