"""Tables of products of many shapes and cuBLAS, for docs/measurements/product-shapes.md.

``docs/update.py`` puts them there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from measured import document
from tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable

SHAPES = Path("benchmarks/results/product_shapes_h200.jsonl")
"""From the root."""
LAYERS = {(6144, 4096), (28672, 4096), (4096, 14336), (4608, 3584), (37888, 3584), (3584, 18944)}
"""n and k of layers of Llama 3 8B and Qwen 2.5 7B."""
FLOORS = ("read floor", "read floor, 264 CTAs")
NAMED = 9
"""Shapes at the front of the file that are neither layers nor random."""
WORST = 14
"""Shapes of the table of single ones."""


class Extents(NamedTuple):
    """A product of (m, k) and (k, n)."""

    m: int
    n: int
    k: int

    @property
    def word(self) -> str:
        """As tables have it."""
        return f"{self.m} x {self.n} x {self.k}"


@dataclass
class Case:
    """What was measured of a shape, in microseconds."""

    extents: Extents
    residual: bool
    kernels: dict[str, float]
    peers: dict[str, float]

    @property
    def best(self) -> tuple[float, str]:
        """The time and the name of the fastest kernel."""
        return min((us, name) for name, us in self.kernels.items())

    def ratio(self, *peers: str) -> float:
        """How often as fast the best kernel is as the fastest of ``peers``."""
        return min(self.peers[name] for name in peers if name in self.peers) / self.best[0]


def set_table(root: Path) -> str:
    """Return the table of sets of shapes: the worst shape and the mean."""
    cases = _cases(root)
    if not cases:
        return ""
    shapes = list(dict.fromkeys(case.extents for case in cases))
    few = [shape for shape in shapes if shape.m <= 64]
    layers = [shape for shape in shapes if shape.m > 64 and shape[1:] in LAYERS]
    named = [shape for shape in shapes[:NAMED] if shape not in few]
    drawn = [shape for shape in shapes if shape not in {*few, *layers, *named}]
    odd = sum(shape.k // 8 % 2 for shape in drawn)
    rows = []
    for words, members in (
        (f"{len(drawn)} random shapes, {odd} of them with odd rows", drawn),
        ("4104, 4096 and 2048 cubed, 1000 x 3000 x 5000 and others below", named),
        ("six layers, m of 128 to 4096", layers),
        ("seven layers, m of 1 to 64, and 48 x 5120 x 5120", few),
    ):
        chosen = [case for case in cases if case.extents in members]
        plain = [case for case in chosen if not case.residual]
        added = [case for case in chosen if case.residual]
        cells = [
            _worst_and_mean((case.ratio("torch.mm"), case.extents) for case in plain),
            _worst_and_mean((case.ratio("torch.addmm"), case.extents) for case in added),
            _worst_and_mean((case.ratio("torch.addmm in place"), case.extents) for case in added),
        ]
        floors = [case for case in plain if FLOORS[0] in case.peers and case.extents in few]
        ratios = ((case.ratio(*FLOORS), case.extents) for case in floors)
        rows.append((words, *cells, _worst_and_mean(ratios) if floors else "-"))
    header = ("shapes", "to `torch.mm`", "residual, to `addmm`", "to `addmm` in place")
    return table((*header, "of the read floor"), rows)


def worst_table(root: Path) -> str:
    """Return the table of the shapes that are furthest behind, and of the named ones."""
    cases = _cases(root)
    shapes = list(dict.fromkeys(case.extents for case in cases))
    by = {(case.extents, case.residual): case for case in cases}
    order = sorted(shapes, key=lambda shape: by[shape, False].ratio("torch.mm"))
    chosen = {*order[:WORST], *shapes[:NAMED]}
    rows = []
    for shape in order:
        if shape not in chosen:
            continue
        plain, added = by[shape, False], by[shape, True]
        rows.append(
            (
                shape.word,
                f"{plain.peers['torch.mm']:.1f}",
                f"{plain.best[0]:.1f} (`{plain.best[1]}`)",
                f"{plain.ratio('torch.mm'):.2f}",
                f"{added.peers['torch.addmm']:.1f}, {added.peers['torch.addmm in place']:.1f}",
                f"{added.best[0]:.1f} (`{added.best[1]}`)",
                f"{added.ratio('torch.addmm'):.2f}, {added.ratio('torch.addmm in place'):.2f}",
            )
        )
    header = ("m x n x k", "`mm`, us", "ours", "ratio", "`addmm`, in place, us", "ours", "ratios")
    return table(header, rows) if rows else ""


def _worst_and_mean(ratios: Iterable[tuple[float, Extents]]) -> str:
    known = sorted(ratios)
    mean = math.exp(sum(math.log(ratio) for ratio, _ in known) / len(known))
    return f"**{known[0][0]:.2f}** at {known[0][1].word}; mean {mean:.2f}"


def _cases(root: Path) -> list[Case]:
    if not (root / SHAPES).is_file():
        return []
    data = document(root / SHAPES)
    cases: dict[tuple[Extents, bool], Case] = {}
    for row in data["rows"]:
        extents = Extents(row["m"], row["n"], row["k"])
        residual = row["residual"] != "none"
        case = cases.setdefault((extents, residual), Case(extents, residual, {}, {}))
        times: dict[str, Any] = case.kernels if "kernel" in row else case.peers
        times[row.get("kernel", row.get("peer"))] = row["us"]
    return list(cases.values())
