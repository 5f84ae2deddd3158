"""Finds the source lines of the lint's findings, from a second build with line information.

Only findings cost that second build; kernels that are clean are compiled once.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.errors import CompileError
from fa4gen.toolchain.elf import Cubin
from fa4gen.toolchain.failures import RefusedError
from fa4gen.toolchain.lint import lint
from fa4gen.toolchain.report import read_resources
from fa4gen.toolchain.source_lines import AddressLines, Frame, describe, ptx_line_chain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.errors import Problem
    from fa4gen.toolchain.diagnostics import Diagnostic
    from fa4gen.toolchain.elf import Function
    from fa4gen.toolchain.model import Built, Compiler, Finding

_INSTRUCTION_BYTES = 16
_OPCODE_BITS = 0xFFF
_LOCAL_OPCODES = {0x387: "store", 0x983: "load"}
"""Low bits of STL and LDL on sm_90 and sm_100."""
_MEMORY_CODES = ("spill", "stack", "local")


def needs_lines(findings: Sequence[Finding]) -> bool:
    """Whether a build with line information can say more about ``findings``."""
    return any(not f.line and (f.ptx_line or f.code in _MEMORY_CODES) for f in findings)


def with_places(findings: Sequence[Finding], built: Built) -> tuple[Finding, ...]:
    """Return ``findings`` with the places that ``built``, the unit with line information, shows.

    A finding that ``built`` does not show in the same way, which should not happen, is kept.
    """
    resources = read_resources(built.log, built.cubin)
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


def local_accesses(function: Function) -> Iterator[tuple[int, str]]:
    """Yield the address of each access to local memory in a function's code, with its kind."""
    for address in range(0, len(function.code) - 7, _INSTRUCTION_BYTES):
        (low,) = struct.unpack_from("<Q", function.code, address)
        kind = _LOCAL_OPCODES.get(low & _OPCODE_BITS)
        if kind:
            yield address, kind


def _with_place(finding: Finding, twins: list[Finding], built: Built) -> Finding:
    if finding.line:
        return finding
    if finding.code in _MEMORY_CODES:
        places = _local_places(Cubin(built.cubin))
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


def _local_places(cubin: Cubin) -> list[tuple[Frame, str]]:
    """Return the lines with accesses to local memory, most accesses first, in words."""
    lines = AddressLines(cubin)
    counts: dict[str, Counter[str]] = {}
    first: dict[str, Frame] = {}
    for function in cubin.functions:
        for address, kind in local_accesses(function):
            chain = lines.chain(function.name, address)
            if chain:
                place = describe(chain)
                counts.setdefault(place, Counter())[kind] += 1
                first.setdefault(place, chain[0])
    ordered = sorted(counts, key=lambda place: (-counts[place].total(), first[place].line))
    return [(first[place], f"{place}: {_counts(counts[place])}") for place in ordered]


def _counts(kinds: Counter[str]) -> str:
    """``2 loads, 1 store``."""
    return ", ".join(counted(n, kind) for kind, n in sorted(kinds.items()))
