"""Draws a timeline's trace as an SVG: a line for the tensor core, every warpgroup and the copies.

The picture stands on its own: no scripts, no fonts, colours for light and dark surroundings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

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
_LIGHT: Final = {
    "QK": "#2f6fd6", "PV": "#e07b1f", "product": "#2f6fd6", "exp2": "#b5358f",
    "compute": "#2a9d76", "tmem": "#7a8b1e", "memory": "#8a6d4b", "issue": "#5b6470",
    "copy": "#c7a20c", "wait": "#e4e6ea",
}  # fmt: skip
_DARK: Final = {
    "QK": "#5b95f0", "PV": "#f0994a", "product": "#5b95f0", "exp2": "#d966b6",
    "compute": "#45bf95", "tmem": "#a9bd3f", "memory": "#b39570", "issue": "#8f9aa8",
    "copy": "#e0c03c", "wait": "#333941",
}  # fmt: skip


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
    height = _TOP + len(rows) * (_ROW + _GAP) + 66
    width = _LEFT + _WIDTH + _RIGHT
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label={quoteattr(title)}>',
        f"<title>{escape(title)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        _text(20, 26, title, "head"),
        *(_text(20, 48 + 18 * index, line, "note") for index, line in enumerate(_notes(figures))),
    ]
    bottom = _TOP + len(rows) * (_ROW + _GAP)
    parts += _axis(span, bottom)
    for index, row in enumerate(rows):
        parts += _row(row, _TOP + index * (_ROW + _GAP), span)
    parts += _legend(rows, bottom + 46)
    return "\n".join([*parts, "</svg>", ""])


def _style() -> str:
    """The style sheet."""
    light = " ".join(f".{name}{{fill:{colour}}}" for name, colour in _LIGHT.items())
    dark = " ".join(f".{name}{{fill:{colour}}}" for name, colour in _DARK.items())
    return (
        "text{font:12px system-ui,sans-serif;fill:#1f2328} .head{font-size:16px;font-weight:600}"
        " .note,.tick{fill:#57606a} .tick{font-size:11px} .on{font-size:11px;fill:#fff}"
        " .off{font-size:10px;fill:#57606a} .paper{fill:#fff} line{stroke:#d0d7de}"
        f" {light} @media (prefers-color-scheme:dark){{text{{fill:#e6edf3}} .paper{{fill:#0d1117}}"
        " .note,.tick,.off{fill:#9198a1} .on{fill:#0d1117} line{stroke:#30363d}"
        f" {dark}}}"
    )


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


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}"{place}>{escape(text)}</text>'


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
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 16, f"{time:.0f}", "tick", "middle"))
        time += step
    parts.append(_text(20, bottom + 16, "cycles", "tick"))
    return parts


def _row(row: _Row, y: float, span: tuple[float, float]) -> list[str]:
    parts = [_text(20, y + _ROW / 2 + 4, row.title, "name")]
    for box in row.boxes:
        x, width = _x(box.begin, span), _x(box.end, span) - _x(box.begin, span)
        length = box.end - box.begin
        parts.append(
            f'<rect class="{box.style}" x="{x:.1f}" y="{y}" width="{max(width, 0.4):.1f}" '
            f'height="{_ROW}"><title>{escape(box.tip)}: {length:.0f} cycles</title></rect>'
        )
        if len(box.word) * _LETTER + 4 < width:
            style = "off" if box.style == "wait" else "on"
            parts.append(_text(x + width / 2, y + _ROW / 2 + 4, box.word, style, "middle"))
    return parts


def _legend(rows: Iterable[_Row], y: float) -> list[str]:
    """The kinds in the drawing."""
    used = {box.style for row in rows for box in row.boxes}
    parts, x = [], 20.0
    for style, meaning in _KINDS.values():
        if style in used:
            parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y - 10}" width="14" height="12"/>')
            parts.append(_text(x + 19, y, meaning, "note"))
            x += 19 + len(meaning) * _LETTER + 18
    return parts
