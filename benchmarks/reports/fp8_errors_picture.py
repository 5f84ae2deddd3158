"""Draws the errors of attention in fp8 by number of keys, each way to promote sums a line."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from fa4gen.bench.plot_svg import spread
from fa4gen.svg import document, number, rule, shape, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TITLE = "What long sums of fp8 lose: P . V with values from N(1, 1)"
PROBLEM = re.compile(r"(\d+) keys, values from N\(1, 1\)")
MODEL = "the model"
"""The word for a chip in lines of the model of sums."""
LOW, HIGH = -3.2, 0.0
"""The ends of the axis of errors, as powers of ten."""
WIDTH, LEFT, RIGHT, TOP, PANEL, BELOW = 830, 64, 220, 84, 300, 48
COLOURS = {
    "promote_every never": ("#cf222e", "#ff7b72"),
    "promote_every 64": ("#bc4c00", "#ffa657"),
    "promote_every 16": ("#8250df", "#d2a8ff"),
    "promote_every 4": ("#0969da", "#79c0ff"),
    "promote_every 1": ("#1a7f37", "#7ee787"),
}
OTHERS = ("#59636e", "#9198a1")
"""The colours of other libraries."""
SIDE = 8
"""The side of a square; those of libraries are hollow and larger, so that all of them show."""

Points = dict[int, float]
"""Errors by number of keys."""


def errors_of(lines: Iterable[dict[str, Any]], *, model: bool) -> dict[str, Points]:
    """Return the errors of values with a mean by kernel; those of the model, or those measured."""
    found: dict[str, Points] = {}
    for line in lines:
        row = line.get("details", line)
        match = PROBLEM.fullmatch(row["problem"])
        if match is None or (row.get("chip", line.get("chip")) == MODEL) != model:
            continue
        for name, error in row["errors"].items():
            if name in COLOURS or not name.startswith("promote_every"):
                found.setdefault(name, {})[int(match[1])] = error
    return found


def errors_picture(lines: Sequence[dict[str, Any]]) -> str:
    """Return the picture; what was measured has squares and dashed lines."""
    series = [(name, points, "") for name, points in errors_of(lines, model=True).items()]
    measured = errors_of(lines, model=False)
    series += [(f"{name}, measured", points, "measured") for name, points in measured.items()]
    sides = {name: SIDE for name, _, _ in series}
    libraries = [name for name in sides if _class(name) == "other"]
    sides |= {name: SIDE + 5 * place for place, name in enumerate(libraries, 1)}
    keys = sorted({n for _, points, _ in series for n in points})
    parts = [text(LEFT - 40, 34, TITLE, "head")]
    parts.append(text(LEFT - 40, 56, "relative Frobenius error, by number of keys", "quiet"))
    parts += _grid(keys)
    ends = [_y(points[max(points)]) for _, points, _ in series]
    places = spread(ends, 15, TOP + 6, TOP + PANEL - 4)
    for (name, points, how), place in zip(series, places, strict=True):
        parts += _line(name, points, how, keys, sides[name])
        parts.append(text(WIDTH - RIGHT + 12, place + 4, name, _class(name)))
    colours = {_class(name): pair for name, pair in COLOURS.items()} | {"other": OTHERS}
    style = "polyline{stroke-width:2} .measured{stroke-dasharray:5 4} " + " ".join(
        f"polyline.{name}{{fill:none;stroke:{pair[0]}}}" for name, pair in colours.items()
    )
    style += f" rect.other{{fill:none;stroke:{OTHERS[0]};stroke-width:1.5}}"
    height = TOP + PANEL + BELOW
    return document(WIDTH, height, TITLE, parts, style=style, colours=colours)


def _class(name: str) -> str:
    name = name.removesuffix(", measured")
    return f"every-{name.split()[-1]}" if name in COLOURS else "other"


def _x(keys: int, ticks: Sequence[int]) -> float:
    span = math.log2(ticks[-1] / ticks[0]) or 1.0
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log2(keys / ticks[0]) / span


def _y(error: float) -> float:
    place = max(LOW, math.log10(max(error, 10.0**LOW)))
    return TOP + PANEL * (HIGH - place) / (HIGH - LOW)


def _grid(keys: Sequence[int]) -> list[str]:
    right, bottom = WIDTH - RIGHT, TOP + PANEL
    parts = []
    for error in (0.001, 0.01, 0.1, 1.0):
        parts.append(rule(LEFT, _y(error), right, _y(error)))
        parts.append(text(LEFT - 8, _y(error) + 4, f"{error:g}", "quiet", anchor="end"))
    for one in keys:
        word = f"{one // 1024}k" if one % 1024 == 0 else str(one)
        parts.append(text(_x(one, keys), bottom + 22, word, "quiet", anchor="middle"))
    return parts


def _line(name: str, points: Points, how: str, keys: Sequence[int], side: int) -> list[str]:
    places = [(_x(n, keys), _y(error), n, error) for n, error in sorted(points.items())]
    path = " ".join(f"{number(x)},{number(y)}" for x, y, _, _ in places)
    parts = [f'<polyline class="{_class(name)} {how}" points="{path}"/>']
    for x, y, n, error in places:
        tip = f"{name}, {n} keys: {error:.4g}"
        if how:
            at = f'x="{number(x - side / 2)}" y="{number(y - side / 2)}"'
            square = f'<rect {at} width="{side}" height="{side}"'
            parts.append(shape(f'{square} class="{_class(name)}"', tip))
        else:
            circle = f'<circle cx="{number(x)}" cy="{number(y)}" r="3.5"'
            parts.append(shape(f'{circle} class="{_class(name)}"', tip))
    return parts
