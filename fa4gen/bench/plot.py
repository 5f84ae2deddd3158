"""Results as a picture: one panel for each config, TFLOP/s over the size."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fa4gen.bench.family import family_called
from fa4gen.bench.results import BEST
from fa4gen.errors import ConfigError, MissingCapabilityError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.bench.results import ConfigResult

FORMATS = (".png", ".svg", ".pdf")
COLORS = {"ours": "#76b900", "fa3": "#1f4e99", "cudnn": "#888888", "fa2": "#cfa15a"}
COLORS |= {"cublas": "#888888", "cublas in place": "#cfa15a"}
OTHER_COLOR = "#b04a8c"
PANELS_ACROSS = 3


def check_plot(path: Path) -> None:
    """Refuse what cannot be drawn, before anything is measured.

    Raises ConfigError for an ending that is not known, MissingCapabilityError without matplotlib.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            Problem(f"--plot {path}: the name has to end in {', '.join(FORMATS)}", file=str(path))
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingCapabilityError(
            Problem(
                f"--plot needs matplotlib, which cannot be imported: {error}",
                "Install it with pip install 'fa4gen[plot]', or leave --plot out.",
            )
        ) from error


def draw_plot(results: Sequence[ConfigResult], path: Path, *, title: str) -> None:
    """Draw the configs that were measured into ``path``, overwriting it by a rename."""
    measured = [result for result in results if result.sizes]
    if not measured:
        raise ConfigError(Problem(f"{path} is not drawn: nothing was measured"))
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(PANELS_ACROSS, len(measured))
    down = -(-len(measured) // across)
    figure = Figure(figsize=(4.6 * across, 3.4 * down + 0.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for panel, result in zip(panels, measured, strict=False):
        _draw_panel(panel, result)
    for panel in panels[len(measured) :]:
        panel.set_visible(False)
    figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        figure.savefig(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _draw_panel(panel: Any, result: ConfigResult) -> None:
    names = ("ours", *result.peer_names)
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        places, heights = [], []
        for index, size in enumerate(result.sizes):
            series = size.ours if name == "ours" else size.peers.get(name)
            if series is not None:
                places.append(index + (number - (len(names) - 1) / 2) * width)
                heights.append(size.tflops(series))
        bars = panel.bar(places, heights, width, label=name, color=COLORS.get(name, OTHER_COLOR))
        if name == "ours":
            panel.bar_label(bars, fmt="%.0f", fontsize=6)
    family = family_called(result.family)
    mean = result.geometric_mean(BEST)
    versus = f": {mean:.3f} of the best peer" if mean is not None else ""
    panel.set_title(f"{family.caption(result.facts)}{versus}", fontsize=8)
    panel.set_xticks(range(len(result.sizes)), [size.word for size in result.sizes])
    panel.set_xlabel(family.axis, fontsize=7)
    panel.set_ylabel("TFLOP/s", fontsize=7)
    panel.tick_params(labelsize=7)
    panel.margins(y=0.18)  # room for the legend above the bars
    panel.legend(fontsize=6, loc="upper left", ncols=len(names))
