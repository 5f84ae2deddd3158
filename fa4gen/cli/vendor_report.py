"""What ``fa4gen vendor`` prints of a folder that was written or updated."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fa4gen.vendor.write import FileOutcome, FolderPlan

STYLES = {"conflict": "bold red", "merged": "yellow", "kept": "yellow", "missing": "yellow"}


def plan_data(plan: FolderPlan, *, dry_run: bool, diff: bool) -> dict[str, Any]:
    """Return what was done with a folder as JSON data."""
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
    """Print the table of files that change, and a line of what it comes to."""
    from fa4gen.cli.output import print_table
    from fa4gen.config.paths import shown_path

    told = [o for o in plan.outcomes if o.action != "unchanged"]
    if told:
        rows = [(o.action, shown_path(plan.folder / o.path), o.reason) for o in told]
        if not any(row[2] for row in rows):
            print_table(("done", "file"), [row[:2] for row in rows], styles=STYLES)
        else:
            print_table(("done", "file", "why"), rows, styles=STYLES)
    if diff:
        for outcome in told:
            click.echo(outcome.diff(plan.folder), nl=False)
    counts = Counter(outcome.action for outcome in plan.outcomes)
    done = ", ".join(f"{count} {action}" for action, count in counts.items())
    kernels = "1 kernel" if len(plan.lock.kernels) == 1 else f"{len(plan.lock.kernels)} kernels"
    click.echo(
        f"{'dry run, nothing written: ' if dry_run else ''}{kernels} in "
        f"{shown_path(plan.folder)}, {folder_bytes(plan) / 1000:.0f} KB; files: {done}"
    )


def folder_bytes(plan: FolderPlan) -> int:
    """Return what the folder's files come to, fa4gen's own and those of the user's among them."""
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
