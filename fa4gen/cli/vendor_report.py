"""Tables, JSON and annotations of folders that ``fa4gen vendor`` wrote or checked."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from fa4gen.counts import counted
from fa4gen.vendoring.lock import LOCK_NAME

if TYPE_CHECKING:
    from fa4gen.cli.options import OutputFormat
    from fa4gen.vendoring.changes import FileOutcome, FolderPlan
    from fa4gen.vendoring.check import FolderVerdict

STYLES = {"refused": "bold red", "kept": "yellow", "missing": "yellow"}
CHECK_VERDICTS = ("current", "allowed", "stale", "edited", "missing", "foreign")
CHECK_STYLES = {
    "stale": "yellow",
    "edited": "red",
    "missing": "yellow",
    "foreign": "magenta",
}


def plan_data(plan: FolderPlan, *, dry_run: bool, diff: bool) -> dict[str, Any]:
    """Return the changes of a folder as JSON data."""
    from fa4gen.config.paths import shown_path

    return {
        "folder": shown_path(plan.folder),
        "dry_run": dry_run,
        "prefix": plan.lock.prefix,
        "adapters": list(plan.lock.adapters),
        "bytes": folder_bytes(plan),
        "kernels": [
            {
                "name": kernel.name,
                "symbol": kernel.symbol,
                "arch": kernel.arch,
                "config": kernel.source,
                "proof": str(kernel.proofs[-1]) if kernel.proofs else "rendered",
            }
            for kernel in plan.lock.kernels
        ],
        "files": [_file_data(plan, outcome, diff) for outcome in plan.outcomes],
    }


def print_plan(plan: FolderPlan, *, dry_run: bool, diff: bool) -> None:
    """Print the table of files that change, and a line with the sum."""
    from fa4gen.cli.output import print_table
    from fa4gen.config.paths import shown_path

    changed = [o for o in plan.outcomes if o.action != "unchanged"]
    if changed:
        rows = [(o.action, shown_path(plan.folder / o.path), o.reason) for o in changed]
        if not any(row[2] for row in rows):
            print_table(("done", "file"), [row[:2] for row in rows], styles=STYLES)
        else:
            print_table(("done", "file", "why"), rows, styles=STYLES)
    if diff:
        for outcome in changed:
            click.echo(outcome.diff(plan.folder), nl=False)
    counts = Counter(outcome.action for outcome in plan.outcomes)
    done = ", ".join(f"{count} {action}" for action, count in counts.items())
    kernels = counted(len(plan.lock.kernels), "kernel")
    click.echo(
        f"{'dry run, nothing written: ' if dry_run else ''}{kernels} in "
        f"{shown_path(plan.folder)}, {folder_bytes(plan) / 1000:.0f} KB; files: {done}"
    )


def folder_bytes(plan: FolderPlan) -> int:
    """Return the bytes of the folder's files, fa4gen's own and those of the user."""
    return sum(len(outcome.after) for outcome in plan.outcomes if outcome.after is not None)


def _file_data(plan: FolderPlan, outcome: FileOutcome, diff: bool) -> dict[str, Any]:
    from fa4gen.config.paths import shown_path

    data: dict[str, Any] = {
        "path": shown_path(plan.folder / outcome.path),
        "action": outcome.action,
    }
    if outcome.reason:
        data["reason"] = outcome.reason
    return data | ({"diff": outcome.diff(plan.folder)} if diff else {})


def report_refused(plan: FolderPlan, output_format: OutputFormat) -> None:
    """Name on stderr the edited files of which today's version was not written."""
    from fa4gen.cli.output import report
    from fa4gen.vendoring.changes import refusal

    for outcome in plan.refused:
        report(refusal(plan.folder, outcome), output_format)


def check_data(verdict: FolderVerdict, *, diff: bool) -> dict[str, Any]:
    """Return the findings in a folder as JSON data."""
    from fa4gen.config.paths import shown_path

    counts = Counter[str](file.verdict for file in verdict.files)
    return {
        "folder": shown_path(verdict.folder),
        "current": verdict.current,
        "generator": verdict.lock.generator.data(),
        "counts": {name: counts[name] for name in CHECK_VERDICTS},
        "request": [*verdict.request, *unasked_lines(verdict)],
        "kernels": [
            {
                "name": kernel.name,
                "symbol": kernel.symbol,
                "arch": kernel.arch,
                "changes": kernel.name in verdict.kernels,
                "proofs": [proof.data() for proof in kernel.proofs],
                "proofs_count": kernel.name not in verdict.unproved,
            }
            for kernel in verdict.lock.kernels
        ],
        "files": [
            {
                "path": shown_path(verdict.folder / file.path),
                "verdict": file.verdict,
                "reason": file.reason,
            }
            | ({"diff": file.diff(shown_path(verdict.folder / file.path))} if diff else {})
            for file in verdict.files
        ],
        "fix": _fix(verdict),
    }


