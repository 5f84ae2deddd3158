"""Two kernels compared: the keys of their configs, their plans and their sources."""

from __future__ import annotations

import dataclasses
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from fa4gen.render.manifest import json_data, plan_data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.render.batch import RenderedConfig

DERIVED = "derived"
_SENTENCES = ("arrived_by", "grid", "holds", "meaning", "summary", "waited_by", "work")
_FOLLOWING = (
    "choices", "dynamic_shared_bytes", "entry_point", "first_warp", "name", "offset", "threads"
)  # fmt: skip
"""Fields of plans that repeat keys or totals, or follow from the fields of other rows."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """A value that differs; None where a kernel has no such value."""

    part: str
    """"keys", "totals", "derived", or a table of the plan: "barriers", say."""
    name: str
    """The key or field; in a table with the row: "key_full.slots"."""
    a: Any
    b: Any


def differences(a: RenderedConfig, b: RenderedConfig) -> list[Difference]:
    """Return what differs in keys, totals and plans, as JSON data.

    Sentences, offsets and the numbers of warps are left out: they follow from the rest.
    """
    return [
        Difference(path[0], ".".join(path[1:]), left, right)
        if len(path) > 1
        else Difference(DERIVED, path[0], left, right)
        for path, left, right in _compare(_facts(a), _facts(b), ())
    ]


def source_diff(a: RenderedConfig, b: RenderedConfig) -> list[str]:
    """Return the unified diff from the .cu of ``a`` to that of ``b``; empty where they agree."""
    names = (f"{a.kernel.folder}/{a.kernel.name}.cu", f"{b.kernel.folder}/{b.kernel.name}.cu")
    sources = (a.kernel.source.splitlines(), b.kernel.source.splitlines())
    return list(unified_diff(*sources, *names, lineterm=""))


def _facts(item: RenderedConfig) -> dict[str, Any]:
    plan = item.plan
    keys = item.loaded.config.data() | {choice.key: choice.value for choice in plan.choices}
    totals = {
        "threads": plan.launch.threads,
        "registers": sum(role.num_threads * role.registers for role in plan.roles),
        "shared memory, bytes": plan.launch.dynamic_shared_bytes,
        "tensor memory, columns": max((part.end for part in plan.tensor_memory), default=0),
        "barriers": sum(barrier.slots for barrier in plan.barriers),
        "lines of source": len(item.kernel.source.splitlines()),
    }
    # `parameters`: the config's tensors, and the arguments of every kernel
    others = {k: v for k, v in plan_data(plan).items() if k not in keys or k == "parameters"}
    return {"keys": json_data(keys), "totals": totals, **_by_name(others)}


def _by_name(value: Any) -> Any:
    """Return plan data with tables as mappings by name, without sentences and what follows."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return {row.get("name", str(i)): _by_name(row) for i, row in enumerate(value)}
    if isinstance(value, dict):
        left_out = (*_SENTENCES, *_FOLLOWING)
        return {key: _by_name(part) for key, part in value.items() if key not in left_out}
    return value


def _compare(a: Any, b: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            yield from _compare(a.get(key), b.get(key), (*path, key))
    elif a != b:
        yield path, a, b
