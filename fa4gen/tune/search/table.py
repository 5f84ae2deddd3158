"""The table of tuning's choices, with the new tiles that it names.

It is a file of its own, NAME.tuning.yaml, or one of several in the file of a chip.
"""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fa4gen.config.entries import TABLE_END, YAML
from fa4gen.config.find import find_configs
from fa4gen.config.load import config_from_data, load_config, load_mapping
from fa4gen.config.paths import shown_path
from fa4gen.config.set_file import Region, read_set
from fa4gen.config.text import read_text
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError, Problem
from fa4gen.tune.candidates import Candidate, given_keys, keys_sha256
from fa4gen.tune.family import family_called
from fa4gen.tune.follow import between
from fa4gen.tune.model.chips import chip_for
from fa4gen.tune.search.record import Timed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.tune.family import Family
    from fa4gen.tune.search.record import TuneRecord

FARTHEST = math.sqrt(2)
"""The factor by which a region reaches past the problems at both ends of its axis."""
FEW = 64
"""The largest extent at the start of a region that lets the region reach down to 1."""


@dataclass(frozen=True)
class TableFiles:
    """The files that tuning writes."""

    table: Path
    """The table as other commands name it."""
    file: Path
    text: str
    tiles: Mapping[str, Mapping[str, Any]]
    """The keys of the table's tiles, by name."""


def make_table(
    base: LoadedConfig,
    records: Sequence[TuneRecord],
    out: Path,
    *,
    now: datetime | None = None,
) -> TableFiles:
    """Return the table of ``records``, with the new tiles that it names.

    ``out`` is its folder, or the file of a chip (FILE.yaml), whose other tables stay. The config
    itself is one of its kernels: far from the problems it may be the fastest of them. Raises
    ConfigError without any choice, and for records of different chips or of both kinds: a table is
    of one chip.
    """
    chosen = [record for record in records if record.chosen is not None]
    if not chosen:
        raise ConfigError(Problem("no kernel was chosen for any problem: there is no table"))
    kinds = sorted({f"{record.chip}, by {record.decided_by}" for record in chosen})
    if len(kinds) > 1:
        raise ConfigError(
            Problem(
                f"the results are of different kinds: {'; '.join(kinds)}",
                "A table is of one chip: start over with --fresh, or choose another --results.",
            )
        )
    family = family_called(base.config.kernel)
    winners: dict[str, Timed] = {}
    for record in chosen:
        assert record.chosen is not None
        winners.setdefault(record.winner, record.chosen)
    folder = out.parent if out.suffix in YAML else out
    tiles: dict[str, Mapping[str, Any]] = {}
    kernels = []
    own = keys_sha256(given_keys(base))
    base_timed = Timed(base.config.name, "config", 0.0, given_keys(base), own)
    for name, timed in sorted({base.config.name: base_timed, **winners}.items()):
        if timed.source == "tile":
            tiles[name] = timed.config
        place = _place(base, name, timed, folder)
        kernels.append({"config": place, "config_sha256": timed.config_sha256})
    found = regions(family, chosen)
    candidates = {
        name: _candidate(name, timed.config)
        for name, timed in {base.config.name: base_timed, **winners}.items()
    }
    chip = chip_for(base.config.arch, chosen[0].chip)
    data: dict[str, Any] = {
        "base": base.config.name,
        "decided_by": chosen[0].decided_by,
        "chip": chosen[0].chip,
        "date": (now or datetime.now(UTC)).date().isoformat(),
        "versions": dict(chosen[0].versions),
        "kernels": kernels,
        "regions": [_region_data(region) for region in found],
    }
    if parts := between(family, found, candidates, chip):
        data["between"] = [_region_data(part) for part in parts]
    name = f"{base.config.name}{TABLE_END}"
    if out.suffix in YAML:
        return TableFiles(out / name, out, _joined(out, data, tiles), tiles)
    return TableFiles(out / name, out / name, _text(data, tiles, _use(base, family)), tiles)


def _candidate(name: str, config: Mapping[str, Any]) -> Candidate:
    loaded = load_mapping(dict(config), name)
    return Candidate(loaded, build_plan(loaded.config), "config", {})


