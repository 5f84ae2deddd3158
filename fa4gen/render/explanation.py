"""A plan as tables: each value and its origin, and the layout of memory."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from fa4gen.config.paths import shown_path
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.render.choice import FIRST
from fa4gen.render.manifest import json_data
from fa4gen.render.memory_picture import bytes_per_line, kibibytes, shared_memory_picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.model import Role
    from fa4gen.designs.common.plans import Plan
    from fa4gen.render.choice import ChoiceRecord

NOT_COMPILED = "not asked: --compile asks it"
_NOT_TUNED = ("kernel", "name", "arch")


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading, lines of text under it, and a table whose columns in ``right`` are numbers."""

    title: str
    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: tuple[str, ...] = ()


def explain(plan: Plan, loaded: LoadedConfig, choice: ChoiceRecord = FIRST) -> list[Section]:
    """Return the sections of ``fa4gen explain`` for one config.

    ``choice``: which candidate the plan is of, and what was tried before it.
    """
    return [
        Section(f"{plan.entry_point}: {plan.kernel} for {plan.arch}", plan.summary),
        _values(plan, loaded),
        _candidates(choice),
        *(Section(title, lines) for title, lines in plan.explained),
        *_shared_memory(plan),
        *_tensor_memory(plan),
        *_barriers(plan),
        _roles(plan),
        _tensor_maps(plan),
        _launch(plan),
        Section(
            "Parameters, in order",
            columns=("name", "type", "meaning"),
            rows=tuple((p.name, p.c_type, p.meaning) for p in plan.parameters),
        ),
    ]


def _values(plan: Plan, loaded: LoadedConfig) -> Section:
    """Every config key with its value; the plan's choices say how the others were chosen."""
    choices = {choice.key: choice for choice in plan.choices}
    written = loaded.config.data()
    own = f"{shown_path(loaded.path)}:"
    rows: list[tuple[str, ...]] = []
    for key in dict.fromkeys([*written, *choices]):
        if key in _NOT_TUNED:
            continue
        place = loaded.place_of(key).removeprefix(own)
        choice = choices.get(key)
        if choice is not None:
            value, source, reason = choice.value, choice.source, choice.reason
        else:
            value, source, reason = written[key], "config" if place else "default", ""
        rows.append((key, _text(value), source, place, reason))
    rows += [
        (row.key, _text(row.decided[0]), "fixed", "", row.because)
        for row in loaded.config.FIXED
        if row.decided and row.key not in (*written, *choices)
    ]
    columns = ("key", "value", "chosen by", "line", "why")
    return Section("Values", (), columns, tuple(rows), right=("line",))


def _candidates(choice: ChoiceRecord) -> Section:
    """Return the candidates for keys that the config leaves to the plan, with their outcomes."""
    taken = f"compiles clean ({choice.compiler}): taken" if choice.compiler else NOT_COMPILED
    rows = [(_keys(one.keys), one.why) for one in choice.left] + [(_keys(choice.keys), taken)]
    return Section("Candidates, in order", (), ("keys set", "what the compiler says"), tuple(rows))


def _keys(keys: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {_text(value)}" for key, value in keys.items()) or "none: the first"


def _shared_memory(plan: Plan) -> list[Section]:
    limit = ARCHITECTURES[plan.arch].shared_bytes
    total = plan.launch.dynamic_shared_bytes
    used = plan.shared_bytes_used
    lines = (
        f"{total} of {limit} bytes ({kibibytes(total)} of {kibibytes(limit)}): {used} used, "
        f"{total - used} to align the base. Drawn at {kibibytes(bytes_per_line(limit))} a line:",
        "",
        *shared_memory_picture(plan.shared, limit),
    )
    columns = ("region", "offset", "end", "bytes", "slots", "slot bytes", "alignment", "holds")
    rows = tuple(
        (r.name, *map(str, (r.offset, r.end, r.bytes, r.slots, r.slot_bytes, r.alignment)), r.holds)
        for r in plan.shared
    )
    return [Section("Shared memory", lines), Section("", (), columns, rows, columns[1:-1])]


def _tensor_memory(plan: Plan) -> list[Section]:
    if not plan.tensor_memory:
        return []
    used = max(region.end for region in plan.tensor_memory)
    limit = ARCHITECTURES[plan.arch].tensor_memory_columns
    rows = tuple(
        (r.name, str(r.column), str(r.end), str(r.columns), r.holds) for r in plan.tensor_memory
    )
    return [
        Section(
            "Tensor memory",
            (f"{used} of {limit} columns used, {plan.tensor_memory_columns} allocated",),
            ("region", "first column", "end", "columns", "holds"),
            rows,
            ("first column", "end", "columns"),
        )
    ]


def _barriers(plan: Plan) -> list[Section]:
    columns = ("barrier", "offset", "slots", "arrivals", "TMA bytes", "copy", "first wait")
    rows = tuple(
        (
            b.name,
            *map(str, (b.offset, b.slots, b.arrivals, b.transaction_bytes or "-")),
            b.cta,
            f"parity {b.first_wait_parity}",
        )
        for b in plan.barriers
    )
    words = tuple(
        (b.name, b.meaning, b.arrive_how.replace("_", " "), b.arrived_by, b.waited_by)
        for b in plan.barriers
    )
    sections = [
        Section("Barriers: counts of each phase", (), columns, rows, columns[1:5]),
        Section(
            "Barriers: who arrives, who waits",
            columns=("barrier", "a phase says", "arrive by", "who arrives", "who waits"),
            rows=words,
        ),
    ]
    if plan.named_barriers:
        named = tuple((name, str(first)) for name, first in plan.named_barriers)
        sections.append(Section("Named barriers", (), ("name", "first id"), named, ("first id",)))
    return sections


def _roles(plan: Plan) -> Section:
    available = ARCHITECTURES[plan.arch].registers
    needed = sum(role.num_threads * role.registers for role in plan.roles)
    return Section(
        "Roles",
        (f"{needed} of {available} registers",),
        ("role", "warps", "threads", "registers", "work"),
        tuple(
            (
                role.name,
                _warps(role),
                str(role.num_threads),
                str(role.registers),
                role.work,
            )
            for role in plan.roles
        ),
        ("warps", "threads", "registers"),
    )


def _warps(role: Role) -> str:
    """Return the numbers of the role's warps: 4, or 0-3."""
    last = role.first_warp + role.num_warps - 1
    return f"{role.first_warp}-{last}" if last > role.first_warp else str(last)


def _tensor_maps(plan: Plan) -> Section:
    return Section(
        "Tensor maps, from the contiguous dimension outwards",
        columns=("map", "tensor", "direction", "dimensions", "box", "box bytes", "swizzle"),
        rows=tuple(
            (
                m.parameter,
                m.tensor,
                m.direction,
                ", ".join(m.dims),
                " x ".join(map(str, m.box)),
                str(m.box_bytes),
                f"{m.swizzle} B" if m.swizzle else "none",
            )
            for m in plan.tensor_maps
        ),
        right=("box bytes",),
    )


def _launch(plan: Plan) -> Section:
    launch = plan.launch
    rows = (
        ("threads", str(launch.threads)),
        ("cluster", str(launch.cluster)),
        ("dynamic shared memory", f"{launch.dynamic_shared_bytes} bytes"),
        ("grid", launch.grid),
    )
    return Section("Launch", columns=("what", "value"), rows=rows)


def _text(value: Any) -> str:
    """Return a value as a config would write it."""
    data = json_data(value)
    if data is None:
        return "none"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, dict):
        return "{" + ", ".join(f"{key}: {_text(item)}" for key, item in data.items()) + "}"
    return str(data)
