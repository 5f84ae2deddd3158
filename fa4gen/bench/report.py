"""Results as data for a JSON file and as the cells of tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.bench.family import family_called
from fa4gen.bench.residual import residual_costs
from fa4gen.bench.results import BEST, FLOOR, ConfigResult, Series, SizeResult
from fa4gen.render.render import GENERATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.bench.run import BenchOptions

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Table:
    """A table of text cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    names: int = 1
    """How many columns, the first ones, are no numbers."""


def config_table(result: ConfigResult) -> Table:
    """Return one config's TFLOP/s or GB/s by size, ours and the peers', with the ratios."""
    peers = result.peer_names
    has_best = _has_best(peers)
    family = family_called(result.family)
    columns = (*family.size_columns, "ours", *peers, *(f"ours/{peer}" for peer in peers))
    if has_best:
        columns += ("ours/best", "best peer")
    columns += ("spread",)
    rows = [_size_cells(size, peers) for size in result.sizes]
    if peers and result.sizes:
        means = [_number(result.geometric_mean(peer), 3) for peer in peers]
        if has_best:
            means += [_number(result.geometric_mean(BEST), 3), ""]
        empty = [""] * (len(family.size_columns) + len(peers))  # the first cell has the mean's name
        rows.append(("geometric mean", *empty, *means, ""))
    units = dict.fromkeys(size.unit for size in result.sizes) or ("TFLOP/s",)
    title = f"{result.name}: {family.describe(result.facts)}; {', '.join(units)}"
    return Table(columns, tuple(rows), title, names=0)


def rows_of_groups(result: ConfigResult) -> tuple[str, ...]:
    """Return a line with the rows of each group for each size with uneven groups."""
    return tuple(
        f"{size.size.cells[0]}: rows {', '.join(map(str, counts))}"
        for size in result.sizes
        if (counts := size.size.extents.get("counts"))
    )


def summary_table(results: Iterable[ConfigResult]) -> Table | None:
    """Return the ratio to the best peer by config and size; None without any peer."""
    measured = [r for r in results if any(size.best_peer is not None for size in r.sizes)]
    if not measured:
        return None
    words = tuple(dict.fromkeys(size.size.word for result in measured for size in result.sizes))
    rows = []
    for result in measured:
        by_word = {size.size.word: size.ratio(BEST) for size in result.sizes}
        ratios = [_number(by_word.get(word), 3) for word in words]
        rows.append((result.name, *ratios, _number(result.geometric_mean(BEST), 3)))
    return Table(("ours / best peer", *words, "geometric mean"), tuple(rows))


def host_table(results: Iterable[ConfigResult]) -> Table | None:
    """Return the host time of one launch by config; None where it was not measured."""
    rows = [
        (result.name, *(f"{value:.2f}" for value in asdict(result.host_us).values()))
        for result in results
        if result.host_us is not None
    ]
    if not rows:
        return None
    columns = ("fa4gen.load", "prepared", "vendored", "prepared", "graph", "cuLaunchKernel")
    return Table(("host time of a launch, us", *columns), tuple(rows))


def residual_table(results: Iterable[ConfigResult]) -> Table | None:
    """Return the cost of the residual by config and size; None where that was not timed."""
    costs = residual_costs(results)
    if not costs:
        return None
    words = tuple(dict.fromkeys(word for cost in costs for word in cost.sizes))
    rows = [
        (
            cost.config,
            cost.without,
            *(f"{100 * cost.sizes[word]:+.1f} %" if word in cost.sizes else "-" for word in words),
        )
        for cost in costs
    ]
    return Table(("what the residual costs", "over", *words), tuple(rows), names=2)


def closing_tables(results: Sequence[ConfigResult]) -> list[Table]:
    """Return the tables of all configs together that there are figures for."""
    found = (
        summary_table(results) if len(results) > 1 else None,
        host_table(results),
        residual_table(results),
    )
    return [table for table in found if table is not None]


def results_data(
    results: Sequence[ConfigResult],
    options: BenchOptions,
    *,
    date: str,
    gpu: Mapping[str, Any],
    versions: Mapping[str, str],
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return everything that was measured as JSON data. ``date`` is ISO 8601, with its zone."""
    protocol = options.protocol
    costs = residual_costs(results)
    data = {
        "schema_version": SCHEMA_VERSION,
        "generator": GENERATOR,
        "date": date,
        "gpu": dict(gpu),
        "versions": dict(versions),
        "protocol": {
            **family_called(options.family).protocol,
            "seed": options.seed,
            "rounds": options.rounds,
            "warmup_s": protocol.warmup_s,
            "budget_s": protocol.budget_s,
            "flush_l2": protocol.flush_l2,
            "figure": "CUDA events; median of a round, then median of the rounds; "
            "all kernels of a size take turns in every round",
        },
        "notes": list(notes),
        "configs": [_config_data(result) for result in results],
    }
    if costs:
        data["residual_costs"] = [
            {
                "config": cost.config,
                "without": cost.without,
                "sizes": {word: _rounded(more) for word, more in cost.sizes.items()},
            }
            for cost in costs
        ]
    return data


def _config_data(result: ConfigResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "config": result.config,
        **result.facts,
        "sizes": [_size_data(size) for size in result.sizes],
        "geometric_means": {
            peer: _rounded(mean)
            for peer in (*result.peer_names, BEST)
            if (mean := result.geometric_mean(peer)) is not None
        },
        **({"host_us": asdict(result.host_us)} if result.host_us is not None else {}),
        "problems": [problem.message for problem in result.problems],
    }


def _size_data(size: SizeResult) -> dict[str, Any]:
    data: dict[str, Any] = {
        **size.size.extents,
        "flop": size.flop,
        **({"read_bytes": size.read_bytes} if size.read_bytes else {}),
        "ours": _series_data(size, size.ours),
        "peers": {name: _series_data(size, series) for name, series in size.peers.items()},
        "ratios": {name: _rounded(size.ratio(name)) for name in size.peers},
        "left_out": dict(size.left_out),
        "error": size.error,
        "distances": dict(size.distances),
    }
    if size.best_peer is not None:
        data["best_peer"] = size.best_peer
        data["ratios"][BEST] = _rounded(size.ratio(BEST))
    return data


def _series_data(size: SizeResult, series: Series) -> dict[str, Any]:
    return {
        "tflops": round(size.tflops(series), 1),
        **({"gb_per_s": round(size.gb_per_s(series), 1)} if size.read_bytes else {}),
        "median_ms": series.median_ms,
        "round_medians_ms": list(series.medians_ms),
        "round_spreads": [round(spread, 4) for spread in series.spreads],
        "spread_of_rounds": round(series.round_spread, 4),
    }


def _size_cells(size: SizeResult, peers: tuple[str, ...]) -> tuple[str, ...]:
    speeds = [_number(size.speed(size.peers[p]), 0) if p in size.peers else "-" for p in peers]
    ratios = [_number(size.ratio(peer), 3) for peer in peers]
    if _has_best(peers):
        ratios += [_number(size.ratio(BEST), 3), size.best_peer or "-"]
    return (
        *size.size.cells,
        _number(size.speed(size.ours), 0),
        *speeds,
        *ratios,
        f"{100 * size.ours.round_spread:.1f} %",
    )


def _has_best(peers: tuple[str, ...]) -> bool:
    """Whether more than one peer computes the same."""
    return len(peers) - (FLOOR in peers) > 1


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
