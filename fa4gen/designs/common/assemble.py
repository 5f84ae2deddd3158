"""From what a design decided and derived to its plan: a field is found by its name."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from fa4gen.designs.common.barriers import lay_out_barriers
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.common.kernel_model import KernelPlan
from fa4gen.designs.common.model import LaunchGeometry
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.designs.common.model import (
        Barrier,
        Choice,
        Parameter,
        Role,
        SharedRegion,
        TensorMapPlan,
    )
    from fa4gen.designs.common.values import DesignValues

P = TypeVar("P", bound=KernelPlan)
_MISSING = object()


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What a design derives from its values, table by table."""

    summary: tuple[str, ...]
    roles: tuple[Role, ...]
    regions: tuple[SharedRegion, ...]
    barriers: Sequence[Barrier]
    """Not yet placed: they go into the region of that name."""
    tensor_maps: tuple[TensorMapPlan, ...]
    parameters: tuple[Parameter, ...]
    threads: int
    grid: str
    """The rule for the grid, in words."""
    cluster: int | None = None
    """CTAs of a cluster, where they are not ``cta_group``."""
    cooperative: bool = False
    """Whether CTAs wait for one another."""
    aligns_base: bool = True
    """Whether the kernel aligns the base of shared memory, for which a launch asks for room."""


def assemble(
    plan: type[P],
    values: DesignValues[Any],
    choices: tuple[Choice, ...],
    tables: Tables,
    **given: Any,
) -> P:
    """Return the plan of what was decided: ``values``, with their config, and who decided them.

    A field is ``given``, or has its name among the tables, in ``values`` or the config, in this
    order; of the config, ``resolved_<name>`` goes before the key. ValueError for a field that none
    of them has, or that is still "auto".
    """
    sources = (_Known(values.config, tables, choices), values, values.config)
    named = {
        field.name: given[field.name] if field.name in given else _find(field.name, sources)
        for field in fields(plan)
        if field.name != "launch" and (field.name in given or field.default is MISSING)
    }
    launch = LaunchGeometry(
        threads=tables.threads,
        cluster=tables.cluster or named["cta_group"],
        dynamic_shared_bytes=dynamic_shared_bytes(tables.regions, aligns_base=tables.aligns_base),
        grid=tables.grid,
        cooperative=tables.cooperative,
    )
    return plan(**named, launch=launch)


def persistent_grid(*, pairs: bool) -> str:
    """Return the rule for the grid of CTAs, or pairs of them, that take tile after tile."""
    if pairs:
        return "two CTAs a pair of tiles, at most as many as multiprocessors"
    return "as many CTAs as multiprocessors, or tiles where there are fewer"


class _Known:
    """What every plan has, by field."""

    def __init__(self, config: KernelConfig, tables: Tables, choices: tuple[Choice, ...]) -> None:
        first = next(region.offset for region in tables.regions if region.name == "barriers")
        self.arch = config.arch  # values have its limits under this name
        self.entry_point = f"fa4gen_{config.name}"
        self.feature_macro = ARCHITECTURES[config.arch].feature_macro
        self.summary = tables.summary
        self.roles = tables.roles
        self.shared = tables.regions
        self.barriers = lay_out_barriers(tables.barriers, first)
        self.tensor_maps = tables.tensor_maps
        self.parameters = tables.parameters
        self.choices = choices


def _find(name: str, sources: Iterable[object]) -> Any:
    for source in sources:
        for attribute in (f"resolved_{name}", name):
            found = getattr(source, attribute, _MISSING)
            if found is not _MISSING:
                if found == "auto":
                    raise ValueError(f"{name} of the plan is still auto")
                return found
    raise ValueError(f"neither values nor config have {name} for the plan")
