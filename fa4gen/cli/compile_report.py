"""The report of ``fa4gen compile``: its results as a table or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fa4gen.config.paths import shown_path
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.errors import Problem
    from fa4gen.render.batch import RenderedConfig
    from fa4gen.toolchain.batch import Outcome
    from fa4gen.toolchain.choose import Chosen

_COLUMNS = ("kernel", "compiler", "registers", "spilled", "stack", "shared", "cubin", "s", "result")
_NUMBERS = _COLUMNS[2:8]


@dataclass(frozen=True)
class Row:
    """One kernel with one compiler."""

    item: RenderedConfig
    chosen: Chosen
    problems: tuple[Problem, ...]
    """Those of the outcome, traced to template lines."""
    files: tuple[Path, ...]
    """Files that were kept of it."""

    @property
    def outcome(self) -> Outcome:
        """The result of compiling it."""
        return self.chosen.outcome


def print_text(rows: Sequence[Row]) -> None:
    """Print the table and its summary."""
    from fa4gen.cli.output import print_table

    styles = {"compiled": "green", "refused": "red"}
    print_table(_COLUMNS, [_cells(row) for row in rows], right=_NUMBERS, styles=styles)
    good = sum(row.outcome.compiled for row in rows)
    cached = sum(row.outcome.kernel is not None and row.outcome.kernel.cached for row in rows)
    from_cache = f" ({cached} from the cache)" if cached else ""
    failed = f"; {len(rows) - good} failed" if good < len(rows) else ""
    for row in rows:
        if row.chosen.left and row.outcome.compiled:
            click.echo(f"{row.item.kernel.name}: {words_of_left(row)}")
    total = f"{counted(len(rows), 'kernel')} compiled"
    click.echo(f"{good} of {total} with a clean log{from_cache}{failed}. Nothing was run.")


def words_of_left(row: Row) -> str:
    """Return the candidates tried before the chosen one, in a line."""
    first, *rest = row.chosen.left
    others = f" and {counted(len(rest), 'other')}" if rest else ""
    return f"the first candidate was left ({first.why}){others}; fa4gen explain --compile shows all"


def row_data(row: Row) -> dict[str, Any]:
    """Return ``row`` as JSON data."""
    from fa4gen.cli.output import problem_data
    from fa4gen.toolchain.record import compile_data, dynamic_shared_bytes, proof_of

    kernel = row.outcome.kernel
    data: dict[str, Any] = {
        "name": row.item.kernel.name,
        "arch": row.item.kernel.arch,
        "config": shown_path(row.item.config),
        "compiler": row.outcome.compiler,
        "proof": proof_of(kernel),
    }
    if kernel is not None:
        data |= compile_data(kernel, dynamic_shared_bytes(row.item.kernel))
        data |= {"seconds": round(kernel.seconds, 3), "cached": kernel.cached}
    left = [{"set": dict(one.candidate.changes), "why": one.why} for one in row.chosen.left]
    return data | {
        "set": dict(row.chosen.candidate.changes),
        "left": left,
        "problems": [problem_data(problem) for problem in row.problems],
        "files": [shown_path(path) for path in row.files],
    }


def _cells(row: Row) -> tuple[object, ...]:
    from fa4gen.toolchain.record import dynamic_shared_bytes

    kernel = row.outcome.kernel
    name = row.item.kernel.name
    if kernel is None:
        return (name, row.outcome.compiler, *("" for _ in _NUMBERS), "refused")
    used = kernel.resources
    return (
        name,
        f"{kernel.compiler} {kernel.compiler_version}",
        used.registers,
        used.spill_store_bytes + used.spill_load_bytes,
        used.stack_bytes,
        used.static_shared_bytes + dynamic_shared_bytes(row.item.kernel),
        len(kernel.cubin),
        "cached" if kernel.cached else f"{kernel.seconds:.1f}",
        _result(row.outcome),
    )


def _result(outcome: Outcome) -> str:
    from fa4gen.toolchain.record import proof_of

    findings = outcome.kernel.findings if outcome.kernel else ()
    forbidden = dict.fromkeys(f.code for f in findings if f.forbids)
    if forbidden:
        return f"lint: {', '.join(forbidden)}"
    warnings = sum(f.severity == "warning" for f in findings)
    notes = [counted(warnings, "warning")] if warnings else []
    return "; ".join([proof_of(outcome.kernel), *notes])
