"""Fields that plans of several designs have alike, by their names: a plan is made of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.designs.common.barriers import lay_out_barriers
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.common.model import LaunchGeometry
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.attention_config import AttentionKeys
    from fa4gen.designs.common.gemm_values import GemmValues
    from fa4gen.designs.common.model import (
        Barrier,
        Choice,
        Fields,
        Parameter,
        Role,
        SharedRegion,
        TensorMapPlan,
    )
    from fa4gen.designs.common.values import DesignValues


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables that a design derives from its values."""

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


def kernel_fields(
    values: DesignValues[Any], choices: tuple[Choice, ...], tables: Tables, *, cta_group: int
) -> Fields:
    """Return the fields of any plan: names, tables, launch, and the origin of each value."""
    config = values.config
    first = next(region.offset for region in tables.regions if region.name == "barriers")
    return {
        "kernel": config.kernel,
        "name": config.name,
        "entry_point": f"fa4gen_{config.name}",
        "arch": config.arch,
        "feature_macro": ARCHITECTURES[config.arch].feature_macro,
        "dtype": config.dtype,
        "element_bytes": values.element_bytes,
        "cta_group": cta_group,
        "summary": tables.summary,
        "roles": tables.roles,
        "shared": tables.regions,
        "barriers": lay_out_barriers(tables.barriers, first),
        "tensor_maps": tables.tensor_maps,
        "parameters": tables.parameters,
        "launch": LaunchGeometry(
            threads=tables.threads,
            cluster=tables.cluster or cta_group,
            dynamic_shared_bytes=dynamic_shared_bytes(
                tables.regions, aligns_base=tables.aligns_base
            ),
            grid=tables.grid,
            cooperative=tables.cooperative,
        ),
        "choices": choices,
    }


def attention_fields(config: AttentionKeys) -> Fields:
    """Return the fields of an attention plan from its config, whatever its design."""
    return {
        "kv_dtype": config.resolved_kv_dtype,
        "kv_scale": config.resolved_kv_scale,
        "depth": config.depth,
        "value_depth": config.resolved_value_depth,
        "mask": config.resolved_mask,
        "lse": config.lse,
        "sinks": config.sinks,
        "score": config.resolved_score,
        "declared_tensors": config.declared_tensors,
        "batching": config.batching,
        "keys": config.resolved_keys,
        "page_size": config.page_size,
        "key_lengths": config.resolved_key_lengths,
        "lists_blocks": config.lists_blocks,
    }


def gemm_fields(values: GemmValues[Any]) -> Fields:
    """Return the fields of a product's plan from its config and tile, whatever its design."""
    config = values.config
    return {
        "out_dtype": config.resolved_out_dtype,
        "out_element_bytes": values.out_element_bytes,
        "a_major": config.a_major,
        "b_major": config.b_major,
        "residual": config.residual,
        "activation": config.activation,
        "activation_cuda": values.activation_cuda,
        "BM": values.BM,
        "BN": values.BN,
        "BK": values.BK,
        "num_stages": values.num_stages,
        "num_epi_stages": values.num_epi_stages,
        "mma_k": values.mma_k,
        "panel_columns": values.panel_columns,
    }


def persistent_grid(*, pairs: bool) -> str:
    """Return the rule for the grid of CTAs, or pairs of them, that take tile after tile."""
    if pairs:
        return "two CTAs a pair of tiles, at most as many as multiprocessors"
    return "as many CTAs as multiprocessors, or tiles where there are fewer"