def regions(family: Family, records: Iterable[TuneRecord]) -> list[Region]:
    """Return the problems that each record's kernel is meant for, in their order.

    Problems that differ along the family's axis alone divide it between them, at geometric means;
    the other extents are those of the problem. A region ends where its kernel no longer suits.
    """
    groups: dict[tuple[tuple[str, int], ...], list[TuneRecord]] = defaultdict(list)
    for record in records:
        rest = tuple((k, v) for k, v in record.extents.items() if k not in family.axes)
        groups[rest].append(record)
    found = []
    for rest, members in groups.items():
        members.sort(key=lambda record: record.extents[family.axes[0]])
        values = [record.extents[family.axes[0]] for record in members]
        for number, record in enumerate(members):
            low, high = _reach(values, number)
            ends = low, _suited(family, record, high)
            extents = {axis: record.extents[axis] for axis in family.axes}
            axes = {axis: ends for axis, value in extents.items() if value == values[number]}
            others = {**{axis: extents[axis] for axis in extents if axis not in axes}, **dict(rest)}
            timed = record.chosen
            assert timed is not None
            found.append(
                Region(
                    where={**axes, **{axis: (value, value) for axis, value in others.items()}},
                    kernel=record.winner,
                    problem=record.problem,
                    us=timed.us,
                    predicted_us=timed.predicted_us,
                    peers_us=dict(record.peers_us),
                )
            )
    return found


def _region_data(region: Region) -> dict[str, Any]:
    where = {n: [low, high] if low < high else low for n, (low, high) in region.where.items()}
    times = {"us": region.us, "predicted_us": region.predicted_us}
    return {
        "where": where,
        "kernel": region.kernel,
        **({"problem": region.problem} if region.problem else {}),
        **{key: us for key, us in times.items() if us is not None},
        **({"peers_us": dict(region.peers_us)} if region.peers_us else {}),
    }


def write_table(files: TableFiles, *, force: bool) -> None:
    """Write the table; ConfigError for a tile that its file has with other keys."""
    from fa4gen.render.write import write_text

    there = {} if force else _contents(files.file).get("tiles", {})
    edited = [name for name in there if name in files.tiles and _differ(name, there, files.tiles)]
    if edited:
        raise ConfigError(
            Problem(
                f"the tile {edited[0]} is not what tuning would write",
                "Rename it, or overwrite it with --force.",
                shown_path(files.file),
            )
        )
    write_text(files.file, files.text)


