"""Parts of SVG pictures that stand on their own: no scripts, no fonts, for light and dark pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LETTER: Final = 7.2
"""About the width of a letter."""
LIGHT: Final = {"paper": "#fff", "quiet": "#59636e", "text": "#1f2328", "rule": "#d0d7de"}
DARK: Final = {"paper": "#0d1117", "quiet": "#9198a1", "text": "#f0f6fc", "rule": "#30363d"}


def document(
    width: float,
    height: float,
    title: str,
    parts: Iterable[str],
    *,
    style: str = "",
    colours: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """Return the picture of ``parts`` on paper.

    Classes of shapes are ``paper``, ``quiet``, ``text``, and those of ``colours``, with a light and
    a dark one each; of lines ``rule``; of text ``quiet``, ``head`` and those that ``style`` has.
    """
    light = LIGHT | {name: pair[0] for name, pair in (colours or {}).items()}
    dark = DARK | {name: pair[1] for name, pair in (colours or {}).items()}
    size = f'viewBox="0 0 {number(width)} {number(height)}"'
    size += f' width="{number(width)}" height="{number(height)}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" '
            f"aria-label={quoteattr(title)}>",
            f"<title>{escape(title)}</title>",
            "<style>text{font:12px system-ui,sans-serif} .head{font-size:17px;font-weight:600} "
            f"{style} {_fills(light)} @media (prefers-color-scheme:dark){{{_fills(dark)}}}</style>",
            f'<rect class="paper" width="{number(width)}" height="{number(height)}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def text(
    x: float, y: float, words: str, style: str = "text", anchor: str = "", fill: str = ""
) -> str:
    """Return words that begin at a place, or end or have their middle there."""
    more = f' text-anchor="{anchor}"' if anchor else ""
    more += f' fill="{fill}"' if fill else ""
    place = f'x="{number(x)}" y="{number(y)}"'
    return f'<text {place} class="{style}"{more}>{escape(words)}</text>'


def rule(x: float, y: float, to_x: float, to_y: float, style: str = "rule") -> str:
    """Return a line."""
    ends = f'x1="{number(x)}" y1="{number(y)}" x2="{number(to_x)}" y2="{number(to_y)}"'
    return f'<line {ends} class="{style}"/>'


def shape(element: str, tip: str) -> str:
    """Return an element with what a reader sees who points at it; ``element`` ends before its >."""
    if not tip:
        return f"{element}/>"
    return f"{element}><title>{escape(tip)}</title></{element[1:].split()[0]}>"


def number(value: float) -> str:
    """Return a coordinate with one digit, without the sign of a zero."""
    return f"{round(value, 1) + 0.0:g}"


def _fills(colours: Mapping[str, str]) -> str:
    fills = (f".{name}{{fill:{colour}}}" for name, colour in colours.items() if name != "rule")
    return f"{' '.join(fills)} .rule{{stroke:{colours['rule']}}}"
