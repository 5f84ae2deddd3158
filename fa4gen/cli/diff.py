"""``fa4gen diff``: shows what the kernels of two configs differ in."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.completion import complete_config
from fa4gen.cli.generated import diff_option, render_one
from fa4gen.cli.options import OutputFormat, format_option, set_option
from fa4gen.cli.own_templates import templates_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.settings import Setting
    from fa4gen.render.batch import RenderedConfig
    from fa4gen.render.comparison import Difference

DIFFERENT = 1
"""Exit status under --exit-code, as git has it."""


@click.command(name="diff")
@click.argument("a", metavar="A", shell_complete=complete_config)
@click.argument("b", metavar="[B]", required=False, shell_complete=complete_config)
@set_option
@click.option("--exit-code", is_flag=True, help="End with status 1 if the kernels differ.")
@templates_option
@diff_option
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    a: str,
    b: str | None,
    settings: tuple[Setting, ...],
    exit_code: bool,
    templates: Path | None,
    diff: bool,
    output_format: OutputFormat,
) -> None:
    """Show what the kernels of configs A and B differ in: keys, plan and lines of source.

    --set changes B; without B it is A, so that `fa4gen diff A --set KEY=VALUE` shows what a key
    changes. What a config leaves to a compiler is as in explain. Of the plan: threads, registers,
    shared memory, barriers, tensor maps and parameters; sentences and offsets are left out. --diff
    shows the lines of the .cu that differ; --format github prints tables in Markdown.
    """
    from fa4gen.render.comparison import differences, source_diff

    left = render_one(a, templates, ())
    right = render_one(a if b is None else b, templates, settings)
    found = differences(left, right)
    source = source_diff(left, right)
    if output_format == "json":
        _print_json(left, right, found, source, diff)
    else:
        _print_text(left, right, found, source, diff, markdown=output_format == "github")
    if exit_code and (found or source):
        ctx.exit(DIFFERENT)


def _only(source: Sequence[str]) -> tuple[int, int]:
    """Return how many lines of a unified diff only A has, and only B."""
    signs = [line[:1] for line in source[2:]]
    return signs.count("-"), signs.count("+")


def _print_json(
    a: RenderedConfig,
    b: RenderedConfig,
    found: Sequence[Difference],
    source: Sequence[str],
    diff: bool,
) -> None:
    import dataclasses

    from fa4gen.cli.output import print_json
    from fa4gen.config.paths import shown_path

    only_a, only_b = _only(source)
    print_json(
        {
            "a": shown_path(a.config),
            "b": shown_path(b.config),
            "differences": [dataclasses.asdict(one) for one in found],
            "source_lines": {"only_a": only_a, "only_b": only_b},
        }
        | ({"diff": "\n".join(source)} if diff else {})
    )


def _print_text(
    a: RenderedConfig,
    b: RenderedConfig,
    found: Sequence[Difference],
    source: Sequence[str],
    diff: bool,
    *,
    markdown: bool,
) -> None:
    from fa4gen.cli.output import print_markdown, print_table
    from fa4gen.config.paths import shown_path

    for part, rows in groupby(found, key=lambda one: one.part):
        columns = (part, "A", "B")
        cells = [(one.name, _cell(one.a), _cell(one.b)) for one in rows]
        if markdown:
            print_markdown(columns, cells)
        else:
            print_table(columns, cells)
        click.echo()
    if diff and source:
        fence = ("```diff", "```") if markdown else ("", "")
        click.echo("\n".join([fence[0], *source, fence[1]]).strip("\n") + "\n")
    only_a, only_b = _only(source)
    lines = f"{only_a} lines only in A, {only_b} only in B" if source else "the same source"
    click.echo(f"A: {shown_path(a.config)}; B: {shown_path(b.config)}; {lines}")


def _cell(value: Any) -> str:
    from fa4gen.yaml_words import shown

    return "none" if value is None else shown(value)
