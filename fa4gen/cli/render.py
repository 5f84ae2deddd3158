"""``fa4gen render``: configs to generated files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.generated import (
    Invocation,
    diff_option,
    generated_out_option,
    records_of,
    refuse_prune,
)
from fa4gen.cli.options import (
    OutputFormat,
    configs_argument,
    force_option,
    format_option,
    jobs_option,
    set_option,
    shipped_option,
)
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.cli.generated import Keeping
    from fa4gen.config.settings import Setting
    from fa4gen.render.batch import RenderedConfig
    from fa4gen.render.write import FileOutcome


@click.command(name="render")
@configs_argument
@shipped_option
@set_option
@generated_out_option
@templates_option
@force_option
@click.option("--dry-run", is_flag=True, help="Print what would be done and do nothing.")
@diff_option
@click.option(
    "--prune",
    is_flag=True,
    help="Delete generated files that no config renders to any more, and those of kernels that are "
    "kept as hashes, unless they were edited. What would be deleted is only shown, until --yes is "
    "given as well.",
)
@click.option("--yes", is_flag=True, help="Let --prune delete.")
@click.option(
    "--no-compile",
    is_flag=True,
    envvar="FA4GEN_NO_COMPILE",
    show_envvar=True,
    help="Take what a config's design tries first, and ask no compiler whether it fits.",
)
@click.option("--watch", is_flag=True, help="Render again whenever a config or template changes.")
@jobs_option
@format_option
def command(
    configs: tuple[str, ...],
    shipped: bool,
    settings: tuple[Setting, ...],
    out: Path | None,
    templates: Path | None,
    force: bool,
    dry_run: bool,
    diff: bool,
    prune: bool,
    yes: bool,
    no_compile: bool,
    watch: bool,
    jobs: int,
    output_format: OutputFormat,
) -> None:
    """Write the kernels of configs: N.cu, its headers, and the manifest N.json.

    Without CONFIG, of the project's: the configs that fa4gen.toml, or [tool.fa4gen] in
    pyproject.toml, names here or above. Files that already hold the right bytes are not touched.
    Where `written` in that file leaves kernels out, only hashes of these are written; name CONFIG,
    or another folder by -o, for their files.

    A config leaves tiles and register counts to its design, which has several to try: the first
    that a compiler takes without spills is written, and the manifest says which. It is compiled
    once: as long as config and templates are the same, the manifest on disk is believed.

    All is checked and on the disk before any file is replaced: a wrong config, an edited file that
    would be overwritten, or a full disk, leaves every file as it was.

    --prune looks beyond the folders of the kernels rendered only without CONFIG: then everything
    under the output folder is the project's.

    --watch renders again whenever a config, its base, a template or the project's file changes,
    until Ctrl-C.
    """
    if yes and not prune:
        raise click.UsageError("--yes is an option of --prune")
    call = Invocation(configs, shipped, out, templates, settings)
    run = _Render(call, force, dry_run, diff, prune, yes, not no_compile, jobs, output_format)
    if not watch:
        run.once()
        return
    if dry_run or prune or output_format != "text":
        raise click.UsageError("--watch goes with neither --dry-run, --prune nor --format")
    from fa4gen.cli.watch import inputs_of
    from fa4gen.cli.watch import watch as watch_files

    watch_files(run.once, inputs_of(call.select, templates))


@dataclass(frozen=True)
class _Render:
    """The requests of the command line."""

    call: Invocation
    force: bool
    dry_run: bool
    diff: bool
    prune: bool
    yes: bool
    compiles: bool
    jobs: int
    output_format: OutputFormat

    def once(self) -> set[Path]:
        """Render, write and report; return the files that were read."""
        from fa4gen.cli.choosing import choose_candidates, without_compiler
        from fa4gen.cli.output import note
        from fa4gen.config.selection import output_folder
        from fa4gen.render.batch import render_configs
        from fa4gen.render.check import find_orphans
        from fa4gen.render.write import apply_writes, plan_prune, plan_writes
        from fa4gen.render.write import prune as prune_files

        call = self.call
        folder = output_folder(call.out)
        records = records_of(folder)
        rendered = render_configs(call.select(), call.templates, self.jobs, call.settings, records)
        if self.compiles:
            rendered = choose_candidates(rendered, records, call.templates, jobs=self.jobs)
        else:
            rendered = without_compiler(rendered, records)
        kernels = [item.kernel for item in rendered]
        keeping = call.keeping(rendered, folder, writes=True, prunes=self.prune)
        planned = plan_writes(
            keeping.as_files, folder, self.force, see=call.command("check", "--diff")
        )
        kept = records.hashes[folder]
        hashes = None
        if keeping.concerns(kept):
            from fa4gen.render.hashes import plan_hashes

            hashes = plan_hashes(keeping.as_hashes, folder, kept, are_all=keeping.are_all)
            planned.append([hashes])
        known = keeping.as_files if self.prune else kernels
        orphans = find_orphans(known, folder, are_all=not call.is_named)
        pruned = plan_prune(orphans) if self.prune else []
        if pruned and not (self.yes or self.dry_run):
            raise refuse_prune([each.verdict for each in pruned])
        if not self.dry_run:
            apply_writes(planned)
            prune_files(orphan.verdict for orphan in pruned)
        outcomes = [outcome for group in planned for outcome in group] + pruned
        if self.output_format == "json":
            _print_json(rendered, planned, hashes, pruned, self.dry_run, self.diff)
        else:
            _print_text(outcomes, rendered, keeping, self.dry_run, self.diff)
        left = len(orphans) - len(pruned)
        if left:
            note(
                f"{counted(left, 'file')} that no config renders to left alone: "
                f"see `{call.command('check')}`."
            )
        return {Path(file) for item in rendered for file in item.inputs}


def _print_text(
    outcomes: Sequence[FileOutcome],
    rendered: Sequence[RenderedConfig],
    keeping: Keeping,
    dry_run: bool,
    diff: bool,
) -> None:
    from fa4gen.config.paths import shown_path

    changed = [outcome for outcome in outcomes if outcome.action != "unchanged"]
    for outcome in changed:
        click.echo(f"{outcome.action:9} {shown_path(outcome.path)}")
        if diff:
            click.echo(outcome.verdict.diff(), nl=False)
    kernels = counted(len(rendered), "kernel")
    left = sum(not item.choice.compiler for item in rendered)
    if left:
        kernels += ", not compiled" if left == len(rendered) else f", {left} not compiled"
    if keeping.as_hashes:
        kernels += f", {len(keeping.as_hashes)} kept as hashes"
    counts = {
        a: sum(o.action == a for o in outcomes) for a in dict.fromkeys(o.action for o in outcomes)
    }
    done = ", ".join(f"{count} {action}" for action, count in counts.items())
    click.echo(
        f"{'dry run, nothing written: ' if dry_run else ''}rendered {kernels}; files: {done}"
    )


def _print_json(
    rendered: Sequence[RenderedConfig],
    planned: Sequence[Sequence[FileOutcome]],
    hashes: FileOutcome | None,
    pruned: Sequence[FileOutcome],
    dry_run: bool,
    diff: bool,
) -> None:
    from fa4gen.cli.output import print_json
    from fa4gen.config.paths import shown_path

    def files(outcomes: Sequence[FileOutcome]) -> list[dict[str, Any]]:
        return [
            {"path": shown_path(outcome.path), "action": outcome.action}
            | ({"diff": outcome.verdict.diff()} if diff else {})
            for outcome in outcomes
        ]

    written = {group[0].verdict.kernel: group for group in planned if group[0] is not hashes}
    print_json(
        {
            "dry_run": dry_run,
            "kernels": [
                {
                    "name": item.kernel.name,
                    "arch": item.kernel.arch,
                    "config": shown_path(item.config),
                    "proof": "compiled" if item.choice.compiler else "rendered",
                    "files": files(written.get(item.kernel.folder, ())),
                }
                for item in rendered
            ],
            "hashes": files([hashes])[0] if hashes else None,
            "pruned": files(pruned),
        }
    )
