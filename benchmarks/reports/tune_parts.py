"""Tables of what `fa4gen tune` found, for docs/measurements; ``docs/update.py`` puts them there."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import rows as rows_of
from tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable

RESULTS = Path("benchmarks/results")
PRODUCTS = RESULTS / "tuned_products_h200.jsonl"
FP8 = RESULTS / "tuned_products_fp8_h200.jsonl"
RESIDUAL = RESULTS / "tuned_products_residual_h200.jsonl"
ATTENTION = RESULTS / "tuned_attention_h200.jsonl"
RANDOM_ATTENTION = RESULTS / "tuned_random_attention_h200.jsonl"
RANDOM_ATTENTION_TILE_HEADS = RESULTS / "tuned_random_attention_tile_heads_h200.jsonl"
TILE_HEADS = RESULTS / "tuned_attention_tile_heads_h200.jsonl"
RANDOM_PRODUCTS = RESULTS / "tuned_random_products_h200.jsonl"
RANDOM_PRODUCTS_SWAPPED = RESULTS / "tuned_random_products_swapped_h200.jsonl"
RANDOM_PRODUCTS_OUTPUT_RING = RESULTS / "tuned_random_products_output_ring_h200.jsonl"
RANDOM_PRODUCTS_CLUSTERS = RESULTS / "tuned_random_products_clusters_h200.jsonl"
PRODUCTS_SHARED_OPERANDS = RESULTS / "tuned_products_shared_operands_h200.jsonl"
"""From the root: what tune wrote."""
FEW = 64
WORST, WORST_LATER = 6, 12
"""Drawn problems of the tables."""


def product_summary(root: Path) -> str:
    """Return the worst ratio and the geometric mean of few and of more rows."""
    rows = []
    for dtype, file in (("bf16", PRODUCTS), ("bf16 with a residual", RESIDUAL), ("fp8", FP8)):
        records = _read(root / file)
        few = [record for record in records if record["extents"]["m"] <= FEW]
        more = [record for record in records if record not in few]
        for words, members in ((f"m above {FEW}", more), (f"m up to {FEW}", few)):
            worst = min(members, key=_ratio)
            at = _cross(worst["extents"][name] for name in "mnk")
            mean = f"{_mean(_ratio(record) for record in members):.3f}"
            worst_words = f"**{_ratio(worst):.3f}** at {at}"
            rows.append((f"{dtype}, {words}", str(len(members)), worst_words, mean))
    return table(("products", "problems", "worst", "mean"), rows)


def attention_table(root: Path) -> str:
    """Return a row for each config, the one with the worst ratio first: ratios by rows."""
    by_config: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for record in _read(root / ATTENTION):
        by_config[record["base"]][record["extents"]["rows"]] = record
    sizes = sorted({rows for records in by_config.values() for rows in records})
    lines = []
    for base, records in sorted(
        by_config.items(), key=lambda item: min(map(_ratio, item[1].values()))
    ):
        depth, mask, _ = base.removeprefix("d").split("_")
        cells = [_cell(records.get(rows)) for rows in sizes]
        mean = _mean(map(_ratio, records.values()))
        lines.append((f"{depth} {mask}", *cells, f"{mean:.3f}" if len(records) > 3 else ""))
    words = [f"{rows // 1024}k" if rows >= 1024 else str(rows) for rows in sizes]
    return table(("depth, mask", *words, "mean"), lines)


def random_attention_table(root: Path, file: Path = RANDOM_ATTENTION) -> str:
    """Return the drawn problems that are furthest behind, and the mean of all."""
    records = sorted(_read(root / file), key=_ratio)
    rows = [
        (
            " ".join(record["base"].removeprefix("d").split("_")[:2]),
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


def tile_heads_table(root: Path) -> str:
    """Return problems with several query heads to a key head, the one furthest behind first."""
    rows = [
        (
            " ".join(record["base"].removeprefix("d").split("_")[:2]),
            record["problem"],
            f"{_best_peer(record):.1f}",
            f"{_base_us(record):.1f}",
            f"{_us(record):.1f}",
            record["winner"].removeprefix(record["base"]).strip("_") or "as configured",
            f"{_best_peer(record) / _base_us(record):.3f}",
            f"{_ratio(record):.3f}",
        )
        for record in sorted(_read(root / TILE_HEADS), key=_ratio)
    ]
    heads = ("depth, mask", "problem", "fastest peer, us", "config", "chosen", "which")
    return table((*heads, "ratio of the config", "ratio"), rows)


def random_products_over_time_table(root: Path) -> str:
    """Return the random products with today's candidates, and their ratios in earlier runs."""
    earlier = [
        {record["problem"]: _ratio(record) for record in _read(root / file)}
        for file in (RANDOM_PRODUCTS, RANDOM_PRODUCTS_SWAPPED, RANDOM_PRODUCTS_OUTPUT_RING)
    ]
    rows = [
        (
            _cross(record["extents"][name] for name in "mnk"),
            f"{_best_peer(record):.1f}",
            f"{_us(record):.1f}",
            ", ".join(f"{before[record['problem']]:.2f}" for before in earlier)
            + f", **{_ratio(record):.2f}**",
            _kernel_cell(record),
        )
        for record in sorted(_read(root / RANDOM_PRODUCTS_CLUSTERS), key=_ratio)
        if record["set"] == "drawn"
    ]
    header = ("m x n x k", "`mm`, us", "ours", "ratio of four runs, the last **now**", "kernel")
    return table(header, rows)


