"""Source text to a linted cubin, through the cache."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.errors import CompileError, Problem
from fa4gen.toolchain.cache import Entry, content_key, key_ingredients
from fa4gen.toolchain.failures import RefusedError
from fa4gen.toolchain.lint import lint
from fa4gen.toolchain.locate import needs_lines, with_places, with_source_lines
from fa4gen.toolchain.model import CompiledKernel, Unit
from fa4gen.toolchain.report import read_resources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.model import Compiler, Finding


def find_compiler(choice: str = "auto") -> Compiler:
    """Return the compiler called "nvrtc" or "nvcc"; "auto" is NVRTC, which needs no toolkit.

    MissingCapabilityError when it is not there.
    """
    if choice == "nvcc":
        from fa4gen.toolchain.nvcc import Nvcc

        return Nvcc()
    if choice not in ("auto", "nvrtc"):
        raise ValueError(f"compiler is {choice!r}, not auto, nvrtc or nvcc")
    from fa4gen.toolchain.nvrtc import Nvrtc

    return Nvrtc()


def compile_kernel(
    source: str,
    headers: Mapping[str, str],
    arch: str,
    *,
    name: str,
    compiler: str | Compiler = "auto",
    cache: Cache | None = None,
    report: bool = False,
    places: bool = True,
) -> CompiledKernel:
    """Compile the text of ``<name>.cu`` for exactly ``arch`` ("sm_90a") and lint the log.

    ``headers`` maps the names in ``#include "..."`` to their text. ``compiler`` is "auto", "nvrtc",
    "nvcc" or a compiler object, which serves many calls faster. With ``report`` findings of the
    lint are accepted, and the caller reads ``findings``. With ``places`` these have source lines,
    for which the source is compiled a second time.

    Raises CompileError when the compiler refuses the source or the lint its result, and
    MissingCapabilityError without the compiler or when it does not know ``arch``.
    """
    tool = find_compiler(compiler) if isinstance(compiler, str) else compiler
    unit = Unit(name, source, headers, arch)
    made = _make(unit, tool, cache)
    built = made.entry.built
    resources = read_resources(built.log)
    findings = lint(built.log, resources)
    if places and needs_lines(findings):
        with_lines = _make(replace(unit, line_info=True), tool, cache)
        findings = with_places(findings, with_lines.entry.built)
    kernel = CompiledKernel(
        name=name,
        arch=arch,
        ptx=built.ptx,
        cubin=built.cubin,
        log=built.log,
        compiler=tool.name,
        compiler_version=tool.version,
        options=tool.options(unit),
        resources=resources,
        findings=findings,
        cached=made.cached,
        seconds=made.entry.seconds,
        key=made.key,
        cache_note=made.cache_note,
    )
    if not report and not kernel.clean:
        raise CompileError(*(lint_problem(kernel, f) for f in findings if f.forbids))
    return kernel


@dataclass(frozen=True)
class _Made:
    entry: Entry
    key: str
    cached: bool
    cache_note: str


def _make(unit: Unit, tool: Compiler, cache: Cache | None) -> _Made:
    """Take ``unit`` from the cache, or compile and store it."""
    ingredients = key_ingredients(unit, tool)
    key = content_key(ingredients)
    entry = cache.load(key) if cache else None
    if entry is not None:
        return _Made(entry, key, cached=True, cache_note="")
    start = time.perf_counter()
    try:
        built = tool.build(unit)
    except RefusedError as error:
        raise with_source_lines(error, tool) from error
    entry = Entry(built, time.perf_counter() - start)
    note = cache.store(key, ingredients, entry) if cache else ""
    return _Made(entry, key, cached=False, cache_note=note)


def lint_problem(kernel: CompiledKernel, finding: Finding) -> Problem:
    """Return ``finding`` as a problem of the generated file, with the log's lines in it."""
    log = "".join(f"\n  log: {line}" for line in finding.log_lines)
    places = "".join(f"\n  at: {place}" for place in finding.places)
    compiler = f"{kernel.compiler} {kernel.compiler_version}"
    return Problem(
        f"{finding.code}: {finding.message} ({compiler}){places}{log}",
        finding.remedy,
        file=finding.file or f"{kernel.name}.cu",
        line=finding.line,
        column=1 if finding.line else 0,
    )
