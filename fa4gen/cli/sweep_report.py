"""The report of ``fa4gen sweep``: its cases and its results."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.escapes import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.cli.options import OutputFormat
    from fa4gen.config.sweep import SweepCase
    from fa4gen.errors import Problem
    from fa4gen.sweep.record import CaseRecord, Outcome

COLUMNS = ("case", "result", "cases", "registers", "spilled", "shared", "stages", "seconds")
RIGHT = ("cases", "registers", "spilled", "shared", "seconds")
REASON_COLUMNS = ("case", "outcome", "reason")
UNKNOWN = "-"


def print_cases(cases: Sequence[SweepCase], output_format: OutputFormat) -> None:
    """Print each case for ``--list``, and why it will be skipped."""
    from fa4gen.cli.output import print_json, print_table, problem_data

    if output_format == "json":
        print_json(
            [
                {
                    "case": case.name,
                    "config": dict(case.config),
                    "problems": [problem_data(problem) for problem in case.problems],
                }
                for case in cases
            ]
        )
        return
    rows = [(case.name, "; ".join(problem.message for problem in case.problems)) for case in cases]
    print_table(("case", "skipped because"), rows)


def print_results(
    sweep: str, records: Sequence[CaseRecord], path: Path, output_format: OutputFormat
) -> None:
    """Print the results, and where they are: a table, a JSON document or annotations."""
    from fa4gen.cli.output import note, print_json
    from fa4gen.proof_words import is_emulated
    from fa4gen.sweep.record import count_outcomes

    if output_format == "json":
        print_json(
            {
                "sweep": sweep,
                "results": str(path),
                "counts": count_outcomes(records),
                "cases": [record.data() for record in records],
            }
        )
    elif output_format == "github":
        _print_annotations(records)
    else:
        _print_tables(records)
    say = print if output_format == "text" else note
    first, *others = _summary(sweep, records)
    for line in (f"{first}; results: {path}", *others):
        say(line)
    if any(is_emulated(record.proof) for record in records if record.outcome == "passed"):
        note("kernels were emulated where there is no GPU of their architecture")


def check_summary(path: Path) -> None:
    """Raise ConfigError where nothing could be added to the file of ``--summary``."""
    from fa4gen.config.paths import shown_path
    from fa4gen.errors import ConfigError, Problem

    file = shown_path(path)
    if path.is_dir():
        raise ConfigError(Problem("--summary names a folder", "Name a file in it.", file))
    place = path if path.exists() else path.absolute().parent
    if not os.access(place, os.W_OK):
        raise ConfigError(Problem("--summary cannot be written", "Choose another place.", file))


def append_summary(path: Path, sweep: str, records: Sequence[CaseRecord]) -> None:
    """Add the results to a file as Markdown."""
    from fa4gen.cli.output import markdown_lines

    first, *others = _summary(sweep, records)
    parts = [
        f"### {first}",
        *others,
        "\n".join(markdown_lines(COLUMNS, map(_cells, _run_cases(records)))),
    ]
    if reasons := _reasons(records):
        parts.append("\n".join(markdown_lines(REASON_COLUMNS, reasons)))
    with path.open("a", encoding="utf-8") as file:
        file.write("\n\n".join(parts) + "\n\n")


def html_page(sweep: str, records: Sequence[CaseRecord]) -> str:
    """Return the results as a page that needs no other file; a click on a heading sorts by it."""
    from pathlib import Path

    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True,
        trim_blocks=True, finalize=lambda value: one_line(str(value)),
    )  # fmt: skip
    title, *lines = _summary(sweep, records)
    run = [(record.outcome, _cells(record)) for record in _run_cases(records)]
    reasons = [("skipped" if row[1] == "skipped" else "failed", row) for row in _reasons(records)]
    tables = [(COLUMNS, run), (REASON_COLUMNS, reasons)]
    page = environment.get_template("sweep.html.j2").render(
        title=title, lines=lines, tables=[table for table in tables if table[1]], right=RIGHT
    )
    return page.encode(errors="backslashreplace").decode()  # halves of characters


def _summary(sweep: str, records: Sequence[CaseRecord]) -> list[str]:
    """Return how many cases passed, and how far they are proved."""
    from fa4gen.proof_words import proof_word
    from fa4gen.sweep.record import count_outcomes

    counts = count_outcomes(records)
    numbers = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
    proofs = Counter(proof_word(one.proof) for one in records if one.outcome == "passed")
    proved = ", ".join(f"{number} {proof}" for proof, number in proofs.items())
    lines = [f"{sweep}: {counted(len(records), 'case')}: {numbers}"]
    return [*lines, f"proved: {proved}"] if proofs else lines


def _print_tables(records: Sequence[CaseRecord]) -> None:
    """Print a row for each case that was run, and for each reason to fail or to skip cases."""
    from fa4gen.cli.output import print_table

    run = [_cells(record) for record in _run_cases(records)]
    if run:
        print_table(COLUMNS, run, right=RIGHT)
    if reasons := _reasons(records):
        if run:
            print()
        print_table(REASON_COLUMNS, reasons, styles={"skipped": "yellow"})


def _run_cases(records: Sequence[CaseRecord]) -> list[CaseRecord]:
    return [record for record in records if record.outcome != "skipped"]


def _cells(record: CaseRecord) -> tuple[str, ...]:
    """Return a row of COLUMNS; UNKNOWN where the case did not come to a value."""
    from fa4gen.sweep.planning import stages_in_words

    facts, verification = record.facts, record.verification

    def total(*names: str) -> str:
        return str(sum(facts[name] for name in names)) if {*names} <= {*facts} else UNKNOWN

    cases = "{num_passed}/{num_cases}".format(**verification) if verification else UNKNOWN
    return (
        record.case,
        record.proof if record.outcome == "passed" else _failure(record),
        cases,
        total("registers"),
        total("spill_store_bytes", "spill_load_bytes"),
        total("dynamic_shared_bytes", "static_shared_bytes"),
        stages_in_words(facts) or UNKNOWN,
        f"{record.total_seconds:.1f}",
    )


def _failure(record: CaseRecord) -> str:
    return "its worker failed" if record.stage == "worker" else f"failed to {record.stage}"


def _reasons(records: Sequence[CaseRecord]) -> list[tuple[str, str, str]]:
    """Return a row of REASON_COLUMNS for each failed case, and for each reason to skip cases."""
    rows = [
        (record.case, _failure(record), record.reason.partition("\n")[0])
        for record in records
        if record.outcome == "failed"
    ]
    for problem, cases in _by_problem(records, "skipped").items():
        place = f" ({problem.place})" if problem.place else ""
        rows.append((_cases_in_words(cases), "skipped", problem.message + place))
    return rows


def _print_annotations(records: Sequence[CaseRecord]) -> None:
    """Print one annotation for each problem, however many cases have it: GitHub shows few."""
    from dataclasses import replace

    from fa4gen.cli.output import annotate

    for problem, cases in _by_problem(records, "failed").items():
        named = replace(problem, message=f"{_cases_in_words(cases)} failed: {problem.message}")
        annotate("error", named, on_stdout=True)
    for problem, cases in _by_problem(records, "skipped").items():
        named = replace(problem, message=f"{_cases_in_words(cases)} skipped: {problem.message}")
        annotate("notice", named, on_stdout=True)


def _by_problem(records: Sequence[CaseRecord], outcome: Outcome) -> dict[Problem, list[str]]:
    cases: dict[Problem, list[str]] = {}
    for record in records:
        if record.outcome == outcome:
            for problem in record.problems:
                cases.setdefault(problem, []).append(record.case)
    return cases


def _cases_in_words(cases: Sequence[str]) -> str:
    more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    return f"{cases[0]}{more}"
