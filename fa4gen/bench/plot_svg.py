"""Draws panels of lines as an SVG, for light and dark pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.svg import LETTER, document, number, rule, shape, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WIDTH: Final = 800
_LEFT, _LABELS, _GAP = 50, 84, 14
"""Before the first panel, for the words of the axis; after each, for the names of its lines."""
_TOP, _PANEL, _BELOW = 104, 250, 44
_LINE: Final = 15
_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_MOST_STEPS: Final = 6
_STYLE: Final = (
    ".panel{font-size:13px;font-weight:600} .name{font-weight:600} .reference{stroke:#768390}"
)
_FIRST_HUE, _HUES = 36, 180
"""Lines run from orange over red and violet to blue."""


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


def svg(picture: Picture) -> str:
    """Return the picture."""
    across = 1 if len(picture.panels) == 1 else 2
    down = math.ceil(len(picture.panels) / across)
    values = [point.value for line in picture.lines for point in line.points]
    scale = scale_of(values + ([] if picture.reference is None else [picture.reference]))
    labels = max(_LABELS, max(len(line.label) for line in picture.lines) * LETTER + 18)
    width = (_WIDTH - _LEFT - across * labels - (across - 1) * _GAP) / across
    pitch = _PANEL + _BELOW + _upright(picture.ticks, width) + _LINE
    parts = [
        text(14, 28, picture.title, "text head"),
        text(14, 48, picture.subtitle, "quiet"),
        *_legend(picture),
    ]
    for i, panel in enumerate(picture.panels):
        x = _LEFT + i % across * (width + labels + _GAP)
        y = _TOP + i // across * pitch
        parts.append(f'<g transform="translate({number(x)} {number(y)})">')
        parts += _panel(panel, picture, scale, width, first=i % across == 0)
        parts.append("</g>")
    height = _TOP + down * pitch - _LINE + 14
    return document(_WIDTH, height, picture.title, parts, style=_STYLE)


def _panel(
    panel: Panel, picture: Picture, scale: Scale, width: float, *, first: bool
) -> Iterator[str]:
    digits = max(0, math.ceil(-math.log10(scale.step)))
    for value in scale.grid:
        y = scale.y(value)
        yield rule(0, y, width, y)
        if first:
            unit = "" if picture.reference is None else "x"
            yield text(-8, y + 4, f"{value:.{digits}f}{unit}", "quiet", "end")
    if picture.reference is not None:
        y = scale.y(picture.reference)
        yield rule(0, y, width, y, "reference")
    yield text(0, -10, panel.title, "text panel")
    steps = max(1, len(picture.ticks) - 1)
    places = [12 + (width - 24) * i / steps for i in range(len(picture.ticks))]
    upright = _upright(picture.ticks, width)
    for place, tick in zip(places, picture.ticks, strict=True):
        if upright:
            turn = f"translate({number(place + 4)} {_PANEL + 10}) rotate(-90)"
            yield f'<g transform="{turn}">{text(0, 0, tick, "quiet", "end")}</g>'
        else:
            yield text(place, _PANEL + 18, tick, "quiet", "middle")
    yield text(width / 2, _PANEL + 36 + upright, picture.axis, "quiet", "middle")
    colours = colours_of(len(panel.lines))
    kinds = picture.kinds
    for line, colour in zip(panel.lines, colours, strict=True):
        path = " ".join(f"{number(places[p.tick])},{number(scale.y(p.value))}" for p in line.points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.25"/>'
        for point in line.points:
            kind = kinds.index(point.kind) if point.kind else 0
            tip = f"{line.label}, {picture.ticks[point.tick]}: {point.tip}"
            yield _marker(places[point.tick], scale.y(point.value), kind, colour, tip)
    ends = [scale.y(line.points[-1].value) for line in panel.lines]
    spaced = spread(ends, _LINE, 0, _PANEL - 4)
    for line, colour, y in zip(panel.lines, colours, spaced, strict=True):
        yield text(width + 6, y + 4, line.label, "name", fill=colour)


def _upright(ticks: Sequence[str], width: float) -> float:
    """Return the room that upright ticks need, where they do not fit next to each other."""
    longest = max(map(len, ticks)) * LETTER
    return float(longest) if longest > (width - 24) / max(1, len(ticks) - 1) else 0.0


def _legend(picture: Picture) -> Iterator[str]:
    """Say which marker is which kind, in the picture's third line."""
    x = 14.0
    if picture.kinds:
        yield text(x, 70, picture.legend, "quiet")
        x += len(picture.legend) * LETTER + 8
    for kind, words in enumerate(picture.kinds):
        yield _marker(x + 5, 66, kind, "#768390", "")
        yield text(x + 15, 70, words, "quiet")
        x += 15 + len(words) * LETTER + 14
    yield text(x, 70, picture.remark, "quiet")


def _marker(x: float, y: float, kind: int, colour: str, tip: str) -> str:
    """Return a disc for the first kind, then a ring, a square and a diamond."""
    shapes = (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="4" fill="{colour}"',
        f'<circle cx="{number(x)}" cy="{number(y)}" r="4" class="paper"',
        f'<rect x="{number(x - 3.5)}" y="{number(y - 3.5)}" width="7" height="7" class="paper"',
        f'<path d="M{number(x)} {number(y - 5)}l5 5-5 5-5-5z" class="paper"',
    )
    return shape(f'{shapes[min(kind, len(shapes) - 1)]} stroke="{colour}" stroke-width="2"', tip)


def colours_of(count: int) -> list[str]:
    """Return ``count`` colours at equal steps, legible on light and on dark paper."""
    hues = (_FIRST_HUE - _HUES * i / max(1, count - 1) for i in range(count))
    return [f"hsl({hue % 360:.0f} 70% 50%)" for hue in hues]
