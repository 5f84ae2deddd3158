"""Draws panels of lines as an SVG that needs neither scripts nor fonts, for light or dark pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FONT: Final = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
_WIDTH: Final = 800
_LEFT, _LABELS, _GAP = 50, 84, 14
"""Before the first panel, for the words of the axis; after each, for the names of its lines."""
_LETTER: Final = 7.2
_TOP, _PANEL, _BELOW = 104, 250, 44
_LINE: Final = 15
_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_MOST_STEPS: Final = 6


@dataclass(frozen=True)
class Theme:
    """Colours. ``ramp`` runs from the first line of a panel to the last."""

    paper: str
    text: str
    quiet: str
    grid: str
    reference: str
    ramp: tuple[str, ...]


LIGHT: Final = Theme(
    paper="#ffffff",
    text="#1f2328",
    quiet="#59636e",
    grid="#e4e7eb",
    reference="#59636e",
    ramp=("#e8930c", "#e2553d", "#b8337f", "#6f3fb5", "#1f5fbf"),
)
DARK: Final = Theme(
    paper="#0d1117",
    text="#f0f6fc",
    quiet="#9198a1",
    grid="#262c36",
    reference="#9198a1",
    ramp=("#ffc24b", "#ff8a65", "#f277b0", "#b692ff", "#6cb0ff"),
)


@dataclass(frozen=True)
class Point:
    """A value at a tick of the axis, by its index; ``kind`` chooses the marker."""

    tick: int
    value: float
    kind: str | None
    tip: str


@dataclass(frozen=True)
class Line:
    """A line and its name, which is written at its end."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """Lines over one axis, under a title."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Picture:
    """Panels that share both axes. At the value ``reference`` a stronger line is drawn."""

    title: str
    subtitle: str
    axis: str
    ticks: tuple[str, ...]
    panels: tuple[Panel, ...]
    reference: float | None
    legend: str = ""
    """The kinds of points."""
    remark: str = ""
    """The end of the legend."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all panels."""
        return tuple(line for panel in self.panels for line in panel.lines)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of points, most frequent first."""
        kinds = [point.kind for line in self.lines for point in line.points if point.kind]
        return tuple(sorted(dict.fromkeys(kinds), key=lambda kind: -kinds.count(kind)))


@dataclass(frozen=True)
class Scale:
    """The values that a panel shows, and how far the lines of the grid are from each other."""

    low: float
    high: float
    step: float

    def y(self, value: float) -> float:
        """Return the distance of a value from the top of a panel, in pixels."""
        return _PANEL * (self.high - value) / (self.high - self.low)

    @property
    def grid(self) -> list[float]:
        """The values of the grid, from below."""
        count = round((self.high - self.low) / self.step)
        return [self.low + self.step * i for i in range(count + 1)]


def scale_of(values: Sequence[float]) -> Scale:
    """Return a scale with at most six steps, of round numbers, that holds all values."""
    low, high = min(values), max(values)
    margin = 0.05 * max(high - low, 0.1 * high)
    for step in _STEPS:
        bottom = math.floor((low - margin) / step)
        top = math.ceil((high + margin) / step)
        if top - bottom <= _MOST_STEPS:
            break
    return Scale(bottom * step, top * step, step)


def spread(places: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Return places at least ``distance`` apart, in the order of ``places`` and close to them.

    All are from ``low`` to ``high`` if there is room.
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[tuple[float, int]] = []  # the first place and the number of each run
    for i in order:
        center, count = min(max(places[i], low), high), 1
        while groups:
            first, members = groups[-1]
            if first + members * distance <= center - (count - 1) * distance / 2:
                break
            groups.pop()
            middle = first + (members - 1) * distance / 2
            center = (middle * members + center * count) / (members + count)
            count += members
        half = (count - 1) * distance / 2
        center = max(min(center, high - half), low + half)
        groups.append((center - half, count))
    found = [first + i * distance for first, count in groups for i in range(count)]
    spaced = [0.0] * len(places)
    for place, i in zip(found, order, strict=True):
        spaced[i] = place
    return spaced


def svg(picture: Picture, theme: Theme) -> str:
    """Return the picture in the colours of a theme."""
    across = 1 if len(picture.panels) == 1 else 2
    down = math.ceil(len(picture.panels) / across)
    values = [point.value for line in picture.lines for point in line.points]
    scale = scale_of(values + ([] if picture.reference is None else [picture.reference]))
    labels = max(_LABELS, max(len(line.label) for line in picture.lines) * _LETTER + 18)
    width = (_WIDTH - _LEFT - across * labels - (across - 1) * _GAP) / across
    pitch = _PANEL + _BELOW + _upright(picture.ticks, width) + _LINE
    height = _n(_TOP + down * pitch - _LINE + 14)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-family="{_FONT}" font-size="12" role="img">',
        f"<title>{escape(picture.title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{theme.paper}"/>',
        _text(14, 28, picture.title, theme.text, size=17, weight=600),
        _text(14, 48, picture.subtitle, theme.quiet),
        *_legend(picture, theme),
    ]
    for i, panel in enumerate(picture.panels):
        x = _LEFT + i % across * (width + labels + _GAP)
        y = _TOP + i // across * pitch
        parts.append(f'<g transform="translate({_n(x)} {_n(y)})">')
        parts += _panel(panel, picture, scale, theme, width, first=i % across == 0)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(
    panel: Panel, picture: Picture, scale: Scale, theme: Theme, width: float, *, first: bool
) -> Iterator[str]:
    digits = max(0, math.ceil(-math.log10(scale.step)))
    for value in scale.grid:
        y = scale.y(value)
        yield _rule(0, y, width, y, theme.grid)
        if first:
            unit = "" if picture.reference is None else "x"
            yield _text(-8, y + 4, f"{value:.{digits}f}{unit}", theme.quiet, anchor="end")
    if picture.reference is not None:
        y = scale.y(picture.reference)
        yield _rule(0, y, width, y, theme.reference, width=1.5)
    yield _text(0, -10, panel.title, theme.text, size=13, weight=600)
    steps = max(1, len(picture.ticks) - 1)
    places = [12 + (width - 24) * i / steps for i in range(len(picture.ticks))]
    upright = _upright(picture.ticks, width)
    for place, tick in zip(places, picture.ticks, strict=True):
        if upright:
            turn = f"translate({_n(place + 4)} {_PANEL + 10}) rotate(-90)"
            word = _text(0, 0, tick, theme.quiet, anchor="end")
            yield f'<g transform="{turn}">{word}</g>'
        else:
            yield _text(place, _PANEL + 18, tick, theme.quiet, anchor="middle")
    yield _text(width / 2, _PANEL + 36 + upright, picture.axis, theme.quiet, anchor="middle")
    colors = colors_of(theme.ramp, len(panel.lines))
    kinds = picture.kinds
    for line, color in zip(panel.lines, colors, strict=True):
        path = " ".join(f"{_n(places[p.tick])},{_n(scale.y(p.value))}" for p in line.points)
        yield (
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.25" '
            'stroke-linejoin="round" stroke-linecap="round"/>'
        )
        for point in line.points:
            number = kinds.index(point.kind) if point.kind else 0
            tip = f"{line.label}, {picture.ticks[point.tick]}: {point.tip}"
            x, y = places[point.tick], scale.y(point.value)
            yield _marker(x, y, number, color, theme, tip)
    ends = [scale.y(line.points[-1].value) for line in panel.lines]
    for line, color, y in zip(panel.lines, colors, spread(ends, _LINE, 0, _PANEL - 4), strict=True):
        yield _text(width + 6, y + 4, line.label, color, weight=600)


def _upright(ticks: Sequence[str], width: float) -> float:
    """Return the room that upright ticks need, where they do not fit next to each other."""
    longest = max(map(len, ticks)) * _LETTER
    return float(longest) if longest > (width - 24) / max(1, len(ticks) - 1) else 0.0


def _legend(picture: Picture, theme: Theme) -> Iterator[str]:
    """Say which marker is which kind, in the picture's third line."""
    x = 14.0
    if picture.kinds:
        yield _text(x, 70, picture.legend, theme.quiet)
        x += len(picture.legend) * _LETTER + 8
    for number, kind in enumerate(picture.kinds):
        yield _marker(x + 5, 66, number, theme.quiet, theme, "")
        yield _text(x + 15, 70, kind, theme.quiet)
        x += 15 + len(kind) * _LETTER + 14
    yield _text(x, 70, picture.remark, theme.quiet)


