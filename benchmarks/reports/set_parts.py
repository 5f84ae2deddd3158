"""Parts of the docs about sets of problems on other chips; ``docs/update.py`` puts them there.

A file has a line for each problem: its set, and the record as `fa4gen tune` writes it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import document
from measured import rows as rows_of
from tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

H100 = Path("benchmarks/results/problem_sets_h100.jsonl")
H100_FEW_ROWS = Path("benchmarks/results/products_few_rows_h100.jsonl")
H100_DEPTH512 = Path("benchmarks/results/attention_depth512_h100.jsonl")
SETS = (
    ("layers", "products of six layers, m of 128 to 4096"),
    ("residual", "the same with a residual, to `addmm`"),
    ("few", "the same layers, m of 1 to 64"),
    ("drawn", "5 named products and 20 random ones"),
    ("padded", "the random products with k in whole lines of L2"),
    ("fp8 large", "fp8, large"),
    ("fp8 few", "fp8, m of 64"),
    ("64", "attention, depth 64"),
    ("96", "attention, depth 96"),
    ("128", "attention, depth 128"),
    ("192", "attention, depth 192"),
    ("256", "attention, depth 256"),
    ("drawn attention", "random attention"),
)
"""Sets, and their words in the table."""


def h100_table(root: Path) -> str:
    """Return the worst ratio and the mean of each set; nothing while there is no file."""
    if not (root / H100).is_file():
        return ""
    by_set: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for data in rows_of(root / H100):
        by_set[data["set"]].append(data["record"])
    rows: list[tuple[str, ...]] = []
    for name, words in SETS:
        found = by_set.get(name)
        if not found:
            continue
        worst = min(found, key=ratio)
        low = f"{ratio(worst):.3f} at {_where(worst)}"
        rows.append((words, str(len(found)), low, f"{mean(found):.3f}"))
    rows += _depth512_rows(root)
    return table(("set", "problems", "worst", "mean"), rows)


def few_rows_table(root: Path) -> str:
    """Return the share of the read floor, and the ratio to cuBLAS, of layers by their rows."""
    if not (root / H100_FEW_ROWS).is_file():
        return ""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    for data in rows_of(root / H100_FEW_ROWS):
        m, layer = data["problem"].split("x", 1)
        us = min(data["kernels"].values())
        cells[layer][m] = f"{data['floor'] / us:.3f}, {data['cublas'] / us:.3f}"
    rows = [(layer.replace("x", " x "), *its.values()) for layer, its in cells.items()]
    return table(("n x k", *(f"m = {m}" for m in next(iter(cells.values())))), rows)


def _depth512_rows(root: Path) -> list[tuple[str, ...]]:
    if not (root / H100_DEPTH512).is_file():
        return []
    rows: list[tuple[str, ...]] = []
    data = document(root / H100_DEPTH512)
    for config in data["configs"]:
        ratios = {size["rows"]: size["ratios"]["ffpa"] for size in config["sizes"]}
        at = min(ratios, key=lambda size: ratios[size])
        low = f"{ratios[at]:.3f} at {at} rows"
        word = f"`{config['name']}` to FFPA's kernel"
        average = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        rows.append((word, str(len(ratios)), low, f"{average:.3f}"))
    return rows


def ratio(record: dict[str, Any]) -> float:
    """Return the fastest peer's time over ours; of a residual the peer with an output of its own.

    The other one, ``addmm`` in place, overwrites C.
    """
    peers = record["peers_us"]
    us = next(one["us"] for one in record["kernels"] if one["name"] == record["winner"])
    theirs = peers["cublas"] if "cublas" in peers else min(peers.values())
    return float(theirs) / float(us)


def in_place_ratio(record: dict[str, Any]) -> float:
    """Return the time of ``addmm`` in place over ours."""
    us = next(one["us"] for one in record["kernels"] if one["name"] == record["winner"])
    return float(record["peers_us"]["cublas in place"]) / float(us)


def mean(records: Iterable[dict[str, Any]], of: Callable[[dict[str, Any]], float] = ratio) -> float:
    """Return the geometric mean of the records' ratios."""
    logarithms = [math.log(of(record)) for record in records]
    return math.exp(sum(logarithms) / len(logarithms))


def _where(record: dict[str, Any]) -> str:
    base = record["base"]
    depth = base.removeprefix("d").removesuffix("_bf16").replace("_", " ")
    return f"{record['problem']}, {depth}" if base.startswith("d") else str(record["problem"])
