"""Results as a picture: the ratio to the fastest peer over the size, a line for each config.

It is drawn from the file of `--json`, so that kept results can be drawn again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fa4gen.bench.family import family_measured
from fa4gen.bench.plot_svg import Line, Panel, Picture, Point, svg
from fa4gen.bench.results import BEST, NO_COMPETITORS
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.bench.family import Family

PEER_TITLES = {
    "fa3": "FlashAttention-3",
    "fa2": "FlashAttention-2",
    "cudnn": "cuDNN",
    "efficient": "memory-efficient attention",
    "ffpa": "FFPA",
    "cublas": "cuBLAS",
    "cublas in place": "cuBLAS in place",
}
"""Peers as a reader knows them; others are called by their own names."""


def check_plot(path: Path) -> None:
    """Raise ConfigError for a name that does not end in .svg, before anything is measured."""
    if path.suffix.lower() != ".svg":
        raise ConfigError(
            Problem(f"--plot {path}: the name has to end in .svg", "Rename it.", file=str(path))
        )


def draw_plot(document: Mapping[str, Any], path: Path) -> None:
    """Draw results into ``path``.

    ``document`` is the contents of the file of `--json`. Raises ConfigError where it holds no
    measurement.
    """
    from fa4gen.render.write import write_text

    write_text(path, picture_of(document, path))


def picture_of(document: Mapping[str, Any], path: Path) -> str:
    """Return the text of the picture of ``document`` that belongs in ``path``.

    Raises ConfigError where nothing was measured.
    """
    configs = [config for config in document["configs"] if config["sizes"]]
    if not configs:
        raise ConfigError(Problem(f"{path} is not drawn: nothing was measured"))
    family = family_measured(configs[0])
    compared = any(BEST in size["ratios"] for config in configs for size in config["sizes"])
    words = [family.size_word(size) for config in configs for size in config["sizes"]]
    ticks = tuple(dict.fromkeys(words))
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for config in configs:
        panels.setdefault(family.panel(config), []).append(config)
    machine = document["gpu"].get("name", "GPU")
    where = ", ".join(filter(None, (machine, document["date"][:10])))
    subject = f"{family.title[0].upper()}{family.title[1:]}"
    points = [size for config in configs for size in config["sizes"]]
    unit = "GB/s" if any("gb_per_s" in size["ours"] for size in points) else "TFLOP/s"
    kinds = {_best_peer(size) for size in points if BEST in size["ratios"]}
    slower = dict.fromkeys(name for size in points for name in size["peers"])
    others = [peer_title(name) for name in slower if name not in {*kinds, *NO_COMPETITORS}]
    picture = Picture(
        title=f"{subject}: {'speed relative to the fastest peer' if compared else unit}",
        subtitle=f"{where}. {family.conditions(document['protocol'])}",
        axis=family.axis,
        ticks=ticks,
        panels=tuple(
            Panel(title, tuple(_lines(members, family, ticks, compared)))
            for title, members in panels.items()
        ),
        reference=1.0 if compared else None,
        legend="Fastest peer:",
        remark=f"(slower everywhere: {', '.join(others)})" if others else "",
    )
    return svg(picture)


def _lines(
    configs: Sequence[Mapping[str, Any]], family: Family, ticks: tuple[str, ...], compared: bool
) -> list[Line]:
    """Return a line for each config, called by its name where the family's word is not unique."""
    labels = Counter(family.line(config) for config in configs)
    lines = []
    for config in configs:
        label = family.line(config)
        points = [
            _point(size, ticks.index(family.size_word(size)), compared)
            for size in config["sizes"]
            if not compared or BEST in size["ratios"]
        ]
        if points:
            lines.append(Line(label if labels[label] == 1 else config["name"], tuple(points)))
    return lines


def _point(size: Mapping[str, Any], tick: int, compared: bool) -> Point:
    key, unit = ("gb_per_s", "GB/s") if "gb_per_s" in size["ours"] else ("tflops", "TFLOP/s")
    ours = size["ours"][key]
    if not compared:
        return Point(tick, ours, None, f"{ours:.0f} {unit}")
    peer = _best_peer(size)
    ratio, speed = size["ratios"][BEST], size["peers"][peer][key]
    title = peer_title(peer)
    return Point(tick, ratio, title, f"{ratio:.2f} of {title}: {ours:.0f} to {speed:.0f} {unit}")


def _best_peer(size: Mapping[str, Any]) -> str:
    return str(size["best_peer"])


def peer_title(peer: str) -> str:
    """Return a peer's name for readers; ``cublas + relu`` is cuBLAS with its second kernel."""
    name, plus, activation = peer.partition(" + ")
    return PEER_TITLES.get(name, name) + plus + activation