def print_check(verdict: FolderVerdict, *, diff: bool) -> None:
    """Print the table of files that are not current, and the commands to run."""
    from fa4gen.cli.output import note, print_table
    from fa4gen.config.paths import shown_path

    folder = shown_path(verdict.folder)
    wrong = [file for file in verdict.files if file.verdict != "current"]
    if wrong:
        rows = [(f.verdict, shown_path(verdict.folder / f.path), f.reason) for f in wrong]
        print_table(("verdict", "file", "why"), rows, styles=CHECK_STYLES)
        click.echo()
    if diff:
        for file in wrong:
            click.echo(file.diff(shown_path(verdict.folder / file.path)), nl=False)
    for line in (*verdict.request, *unasked_lines(verdict)):
        click.echo(f"{folder}: {line}")
    if verdict.generator_note:
        click.echo(f"{folder}: {verdict.generator_note}")
    if verdict.kernels:
        click.echo(f"{folder}: kernels that would change: {', '.join(verdict.kernels)}")
    for kernel in verdict.lock.kernels:
        stale = "" if kernel.name not in verdict.unproved else "; files changed since"
        click.echo(f"{kernel.symbol}: {kernel.proofs[-1] if kernel.proofs else 'rendered'}{stale}")
    counts = Counter[str](file.verdict for file in verdict.files)
    summary = ", ".join(f"{counts[name]} {name}" for name in CHECK_VERDICTS if counts[name])
    click.echo(f"{folder}: {counted(len(verdict.files), 'file')}: {summary}")
    if fix := _fix(verdict):
        click.echo(f"To do: {fix}")
    for name in verdict.unproved:
        note(f"{folder}: files changed since {name} was proved: that does not count any more.")


def unasked_lines(verdict: FolderVerdict) -> list[str]:
    """Return a line for each kernel and adapter that the project's file does not name."""
    return [f"{name} is there and not asked for" for name in verdict.unasked]


def annotate_check(verdict: FolderVerdict) -> None:
    """Write an annotation for each file that is not current."""
    from fa4gen.cli.output import annotate
    from fa4gen.config.paths import shown_path
    from fa4gen.errors import Problem

    fix = _fix(verdict)
    found = []
    for file in verdict.files:
        if file.verdict not in ("current", "allowed"):
            path = shown_path(verdict.folder / file.path)
            found.append(Problem(f"{file.verdict}: {file.reason}", fix, path, 1, 1))
    for text in (*verdict.request, *unasked_lines(verdict)):
        found.append(Problem(text, fix, shown_path(verdict.folder / LOCK_NAME), 1, 1))
    for problem in found:
        annotate("error", problem)


def _given_templates(verdict: FolderVerdict) -> str:
    """Return the option for the templates of the check; "" where update takes the same without."""
    from fa4gen.config.paths import shown_path
    from fa4gen.vendoring.targets import templates_for

    given, usual = verdict.templates, templates_for(verdict.folder)
    if given is None or (usual is not None and usual.resolve() == given):
        return ""
    return f" --templates {shlex.quote(shown_path(given))}"


def _fix(verdict: FolderVerdict) -> str:
    """Return in words how to make the folder current; "" where it is."""
    from fa4gen.config.paths import shown_path

    if verdict.current:
        return ""
    folder = shown_path(verdict.folder)
    found = {file.verdict for file in verdict.files if not file.path.startswith("cubins/")}
    of_cubins = {file.verdict for file in verdict.files if file.path.startswith("cubins/")}
    update = f"fa4gen vendor update {folder}{_given_templates(verdict)}"
    steps = []
    if "stale" in found or verdict.request:
        steps.append(update)
    if of_cubins - {"current", "allowed", "foreign"}:
        steps.append(f"fa4gen vendor recompile {folder}")
    if verdict.unasked:
        steps.append(f"{update} --remove {' --remove '.join(verdict.unasked)}")
    if "missing" in found:
        steps.append(f"{update} --force restores what is missing")
    if "edited" in found:
        steps.append("take the edits back, or list the files under allow in the project's file")
    if "foreign" in found | of_cubins:
        steps.append("move files of yours elsewhere, or list them under allow")
    return "; ".join(steps) + "."
