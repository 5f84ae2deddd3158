"""Compiles kernels of which no choice is recorded yet, and picks their candidates."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.errors import Problem
    from fa4gen.render.batch import RenderedConfig
    from fa4gen.render.records import Records
    from fa4gen.toolchain.choose import Chosen
    from fa4gen.toolchain.model import Compiler


def choose_candidates(
    rendered: Sequence[RenderedConfig], records: Records, templates: Path | None, *, jobs: int
) -> list[RenderedConfig]:
    """Return ``rendered`` with what a compiler takes, where ``records`` lack it.

    Without a compiler, and where the source of a template is wrong, a kernel stays what it is, and
    a note says so. Raises CompileError for kernels of which no candidate compiles clean.
    """
    from fa4gen.cli.output import note
    from fa4gen.errors import CompileError, MissingCapabilityError
    from fa4gen.toolchain.compile import find_compiler

    unknown = [item for item in rendered if not records.is_as_compiled(item.kernel)]
    if not unknown:
        return list(rendered)
    try:
        tool = find_compiler()
    except MissingCapabilityError as error:
        note(f"rendered, not compiled: {error.problems[0].message}")
        return without_compiler(rendered, records)
    chosen = compile_all(unknown, tool, templates, jobs=jobs)
    found = dict(zip(map(id, unknown), chosen, strict=True))
    refused = [
        problem
        for item in unknown
        if not found[id(item)].is_settled
        for problem in _problems(item, found[id(item)], templates)
    ]
    if refused:
        raise CompileError(*refused)
    wrong = [one for one in chosen if one.outcome.problems]
    if wrong:
        note(
            f"{counted(len(wrong), 'kernel')} rendered, not compiled: "
            f"{wrong[0].outcome.problems[0].message}; `fa4gen compile` says where"
        )
    return [_taken(item, found[id(item)]) if id(item) in found else item for item in rendered]


def compile_all(
    items: Sequence[RenderedConfig],
    tool: Compiler,
    templates: Path | None,
    *,
    jobs: int,
    use_cache: bool = True,
) -> list[Chosen]:
    """Return what ``tool`` takes of each of ``items``, and show how far it is."""
    from fa4gen.cli.progress import progress
    from fa4gen.render.environment import open_templates
    from fa4gen.render.render import render
    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.choose import choose_many

    with progress(len(items), "kernels compiled") as bar:
        return choose_many(
            [item.loaded for item in items],
            tool,
            cache=Cache.default() if use_cache else None,
            jobs=jobs,
            render=partial(render, templates=open_templates(templates)),
            on_done=bar.advance,
        )


def without_compiler(rendered: Sequence[RenderedConfig], records: Records) -> list[RenderedConfig]:
    """Return ``rendered`` with manifests that name a compiler only where it took these texts."""
    from fa4gen.render.choice import not_compiled

    return [
        item
        if records.is_as_compiled(item.kernel)
        else replace(item, kernel=not_compiled(item.kernel))
        for item in rendered
    ]


def _taken(item: RenderedConfig, chosen: Chosen) -> RenderedConfig:
    from fa4gen.render.choice import with_choice

    kernel = with_choice(chosen.candidate.rendered, chosen.record)
    return replace(item, kernel=kernel, plan=chosen.plan)


def _problems(item: RenderedConfig, chosen: Chosen, templates: Path | None) -> tuple[Problem, ...]:
    from fa4gen.toolchain.origin import Origins

    first = replace(item, kernel=chosen.candidate.rendered, plan=chosen.plan)
    return Origins(first, templates).trace(chosen.outcome.problems)
