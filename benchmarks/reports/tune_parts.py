"""Tables of what `fa4gen tune` found, for docs/measurements; ``docs/update.py`` puts them there."""

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

RESULTS = Path("benchmarks/results")
"""From the root, as what follows."""
PRODUCTS = (
    ("bf16", RESULTS / "tuned_products_h200.jsonl"),
    ("bf16 with a residual", RESULTS / "tuned_products_residual_h200.jsonl"),
    ("fp8", RESULTS / "tuned_products_fp8_h200.jsonl"),
)
ATTENTION = RESULTS / "tuned_attention_h200.jsonl"
RANDOM_ATTENTION = RESULTS / "tuned_random_attention_h200.jsonl"
RANDOM_ATTENTION_TILE_HEADS = RESULTS / "tuned_random_attention_tile_heads_h200.jsonl"
H100 = RESULTS / "problem_sets_h100.jsonl"
H100_DEPTH512 = RESULTS / "attention_depth512_h100.jsonl"
FEW = 64
WORST = 6
"""Drawn problems of a table."""
SETS = {
    "layers": "products of six layers, m of 128 to 4096",
    "residual": "the same with a residual, to `addmm`",
    "few": "the same layers, m of 1 to 64",
    "drawn": "5 named products and 20 random ones",
    "padded": "the random products with k in whole lines of L2",
    "fp8 large": "fp8, large",
    "fp8 few": "fp8, m of 64",
    **{depth: f"attention, depth {depth}" for depth in ("64", "96", "128", "192", "256")},
    "drawn attention": "random attention",
}
"""Sets of the H100, and their words in the table."""
Record = dict[str, Any]


def product_summary(root: Path) -> str:
    """Return the worst ratio and the geometric mean of few and of more rows."""
    rows = []
    for dtype, file in PRODUCTS:
        records = rows_of(root / file)
        few = [record for record in records if record["extents"]["m"] <= FEW]
        more = [record for record in records if record not in few]
        for words, members in ((f"m above {FEW}", more), (f"m up to {FEW}", few)):
            rows.append(_summary(f"{dtype}, {words}", members, _product, "**{:.3f}**"))
    return table(("products", "problems", "worst", "mean"), rows)


def h100_table(root: Path) -> str:
    """Return the worst ratio and the mean of each set of problems."""
    by_set: dict[str, list[Record]] = defaultdict(list)
    for data in rows_of(root / H100):
        by_set[data["set"]].append(data["record"])
    rows = [_summary(words, by_set[name], _where) for name, words in SETS.items()]
    for config in document(root / H100_DEPTH512)["configs"]:
        ratios = {size["rows"]: size["ratios"]["ffpa"] for size in config["sizes"]}
        at = min(ratios, key=lambda size: ratios[size])
        low = f"{ratios[at]:.3f} at {at} rows"
        words = f"`{config['name']}` to FFPA's kernel"
        rows.append((words, str(len(ratios)), low, f"{_mean(ratios.values()):.3f}"))
    return table(("set", "problems", "worst", "mean"), rows)


def attention_table(root: Path) -> str:
    """Return a row for each config, the one with the worst ratio first: ratios by rows."""
    by_config: dict[str, dict[int, Record]] = defaultdict(dict)
    for record in rows_of(root / ATTENTION):
        by_config[record["base"]][record["extents"]["rows"]] = record
    sizes = sorted({rows for records in by_config.values() for rows in records})
    lines = []
    for records in sorted(by_config.values(), key=lambda its: min(map(_ratio, its.values()))):
        cells = [_cell(records[rows]) for rows in sizes]
        mean = f"{_mean(map(_ratio, records.values())):.3f}"
        lines.append((_depth_and_mask(next(iter(records.values()))), *cells, mean))
    words = [f"{rows // 1024}k" if rows >= 1024 else str(rows) for rows in sizes]
    return table(("depth, mask", *words, "mean"), lines)


def random_attention_table(root: Path, file: Path = RANDOM_ATTENTION) -> str:
    """Return the drawn problems that are furthest behind, and the mean of all."""
    records = sorted(rows_of(root / file), key=_ratio)
    rows = [
        (
            _depth_and_mask(record),
            record["problem"],
            f"{_best_peer(record):.1f}",
            f"{_us(record):.1f}",
            f"{_ratio(record):.3f}",
        )
        for record in records[:WORST]
    ]
    mean = _mean(map(_ratio, records))
    rows.append((f"all {len(records)}", "geometric mean", "", "", f"{mean:.3f}"))
    return table(("depth, mask", "problem", "fastest peer, us", "ours", "ratio"), rows)


def _summary(
    words: str, records: list[Record], where: Callable[[Record], str], form: str = "{:.3f}"
) -> tuple[str, ...]:
    worst = min(records, key=_ratio)
    low = f"{form.format(_ratio(worst))} at {where(worst)}"
    return words, str(len(records)), low, f"{_mean(map(_ratio, records)):.3f}"


def _product(record: Record) -> str:
    return " x ".join(str(record["extents"][name]) for name in "mnk")


def _where(record: Record) -> str:
    is_attention = record["base"].startswith("d")
    return f"{record['problem']}, {_depth_and_mask(record)}" if is_attention else record["problem"]


def _depth_and_mask(record: Record) -> str:
    return " ".join(record["base"].removeprefix("d").split("_")[:2])


def _cell(record: Record) -> str:
    """Return a ratio, with a mark where another kernel than the config itself was chosen."""
    ratio = f"{_ratio(record):.3f}"
    return ratio if record["winner"] == record["base"] else f"{ratio} *"


def _us(record: Record) -> float:
    winner = record["winner"]
    return float(next(one["us"] for one in record["kernels"] if one["name"] == winner))


def _best_peer(record: Record) -> float:
    """Return the fastest peer's time; `addmm` in place overwrites C, and is none."""
    its = record["peers_us"]
    return float(its["cublas"] if "cublas" in its else min(its.values()))


def _ratio(record: Record) -> float:
    return _best_peer(record) / _us(record)


def _mean(ratios: Iterable[float]) -> float:
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))
