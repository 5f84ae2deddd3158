"""Source text to a linted cubin, through the cache."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fa4gen.errors import CompileError, Problem
from fa4gen.toolchain.cache import Entry, content_key, key_ingredients
from fa4gen.toolchain.lint import lint
from fa4gen.toolchain.model import CompiledKernel, Unit
from fa4gen.toolchain.report import read_resources

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
    waive: Collection[str] = (),
    report: bool = False,
) -> CompiledKernel:
    """Compile the text of ``<name>.cu`` for exactly ``arch`` ("sm_90a") and lint the log.

    ``headers`` maps the names in ``#include "..."`` to their text. ``compiler`` is "auto", "nvrtc",
    "nvcc" or a compiler object, which serves many calls faster. Findings whose code is in ``waive``
    are reported but accepted; with ``report`` all are, and the caller looks at ``findings``.

    Raises CompileError when the compiler refuses the source or the lint forbids what it made, and
    MissingCapabilityError without the compiler or when it does not know ``arch``.
    """
    tool = find_compiler(compiler) if isinstance(compiler, str) else compiler
    unit = Unit(name, source, headers, arch)
    ingredients = key_ingredients(unit, tool)
    key = content_key(ingredients)
    entry = cache.load(key) if cache else None
    cached, note = entry is not None, ""
    if entry is None:
        start = time.perf_counter()
        built = tool.build(unit)
        entry = Entry(built, time.perf_counter() - start)
        if cache:
            note = cache.store(key, ingredients, entry)
    built = entry.built
    resources = read_resources(built.log, built.cubin)
    findings = lint(built.log, resources, waive)
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
        cached=cached,
        seconds=entry.seconds,
        key=key,
        cache_note=note,
    )
    if not report and not kernel.clean:
        raise CompileError(*(lint_problem(kernel, f) for f in findings if f.forbids))
    return kernel


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
    )