def _marker(x: float, y: float, number: int, color: str, theme: Theme, tip: str) -> str:
    """Return a disc for the first kind, then a ring, a square and a diamond."""
    shapes = (
        f'<circle cx="{_n(x)}" cy="{_n(y)}" r="4" fill="{color}"',
        f'<circle cx="{_n(x)}" cy="{_n(y)}" r="4" fill="{theme.paper}"',
        f'<rect x="{_n(x - 3.5)}" y="{_n(y - 3.5)}" width="7" height="7" fill="{theme.paper}"',
        f'<path d="M{_n(x)} {_n(y - 5)}l5 5-5 5-5-5z" fill="{theme.paper}"',
    )
    shape = f'{shapes[min(number, len(shapes) - 1)]} stroke="{color}" stroke-width="2"'
    return f"{shape}><title>{escape(tip)}</title></{shape[1:].split()[0]}>" if tip else f"{shape}/>"


def colors_of(ramp: Sequence[str], count: int) -> list[str]:
    """Return ``count`` colours at equal steps from the first of ``ramp`` to the last."""
    colors = []
    for i in range(count):
        place = i * (len(ramp) - 1) / max(1, count - 1)
        below = min(int(place), len(ramp) - 2)
        pairs = zip(_channels(ramp[below]), _channels(ramp[below + 1]), strict=True)
        mixed = (round(a + (b - a) * (place - below)) for a, b in pairs)
        colors.append("#" + "".join(f"{channel:02x}" for channel in mixed))
    return colors


def _channels(color: str) -> tuple[int, ...]:
    return tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))


def _rule(x: float, y: float, to_x: float, to_y: float, color: str, *, width: float = 1) -> str:
    ends = f'x1="{_n(x)}" y1="{_n(y)}" x2="{_n(to_x)}" y2="{_n(to_y)}"'
    return f'<line {ends} stroke="{color}" stroke-width="{width:g}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    color: str,
    *,
    size: int | None = None,
    weight: int | None = None,
    anchor: str | None = None,
) -> str:
    more = f' font-size="{size}"' if size else ""
    more += f' font-weight="{weight}"' if weight else ""
    more += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{_n(x)}" y="{_n(y)}" fill="{color}"{more}>{escape(text)}</text>'


def _n(value: float) -> str:
    """Return a coordinate with one digit, without the sign of a zero."""
    return f"{round(value, 1) + 0.0:g}"
