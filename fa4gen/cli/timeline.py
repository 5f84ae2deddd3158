"""``fa4gen emulate --timeline``: a picture of the main loop in the cost model, and its figures."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.errors import ConfigError, Problem
from fa4gen.temporary import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROLE_COLUMNS = ("role", "warps", "waiting", "most for")
RIGHT = ("warps", "waiting", "cycles for a block")


@contextmanager
def trace_for(trace: Path | None, timeline: Path | None) -> Iterator[Path | None]:
    """Give the file for the trace: ``trace``, or one for the picture only; None for neither."""
    if trace is not None or timeline is None:
        yield trace
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="fa4gen-") as folder:
        yield Path(folder) / "trace.json"


def draw_timeline(trace: Path | None, timeline: Path | None, title: str) -> dict[str, Any]:
    """Draw ``trace`` into ``timeline``; return {"timeline": figures}, or {} without a picture."""
    if trace is None or timeline is None:
        return {}
    from fa4gen.emulator.timeline.figures import measure, read_events
    from fa4gen.emulator.timeline.picture import draw

    document = json.loads(trace.read_text(encoding="utf-8"))
    try:
        picture = draw(document, title=title)
        figures = measure(read_events(document))
    except ValueError as error:
        raise ConfigError(
            Problem(f"--timeline: no picture was drawn: {error}", "--trace shows every launch.")
        ) from None
    replace_file(timeline, picture.encode())
    return {"timeline": asdict(figures)}


def print_figures(document: Mapping[str, Any]) -> None:
    """Print the figures of ``draw_timeline``."""
    from fa4gen.cli.output import print_table

    figures = document["timeline"]
    gaps = figures["gaps"]
    click.echo(
        f"steady state, {figures['blocks']} blocks: tensor core busy {figures['tensor_busy']:.1%}, "
        f"{figures['cycles_per_block']:.0f} cycles a block, bound by {figures['bound']}; "
        f"{gaps['count']} gaps of {gaps['total']:.0f} cycles in all, {gaps['longest']:.0f} at most"
    )
    limits = sorted(figures["limits"].items(), key=lambda item: -item[1])
    rows = [(name, f"{cycles:.0f}") for name, cycles in limits]
    print_table(("resource", "cycles for a block"), rows, right=RIGHT)
    roles = [
        (role["name"], role["warps"], f"{role['waiting']:.0%}", role["longest_wait"])
        for role in figures["roles"]
    ]
    print_table(ROLE_COLUMNS, roles, right=RIGHT)