def more_random_products_table(root: Path) -> str:
    """Return the products furthest behind of the two later sets."""
    drawn = ("drawn later", "drawn last")
    later = [record for record in _read(root / RANDOM_PRODUCTS_CLUSTERS) if record["set"] in drawn]
    rows = [
        (
            _cross(record["extents"][name] for name in "mnk"),
            f"{_best_peer(record):.1f}",
            f"{_us(record):.1f}",
            f"{_ratio(record):.2f}",
            "second" if record["set"] == "drawn later" else "third",
            _kernel_cell(record),
        )
        for record in sorted(later, key=_ratio)[:WORST_LATER]
    ]
    return table(("m x n x k", "`mm`, us", "ours", "ratio", "set", "kernel"), rows)


def shared_operands_table(root: Path) -> str:
    """Return the products that clusters sharing both operands are faster at than all others."""
    rows = []
    for record in _read(root / PRODUCTS_SHARED_OPERANDS):
        both = [one for one in record["kernels"] if "_both" in one["name"]]
        others = [one for one in record["kernels"] if one not in both]
        with_both, without = (min(some, key=lambda one: one["us"]) for some in (both, others))
        if with_both["us"] < without["us"]:
            cells = (_cross(record["extents"][name] for name in "mnk"), f"{_best_peer(record):.1f}")
            own = (
                f"{without['us']:.1f}",
                f"**{with_both['us']:.1f}**",
                _tile_cell(with_both["name"]),
            )
            rows.append((without["us"] / with_both["us"], (*cells, *own)))
    header = ("m x n x k", "`mm`, us", "the fastest of the others", "sharing both", "kernel")
    return table(header, [row for _, row in sorted(rows, reverse=True)])


def _kernel_cell(record: dict[str, Any]) -> str:
    """Return the chosen kernel, without what all names begin with."""
    return _tile_cell(record["winner"])


def _tile_cell(name: str) -> str:
    return f"`{name.removeprefix('gemm_bf16_sm90').strip('_') or 'as configured'}`"


def _cell(record: dict[str, Any] | None) -> str:
    """Return a ratio, with a mark where another kernel than the config itself was chosen."""
    if record is None:
        return "-"
    ratio = f"{_ratio(record):.3f}"
    return ratio if record["winner"] == record["base"] else f"{ratio} *"


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, none where it is absent."""
    return rows_of(path) if path.is_file() else []


def _kernel(record: dict[str, Any], name: str) -> float:
    return float(next(one["us"] for one in record["kernels"] if one["name"] == name))


def _us(record: dict[str, Any]) -> float:
    return _kernel(record, record["winner"])


def _base_us(record: dict[str, Any]) -> float:
    return _kernel(record, record["base"])


def _best_peer(record: dict[str, Any]) -> float:
    """Return the fastest peer's time; `addmm` in place overwrites C, and is none."""
    its = record["peers_us"]
    return float(its["cublas"] if "cublas" in its else min(its.values()))


def _ratio(record: dict[str, Any]) -> float:
    return _best_peer(record) / _us(record)


def _mean(ratios: Iterable[float]) -> float:
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def _cross(numbers: Iterable[int]) -> str:
    return " x ".join(map(str, numbers))
