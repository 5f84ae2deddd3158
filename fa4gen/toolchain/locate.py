"""Finds the source lines of the lint's findings, from a second build with line information.

Only findings cost that second build; kernels that are clean are compiled once.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.errors import CompileError
from fa4gen.toolchain.failures import RefusedError
from fa4gen.toolchain.lint import lint
from fa4gen.toolchain.report import read_resources
from fa4gen.toolchain.source_lines import Frame, describe, ptx_line_chain, ptx_line_chains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.errors import Problem
    from fa4gen.toolchain.failures import Diagnostic
    from fa4gen.toolchain.model import Built, Compiler, Finding

_LOCAL = re.compile(r"\s*(?:@!?%\w+\s+)?(ld|st)\.local\b")
_ARRAY_CODES = ("stack", "local")
"""Findings about arrays, whose accesses are in the PTX; those of spilled registers are not."""


def needs_lines(findings: Sequence[Finding]) -> bool:
    """Whether a build with line information can say more about ``findings``."""
    return any(not f.line and (f.ptx_line or f.code in _ARRAY_CODES) for f in findings)


def with_places(findings: Sequence[Finding], built: Built) -> tuple[Finding, ...]:
    """Return ``findings`` with the places that ``built``, the unit with line information, shows.

    A finding that ``built`` does not show in the same way, which should not happen, is kept.
    """
    resources = read_resources(built.log)
    twins = list(lint(built.log, resources))
    return tuple(_with_place(finding, twins, built) for finding in findings)


def with_source_lines(error: RefusedError, tool: Compiler) -> CompileError:
    """Return ``error`` with source lines of the refused code, if ptxas names lines of PTX."""
    unit = error.unit
    if unit is None or not any(d.ptx_line for d in error.diagnostics):
        return error
    unit = replace(unit, line_info=True)
    ptx = tool.build_ptx(unit)
    try:
        tool.build(unit)
    except RefusedError as again:  # the same errors, with the line numbers of this PTX
        problems = [
            _with_source_line(problem, diagnostic, ptx)
            for problem, diagnostic in zip(again.problems, again.diagnostics, strict=True)
        ]
        return CompileError(*problems)
    return error


def _with_source_line(problem: Problem, diagnostic: Diagnostic, ptx: str) -> Problem:
    if not diagnostic.ptx_line:
        return problem
    chain = ptx_line_chain(ptx, diagnostic.ptx_line)
    if not chain:
        return problem
    instruction = ptx.splitlines()[diagnostic.ptx_line - 1].strip()
    message = f"ptxas: {diagnostic.message}: {instruction}\n  at: {describe(chain)}"
    return replace(problem, message=message, file=chain[0].file, line=chain[0].line, column=1)


def _with_place(finding: Finding, twins: list[Finding], built: Built) -> Finding:
    if finding.line:
        return finding
    if finding.code in _ARRAY_CODES:
        places = _local_places(built.ptx)
        if not places:
            return finding
        top = places[0][0]
        texts = tuple(text for _, text in places)
        return replace(finding, file=top.file, line=top.line, places=texts)
    twin = next((twin for twin in twins if twin.code == finding.code and twin.ptx_line), None)
    if twin is None:
        return finding
    twins.remove(twin)  # the next finding of this code has its own
    chain = ptx_line_chain(built.ptx, twin.ptx_line)
    if not chain:
        return finding
    return replace(finding, file=chain[0].file, line=chain[0].line, places=(describe(chain),))


def _local_places(ptx: str) -> list[tuple[Frame, str]]:
    """Return the lines with accesses to local memory, most accesses first, in words."""
    kinds = {
        number: "load" if match[1] == "ld" else "store"
        for number, line in enumerate(ptx.splitlines(), 1)
        if (match := _LOCAL.match(line))
    }
    counts: dict[str, Counter[str]] = {}
    first: dict[str, Frame] = {}
    for number, chain in ptx_line_chains(ptx, kinds).items():
        if chain:
            place = describe(chain)
            counts.setdefault(place, Counter())[kinds[number]] += 1
            first.setdefault(place, chain[0])
    ordered = sorted(counts, key=lambda place: (-counts[place].total(), first[place].line))
    return [(first[place], f"{place}: {_counts(counts[place])}") for place in ordered]


def _counts(kinds: Counter[str]) -> str:
    """``2 loads, 1 store``."""
    return ", ".join(counted(n, kind) for kind, n in sorted(kinds.items()))
