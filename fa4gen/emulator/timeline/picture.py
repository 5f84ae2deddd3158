"""Draws a timeline's trace as an SVG: a line for the tensor core, every warpgroup and the copies.

The picture stands on its own: no scripts, no fonts, colours for light and dark surroundings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fa4gen.emulator.timeline.figures import (
    FIRST,
    ONLY,
    SECOND,
    TENSOR_CORE,
    Event,
    Figures,
    labels,
    measure,
    read_events,
    row_of,
)
from fa4gen.svg import document as svg_document
from fa4gen.svg import rule, shape, text

BLOCKS_SHOWN: Final = 3
_LEFT, _WIDTH, _RIGHT = 150, 1200, 20
_ROW, _GAP, _TOP = 30, 8, 92
_LETTER: Final = 6.6
_LEAST: Final = 0.4
_KINDS: Final = {
    FIRST: ("QK", "product of queries and keys"),
    SECOND: ("PV", "product of weights and values"),
    ONLY: ("product", "matrix product"),
    "exp2": ("exp2", "exponentials"),
    "compute": ("compute", "other arithmetic"),
    "tensor memory": ("tmem", "tensor memory load, store"),
    "memory": ("memory", "other loads, stores"),
    "issue": ("issue", "issues products, copies"),
    "tma": ("copy", "copy by TMA"),
    "wait": ("wait", "waits"),
}
_COLOURS: Final = {
    "QK": ("#2f6fd6", "#5b95f0"), "PV": ("#e07b1f", "#f0994a"), "product": ("#2f6fd6", "#5b95f0"),
    "exp2": ("#b5358f", "#d966b6"), "compute": ("#2a9d76", "#45bf95"),
    "tmem": ("#7a8b1e", "#a9bd3f"), "memory": ("#8a6d4b", "#b39570"),
    "issue": ("#5b6470", "#8f9aa8"), "copy": ("#c7a20c", "#e0c03c"), "wait": ("#e4e6ea", "#333941"),
}  # fmt: skip
"""By kind, for light and dark pages."""
_STYLE: Final = ".small{font-size:11px}"


@dataclass(frozen=True, slots=True)
class _Row:
    title: str
    boxes: tuple[_Box, ...]


@dataclass(frozen=True, slots=True)
class _Box:
    """A box of the drawing: its class, its span in cycles, a short label, a full text."""

    style: str
    begin: float
    end: float
    word: str
    tip: str


def draw(
    document: Mapping[str, Any],
    *,
    title: str = "",
    blocks: int | None = None,
    span: tuple[float, float] | None = None,
    cta: int = 0,
) -> str:
    """The SVG of a trace with the figures of its steady state in the head.

    ``blocks`` of keys are in the whole trace, as for ``measure``; ``span`` is the drawn part, in
    cycles: by default the first blocks of the steady state. Raises ValueError for a trace without
    matrix products.
    """
    events = read_events(document, cta)
    figures = measure(events, blocks)
    if span is None:
        shown = min(figures.blocks, BLOCKS_SHOWN)
        span = figures.begin, figures.begin + shown * figures.cycles_per_block
    rows = _rows(events, span)
    return _svg(title, figures, rows, span)


def _rows(events: Sequence[Event], span: tuple[float, float]) -> list[_Row]:
    inside = [event for event in events if event.overlap(*span)]
    units: dict[str, list[Event]] = {}
    # a warpgroup is shown by its first warp: its warps do the same at nearly the same time
    roles: dict[tuple[str, int], dict[int, list[Event]]] = {}
    for event in inside:
        row = row_of(event.track)
        if row is None:
            units.setdefault(event.track.unit, []).append(event)
        else:
            roles.setdefault(row, {}).setdefault(event.track.warp or 0, []).append(event)
    names = labels(events)
    rows = [_Row(TENSOR_CORE, _boxes(units.pop(TENSOR_CORE, []), names, span))]
    for row in sorted(roles, key=lambda one: (min(roles[one]), one)):
        first = roles[row][min(roles[row])]
        if any(event.kind != "wait" for event in first):
            rows.append(_Row(row[0], _boxes(first, names, span)))
    rows += [_Row(unit, _boxes(units[unit], names, span)) for unit in sorted(units)]
    return rows


def _boxes(
    events: Iterable[Event], names: Mapping[str, str], span: tuple[float, float]
) -> tuple[_Box, ...]:
    """The boxes of a row; those of one look and place with no visible gap are joined."""
    least = (span[1] - span[0]) / _WIDTH * _LEAST
    boxes: list[_Box] = []
    for event in events:
        begin, end = max(event.begin, span[0]), min(event.end, span[1])
        if event.track.unit == TENSOR_CORE:
            label = names[str(event.args.get("a", ""))]
            style, word, tip = _KINDS[label][0], label, event.name
        else:
            style = _KINDS.get(event.kind, _KINDS["memory"])[0]
            word = event.name.removeprefix("wait for ") if event.kind == "wait" else event.name
            tip = event.name
        tip = f"{tip} at {event.args['at']}" if "at" in event.args else tip
        last = boxes[-1] if boxes else None
        if last and (last.style, last.word) == (style, word) and begin - last.end < least:
            boxes[-1] = _Box(style, last.begin, max(last.end, end), word, last.tip)
        else:
            boxes.append(_Box(style, begin, end, word, tip))
    return tuple(box for box in boxes if box.end - box.begin >= least)


def _svg(title: str, figures: Figures, rows: Sequence[_Row], span: tuple[float, float]) -> str:
    bottom = _TOP + len(rows) * (_ROW + _GAP)
    parts = [text(20, 26, title, "text head")]
    parts += [text(20, 48 + 18 * n, line, "quiet") for n, line in enumerate(_notes(figures))]
    parts += _axis(span, bottom)
    for index, row in enumerate(rows):
        parts += _row(row, _TOP + index * (_ROW + _GAP), span)
    parts += _legend(rows, bottom + 46)
    width = _LEFT + _WIDTH + _RIGHT
    return svg_document(width, bottom + 66, title, parts, style=_STYLE, colours=_COLOURS)


def _notes(figures: Figures) -> tuple[str, str]:
    """The figures in two lines."""
    gaps = figures.gaps
    limits = sorted(figures.limits.items(), key=lambda item: -item[1])
    return (
        f"Cycles of a model. Tensor core busy {figures.tensor_busy:.0%} of the steady state, "
        f"{figures.cycles_per_block:.0f} cycles a block of keys; {gaps.count} gaps, the longest "
        f"{gaps.longest:.0f} cycles.",
        "In use for a block: " + ", ".join(f"{name} {cycles:.0f}" for name, cycles in limits) + ".",
    )


def _x(time: float, span: tuple[float, float]) -> float:
    return _LEFT + (time - span[0]) / (span[1] - span[0]) * _WIDTH


def _axis(span: tuple[float, float], bottom: float) -> list[str]:
    """Lines at round numbers of cycles."""
    length = span[1] - span[0]
    step = 1.0
    for factor in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000):
        step = float(factor)
        if length / step <= 14:
            break
    parts = []
    time = -(-span[0] // step) * step
    while time <= span[1]:
        x = _x(time, span)
        parts.append(rule(x, _TOP - 4, x, bottom))
        parts.append(text(x, bottom + 16, f"{time:.0f}", "quiet small", "middle"))
        time += step
    parts.append(text(20, bottom + 16, "cycles", "quiet small"))
    return parts


def _row(row: _Row, y: float, span: tuple[float, float]) -> list[str]:
    parts = [text(20, y + _ROW / 2 + 4, row.title)]
    for box in row.boxes:
        x, width = _x(box.begin, span), _x(box.end, span) - _x(box.begin, span)
        length = box.end - box.begin
        size = f'x="{x:.1f}" y="{y}" width="{max(width, 0.4):.1f}" height="{_ROW}"'
        tip = f"{box.tip}: {length:.0f} cycles"
        parts.append(shape(f'<rect class="{box.style}" {size}', tip))
        if len(box.word) * _LETTER + 4 < width:
            style = f"{'quiet' if box.style == 'wait' else 'paper'} small"
            parts.append(text(x + width / 2, y + _ROW / 2 + 4, box.word, style, "middle"))
    return parts


def _legend(rows: Iterable[_Row], y: float) -> list[str]:
    """The kinds in the drawing."""
    used = {box.style for row in rows for box in row.boxes}
    parts, x = [], 20.0
    for style, meaning in _KINDS.values():
        if style in used:
            parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y - 10}" width="14" height="12"/>')
            parts.append(text(x + 19, y, meaning, "quiet"))
            x += 19 + len(meaning) * _LETTER + 18
    return parts