def _differ(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return {**one[name], "name": name} != {**other[name], "name": name}


@dataclass(frozen=True)
class TableState:
    """The state of a table: whether it still holds."""

    path: Path
    base: str
    """The config that was tuned."""
    problems: tuple[str, ...]
    """The problems that it was tuned for."""
    verdict: Literal["current", "stale"]
    reason: str = ""


def check_table(path: Path) -> TableState:
    """Compare the configs that a table names with those that it was made of.

    Raises ConfigError for a table that cannot be read or names a config that is not there.
    """
    table = read_set(path)
    problems = tuple(region.problem for region in table.regions if region.problem)
    changed = []
    for entry, config in zip(table.entries, table.configs, strict=True):
        if not entry.config_sha256:
            continue
        if keys_sha256(given_keys(load_config(config))) != entry.config_sha256:
            changed.append(config.stem)
    if changed:
        return TableState(
            path, table.base, problems, "stale", f"changed since tuning: {', '.join(changed)}"
        )
    return TableState(path, table.base, problems, "current")


def _reach(values: Sequence[int], number: int) -> tuple[int, int]:
    value = values[number]
    if number:
        low = math.floor(math.sqrt(values[number - 1] * value)) + 1
    else:
        low = 1 if value <= FEW else math.ceil(value / FARTHEST)
    last = number + 1 == len(values)
    high = math.floor(value * FARTHEST if last else math.sqrt(value * values[number + 1]))
    return min(low, value), max(high, value)


def _suited(family: Family, record: TuneRecord, high: int) -> int:
    """Return the largest value of the axis, up to ``high``, that the chosen kernel suits."""
    assert record.chosen is not None
    plan = build_plan(config_from_data(record.chosen.config, record.winner))
    axis = family.axes[0]

    def suits(value: int) -> bool:
        return family.suits(plan, family.problem({**record.extents, axis: value}))

    low = record.extents[axis]
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if suits(middle) else (low, middle - 1)
    return low


def _place(base: LoadedConfig, name: str, timed: Timed, folder: Path) -> str:
    """Return how a table in ``folder`` names a kernel's config."""
    if timed.source == "config" and not _is_shipped(base):
        import os

        relative = Path(os.path.relpath(base.path.resolve(), folder.resolve())).as_posix()
        return relative if relative.startswith(".") else f"./{relative}"
    return name


def _is_shipped(base: LoadedConfig) -> bool:
    from fa4gen.config.find import shipped_name

    if not shipped_name(base.path):
        return False
    return [path.resolve() for path in find_configs([base.path.stem])] == [base.path.resolve()]


def _use(base: LoadedConfig, family: Family) -> str:
    """Return the use of a table: kernels that no set picks by shapes are not loaded by it."""
    table = f"{base.config.name}{TABLE_END}"
    try:
        family.refuse_set(build_plan(base.config))
    except ConfigError:
        return f"Vendor it: fa4gen vendor add {table}"
    return f'Load it: fa4gen.load("{table}")'


def _text(data: Mapping[str, Any], tiles: Mapping[str, Mapping[str, Any]], use: str) -> str:
    """Return the text of a table's own file."""
    how = {
        "measurement": "measured",
        "model": "predicted by the cost model; nothing was measured",
    }[data["decided_by"]]
    head = (
        "# Which kernel to use for which problem, by `fa4gen tune`. Times are in microseconds,\n"
        f"# {how}. {use}\n"
    )
    return head + _table_text(data) + _tiles_text(tiles)


def chip_text(
    tables: Mapping[str, Mapping[str, Any]], tiles: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return the text of a chip's file: its tables by name, and the tiles that they name."""
    named = {kernel["config"] for table in tables.values() for kernel in table["kernels"]}
    text = (
        "# Which kernel to use for which problem on one chip, by `fa4gen tune`. Times are in\n"
        "# microseconds. FILE/NAME.tuning.yaml is a table: fa4gen.load and fa4gen vendor take it.\n"
        "tables:\n"
    )
    for name in sorted(tables):
        text += f"  {name}:\n" + textwrap.indent(_table_text(tables[name]), " " * 4)
    return text + _tiles_text({name: keys for name, keys in tiles.items() if name in named})


def _joined(file: Path, data: Mapping[str, Any], tiles: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a chip's file with a table in the place of that of its base."""
    content = _contents(file)
    tables = {**content.get("tables", {}), data["base"]: data}
    return chip_text(tables, {**content.get("tiles", {}), **tiles})


def _contents(file: Path) -> dict[str, Any]:
    """Return the contents of a file of tables, empty for a missing one; ConfigError."""
    import yaml

    if not file.exists():
        return {}
    try:
        content = yaml.safe_load(read_text(file, "table"))
    except yaml.YAMLError as error:
        raise ConfigError(
            Problem("not YAML", "Correct it, or delete it.", shown_path(file))
        ) from error
    return content if isinstance(content, dict) else {}


def _table_text(data: Mapping[str, Any]) -> str:
    import yaml

    rest = {key: value for key, value in data.items() if key != "between"}
    body: str = yaml.safe_dump(rest, sort_keys=False, default_flow_style=None, width=100)
    if "between" in data:
        body += "between: # parts of the regions where the model prefers another of these kernels\n"
    return body + "".join(f"- {_line(part)}" for part in data.get("between", ()))


def _tiles_text(tiles: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tiles, one a line; their names are those of the lines."""
    lines = {
        name: _line({key: value for key, value in keys.items() if key != "name"})
        for name, keys in sorted(tiles.items())
    }
    return "tiles:\n" * bool(lines) + "".join(f"  {name}: {line}" for name, line in lines.items())


def _line(data: Mapping[str, Any]) -> str:
    import yaml

    line: str = yaml.safe_dump(dict(data), sort_keys=False, default_flow_style=True, width=math.inf)
    return line
