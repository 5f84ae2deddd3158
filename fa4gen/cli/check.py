"""``fa4gen check``: reports whether generated files are what their configs render to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fa4gen.cli.generated import (
    Invocation,
    diff_option,
    generated_out_option,
    records_of,
)
from fa4gen.cli.options import (
    OutputFormat,
    configs_argument,
    format_option,
    jobs_option,
    set_option,
    shipped_option,
)
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted
from fa4gen.errors import NotCurrentError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.settings import Setting
    from fa4gen.render.check import FileVerdict

_STYLES = {"stale": "yellow", "edited": "red", "missing": "yellow", "orphan": "magenta"}


@click.command(name="check")
@configs_argument
@shipped_option
@set_option
@generated_out_option
@templates_option
@diff_option
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    shipped: bool,
    settings: tuple[Setting, ...],
    out: Path | None,
    templates: Path | None,
    diff: bool,
    jobs: int,
    output_format: OutputFormat,
) -> int:
    """Report whether generated files are what configs render to. Writes nothing.

    Without CONFIG, of the project's: the configs that fa4gen.toml, or [tool.fa4gen] in
    pyproject.toml, names here or above. Each file is current, stale (its config, a template or
    fa4gen changed), edited (not as fa4gen wrote it), missing, or an orphan (no config renders to
    it). Kernels of which the project keeps hashes are compared with these. Ends with status 3
    unless all are current.

    Without CONFIG everything under the output folder is the project's: what none of its configs
    renders to is an orphan. With CONFIG other kernels are not looked at.
    """
    from fa4gen.config.selection import output_folder, select_configs
    from fa4gen.render.batch import render_configs
    from fa4gen.render.check import find_orphans, kernel_verdicts
    from fa4gen.render.fix import fix_commands
    from fa4gen.render.hashes import hash_verdicts

    call = Invocation(configs, shipped, out, templates, settings)
    folder = output_folder(out)
    named, tables = _tables_among(configs)
    only_tables = bool(tables) and not named
    paths = [] if only_tables else select_configs(named, shipped=shipped)
    tables += _tables_beside(paths)
    records = records_of(folder)
    rendered = render_configs(paths, templates, jobs, settings, records)
    kernels = [item.kernel for item in rendered]
    keeping = call.keeping(rendered, folder, writes=False, prunes=False)
    verdicts = [v for kernel in keeping.as_files for v in kernel_verdicts(kernel, folder)]
    verdicts += hash_verdicts(
        keeping.as_hashes, folder, records.hashes[folder], are_all=keeping.are_all
    )
    verdicts += find_orphans(kernels, folder, are_all=not call.is_named)
    sources = {item.kernel.folder: item.config for item in rendered}
    fixes = fix_commands(verdicts, sources, call.arguments, call.options)
    for table in dict.fromkeys(tables):
        verdict, fix = _check_table(table)
        verdicts.append(verdict)
        fixes += [fix] if fix else []
    if output_format == "json":
        _print_json(verdicts, fixes, diff)
    else:
        _print_text(verdicts, fixes, diff)
    if output_format == "github":
        _annotate(verdicts, fixes)
    return NotCurrentError.exit_status if any(v.verdict != "current" for v in verdicts) else 0


def _tables_among(configs: Sequence[str]) -> tuple[tuple[str, ...], list[Path]]:
    """Return the paths of the command line other than tuning tables, and these.

    A folder that has tables and no other config than their tiles is its tables: all that they name
    may be shipped.
    """
    from pathlib import Path

    named: list[str] = []
    tables: list[Path] = []
    for one in configs:
        path = Path(one)
        its = _tables_in(path) if path.is_dir() else _tables_at(path)
        tables += its
        if not its or (path.is_dir() and _has_configs(path)):
            named.append(one)
    return tuple(named), list(dict.fromkeys(tables))


def _tables_beside(paths: Sequence[Path]) -> list[Path]:
    """Return the tuning tables in the folders of configs."""
    from fa4gen.config.set_file import is_table

    folders = dict.fromkeys(path.parent for path in paths if path.parent.is_dir())
    return [file for folder in folders for file in sorted(folder.iterdir()) if is_table(file)]


def _tables_in(folder: Path) -> list[Path]:
    return [table for file in sorted(folder.iterdir()) for table in _tables_at(file)]


def _tables_at(path: Path) -> list[Path]:
    """Return the table that ``path`` is, or the tables of a chip that it holds."""
    from fa4gen.config.entries import tables_in
    from fa4gen.config.set_file import is_table

    return [path] if is_table(path) else tables_in(path)


def _has_configs(folder: Path) -> bool:
    """Whether a folder has configs that are not tiles of its tables."""
    from fa4gen.config.find import find_configs
    from fa4gen.errors import ConfigError

    try:
        return any(path.parent.is_dir() for path in find_configs([folder]))
    except ConfigError:
        return False


def _check_table(path: Path) -> tuple[FileVerdict, str]:
    """Return the verdict on a tuning table, and the command that makes it current."""
    from fa4gen.config.paths import shown_path
    from fa4gen.render.check import FileVerdict
    from fa4gen.tune.search.table import check_table

    state = check_table(path)
    verdict = FileVerdict(path, state.verdict, "tuning table", state.reason)
    problems = " ".join(f"--problem {problem}" for problem in state.problems)
    fix = f"fa4gen tune {state.base} {problems} --out {shown_path(path.parent)} --force"
    return verdict, "" if state.verdict == "current" else fix


def _counts(verdicts: Sequence[FileVerdict]) -> dict[str, int]:
    names = ("current", "stale", "edited", "missing", "orphan")
    return {name: sum(v.verdict == name for v in verdicts) for name in names}


def _print_text(verdicts: Sequence[FileVerdict], fixes: Sequence[str], diff: bool) -> None:
    wrong = [v for v in verdicts if v.verdict != "current"]
    if wrong:
        from fa4gen.cli.output import print_table

        rows = [(v.verdict, v.place, v.reason) for v in wrong]
        print_table(("verdict", "file", "why"), rows, styles=_STYLES)
        click.echo()
    if diff:
        for verdict in wrong:
            click.echo(verdict.diff())
    summary = ", ".join(f"{count} {name}" for name, count in _counts(verdicts).items() if count)
    hashes = sum(v.is_hash for v in verdicts)
    compared = counted(len(verdicts) - hashes, "file")
    if hashes:
        compared += f" and the hashes of {counted(hashes, 'kernel')}"
    click.echo(f"{compared}: {summary}")
    if fixes:
        in_turn = ", in turn" if len(fixes) > 1 else ""
        loses = []
        if any(v.verdict == "edited" for v in wrong):
            loses.append("--force overwrites the edits")
        if any(fix.startswith("rm ") for fix in fixes):
            loses.append("rm deletes what fa4gen did not write so")
        lost = f" ({'; '.join(loses)})" if loses else ""
        click.echo(f"To make them current{in_turn}{lost}:")
        for fix in fixes:
            click.echo(f"  {fix}")


def _print_json(verdicts: Sequence[FileVerdict], fixes: Sequence[str], diff: bool) -> None:
    from fa4gen.cli.output import print_json
    from fa4gen.config.paths import shown_path

    print_json(
        {
            "current": all(v.verdict == "current" for v in verdicts),
            "counts": _counts(verdicts),
            "files": [
                {
                    "path": shown_path(v.path),
                    "kernel": v.kernel,
                    "verdict": v.verdict,
                    "reason": v.reason,
                    "prunable": v.prunable,
                }
                | ({"diff": v.diff()} if diff else {})
                for v in verdicts
            ],
            "fix": list(fixes),
        }
    )


def _annotate(verdicts: Sequence[FileVerdict], fixes: Sequence[str]) -> None:
    from fa4gen.cli.output import annotate
    from fa4gen.config.paths import shown_path

    remedy = f"Run: {' && '.join(fixes)}" if fixes else ""
    for verdict in verdicts:
        if verdict.verdict != "current":
            of = f" of {verdict.kernel}" if verdict.is_hash else ""
            message = f"{verdict.verdict}{of}: {verdict.reason}"
            problem = Problem(message, remedy, file=shown_path(verdict.path), line=1, column=1)
            annotate("error", problem)
