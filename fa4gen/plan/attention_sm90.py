"""The plan of attention forward on Hopper: tiles, roles, memory, barriers, parameters.

Three consumer warpgroups of 64 rows (or two, where the output takes too many registers) hide each
other's softmax; the ring of key and value blocks is filled by one thread through TMA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from fa4gen.errors import ConfigError, Problem
from fa4gen.plan.attention_model import AttentionPlan
from fa4gen.plan.attention_sm90_parts import (
    attention_barriers,
    attention_parameters,
    attention_roles,
    attention_tensor_maps,
    summarise,
)
from fa4gen.plan.barriers import lay_out_barriers
from fa4gen.plan.hardware import ARCHITECTURES
from fa4gen.plan.model import Choice, LaunchGeometry, SharedRegion
from fa4gen.plan.roles import RegisterSplit, check_registers, default_registers
from fa4gen.plan.shared_memory import align_up, lay_out_regions

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionConfig

T = TypeVar("T")

SWIZZLE_ALIGNMENT = 1024
TILE_SLOTS = 2
TILE_BYTES = 16
WARPGROUP_ROWS = 64


@dataclass(frozen=True)
class Tuning:
    """What was measured to be fastest for a depth."""

    num_consumer_warpgroups: int
    BN: int
    num_pv_chunks_in_flight: int
    overlap_epilogue: bool
    block_reason: str


FITS_REGISTERS = "the widest block whose scores and output fit the registers of three warpgroups"
FITS_SHARED = "the widest block whose two stages fit shared memory"
TUNING_DENSE = {
    64: Tuning(3, 128, 2, False, FITS_REGISTERS),
    96: Tuning(3, 128, 2, False, FITS_REGISTERS),
    128: Tuning(3, 96, 3, True, FITS_REGISTERS),
    192: Tuning(2, 112, 3, False, FITS_SHARED),
    256: Tuning(2, 80, 4, False, FITS_SHARED),
}
TUNING_BANDED = {
    64: Tuning(3, 128, 2, False, FITS_REGISTERS),
    96: Tuning(3, 128, 2, False, FITS_REGISTERS),
    128: Tuning(3, 96, 3, False, FITS_REGISTERS),
    192: Tuning(2, 112, 3, True, FITS_SHARED),
    256: Tuning(2, 80, 3, True, FITS_SHARED),
}
"""For causal and sliding-window masks, where warpgroups drop blocks that they do not see."""


def plan_attention_sm90(config: AttentionConfig) -> AttentionPlan:
    """Plan attention forward for sm_90a. Raises ConfigError with the arithmetic where it cannot work."""
    arch = ARCHITECTURES[config.arch]
    tuning = (TUNING_DENSE if config.mask == "none" else TUNING_BANDED)[config.depth]
    chosen = _Choices(config)

    warpgroups, rows = _tile_rows(config, tuning, chosen)
    block = chosen.take("BN", tuning.BN, f"depth {config.depth}: {tuning.block_reason}")
    overlap = chosen.take("overlap", True, "")
    chunks = block // 16
    in_flight = 0
    if overlap:
        in_flight = chosen.take(
            "num_pv_chunks_in_flight",
            min(tuning.num_pv_chunks_in_flight, chunks),
            "measured: more would hold the registers of probabilities under the next Q.K",
        )
        in_flight = min(in_flight, chunks)
    ping_pong = chosen.take(
        "ping_pong", False, "measured: three free-running warpgroups are faster"
    )
    if ping_pong and warpgroups == 1:
        raise ConfigError(
            Problem(
                "ping_pong needs two consumer warpgroups or more, got 1",
                remedy="raise num_consumer_warpgroups (or BM), or set ping_pong: false",
                key="ping_pong",
            )
        )
    epilogue = chosen.take(
        "epilogue", "direct", "measured: 16-byte stores from registers need no staging"
    )
    overlap_epilogue = chosen.take(
        "overlap_epilogue",
        tuning.overlap_epilogue and epilogue == "direct",
        "measured for this depth"
        if epilogue == "direct"
        else "the output is staged in the query slot",
    )
    if overlap_epilogue and epilogue == "tma_store":
        raise ConfigError(
            Problem(
                "epilogue: tma_store stages the output in the query slot, which overlap_epilogue "
                "has filled with the next query by then",
                remedy="set overlap_epilogue: false, or epilogue: direct",
                key="overlap_epilogue",
            )
        )
    scheduler = chosen.take(
        "scheduler",
        "dynamic" if config.cta_group == 1 else "static",
        "tiles go to whichever CTA is free"
        if config.cta_group == 1
        else "pairs of CTAs take tiles in a fixed round",
    )

    element_bytes = 2
    panel_columns = 64 if config.depth % 64 == 0 else 32
    query_bytes = WARPGROUP_ROWS * config.depth * element_bytes
    block_bytes = block * config.depth * element_bytes
    stages = _kv_stages(config, chosen, warpgroups * query_bytes, block_bytes, arch.shared_bytes)
    registers = _registers(config, chosen, warpgroups)
    check_registers(arch, registers, warpgroups)

    rows_of_barriers = attention_barriers(
        config,
        warpgroups=warpgroups,
        stages=stages,
        tile_slots=TILE_SLOTS,
        query_bytes=query_bytes,
        block_bytes=block_bytes,
        epilogue=epilogue,
        scheduler=scheduler,
    )
    swizzle = f"{panel_columns * element_bytes}-byte swizzle"
    shape = f"{block} x {config.depth} {config.dtype}, {swizzle}"
    shared = lay_out_regions(
        (
            SharedRegion(
                "query", 0, warpgroups * query_bytes, SWIZZLE_ALIGNMENT, warpgroups,
                f"Queries, one slot a consumer warpgroup: 64 x {config.depth} {config.dtype}, {swizzle}"
                + ("; then the output on its way to global memory" if epilogue == "tma_store" else ""),
            ),
            SharedRegion("key", 0, stages * block_bytes, SWIZZLE_ALIGNMENT, stages, f"Ring of key blocks: {shape}"),
            SharedRegion("value", 0, stages * block_bytes, SWIZZLE_ALIGNMENT, stages, f"Ring of value blocks: {shape}"),
            SharedRegion(
                "barriers", 0, sum(row.bytes for row in rows_of_barriers), 8,
                sum(row.slots for row in rows_of_barriers), "mbarriers: see the barrier table",
            ),
            SharedRegion(
                "tile", 0, TILE_SLOTS * TILE_BYTES, 16, TILE_SLOTS,
                "Tiles on their way from the loader to the consumers: first row, head, batch, active warpgroups",
            ),
        )
    )  # fmt: skip
    by_name = {region.name: region for region in shared}
    barriers = lay_out_barriers(rows_of_barriers, by_name["barriers"].offset)
    dynamic_shared = align_up(shared[-1].end, 16) + SWIZZLE_ALIGNMENT
    _check_shared(dynamic_shared, arch.shared_bytes, query_bytes * warpgroups, block_bytes, stages)

    left, right = config.window
    mask = config.mask if isinstance(config.mask, str) else "sliding_window"
    named_barriers = []
    if ping_pong:
        named_barriers.append(("turn_barrier", 1))
    if epilogue == "tma_store":
        named_barriers.append(("epilogue_barrier", 1 + (warpgroups if ping_pong else 0)))
    group = config.cta_group
    return AttentionPlan(
        kernel=config.kernel,
        name=config.name,
        entry_point=f"fa4gen_{config.name}",
        arch=config.arch,
        feature_macro=arch.feature_macro,
        dtype=config.dtype,
        element_bytes=element_bytes,
        depth=config.depth,
        mask=mask,
        window_left=left,
        window_right=right,
        lse=config.lse,
        softcap=config.softcap,
        cta_group=group,
        BM=rows,
        BN=block,
        num_consumer_warpgroups=warpgroups,
        num_kv_stages=stages,
        overlap=overlap,
        num_pv_chunks_in_flight=in_flight,
        ping_pong=ping_pong,
        overlap_epilogue=overlap_epilogue,
        epilogue=epilogue,
        scheduler=scheduler,
        rescale_threshold=config.rescale_threshold,
        mixed_tile_heights=warpgroups == 3 and group == 1,
        panel_columns=panel_columns,
        num_panels=config.depth // panel_columns,
        producer_registers=registers.producer,
        consumer_registers=registers.consumer,
        named_barriers=tuple(named_barriers),
        summary=summarise(config, rows, block, warpgroups, stages, scheduler, epilogue),
        roles=attention_roles(warpgroups, registers),
        shared=shared,
        barriers=barriers,
        tensor_maps=attention_tensor_maps(config, block, panel_columns, element_bytes, epilogue),
        parameters=attention_parameters(config, epilogue, scheduler),
        launch=LaunchGeometry(
            threads=128 * (1 + warpgroups),
            cluster=group,
            dynamic_shared_bytes=dynamic_shared,
            grid="as many CTAs as multiprocessors, or tiles where there are fewer"
            if group == 1
            else "two CTAs a pair of tiles, at most as many as multiprocessors",
        ),
        choices=tuple(chosen.rows),
    )


class _Choices:
    """Takes values from the config or their defaults, and keeps a record of who decided."""

    def __init__(self, config: AttentionConfig) -> None:
        self.config = config
        self.rows: list[Choice] = []

    def take(self, key: str, default: T, reason: str) -> T:
        """The config's value, or ``default`` where it says auto (or says nothing)."""
        given = getattr(self.config, key)
        if given == "auto":
            self.rows.append(Choice(key, default, "auto", reason))
            return default
        source = "config" if key in self.config.model_fields_set else "default"
        self.rows.append(Choice(key, given, source, "" if source == "config" else reason))
        return given  # type: ignore[no-any-return]

    def add(self, key: str, value: object, source: str, reason: str) -> None:
        """Record a value that was decided elsewhere."""
        self.rows.append(Choice(key, value, source, reason))  # type: ignore[arg-type]


def _tile_rows(config: AttentionConfig, tuning: Tuning, chosen: _Choices) -> tuple[int, int]:
    """Consumer warpgroups and query rows of a tile; either key fixes the other."""
    warpgroups = config.num_consumer_warpgroups
    rows = config.BM
    reason = f"depth {config.depth}: an output of 64 x {config.depth} takes {config.depth // 2} registers"
    if isinstance(rows, int):
        warpgroups = rows // WARPGROUP_ROWS
        chosen.add("BM", rows, "config", "")
        chosen.add("num_consumer_warpgroups", warpgroups, "derived", "BM / 64")
        return warpgroups, rows
    if isinstance(warpgroups, int):
        chosen.add("num_consumer_warpgroups", warpgroups, "config", "")
    else:
        warpgroups = tuning.num_consumer_warpgroups
        chosen.add("num_consumer_warpgroups", warpgroups, "auto", reason)
    rows = WARPGROUP_ROWS * warpgroups
    chosen.add("BM", rows, "derived", "64 * num_consumer_warpgroups")
    return warpgroups, rows


def _kv_stages(
    config: AttentionConfig, chosen: _Choices, query: int, block: int, available: int
) -> int:
    """The number of slots of each ring: given, or two, or fewer where two do not fit."""
    reserve = SWIZZLE_ALIGNMENT + 1024
    fit = max(0, (available - query - reserve) // (2 * block))
    reason = (
        f"two hide the loads, more were measured to bring nothing; {fit} would fit "
        f"(({available} - {query} bytes of queries) / (2 * {block}))"
        if fit >= 2
        else f"{fit} fit shared memory"
    )
    return chosen.take("num_kv_stages", max(1, min(2, fit)), reason)


def _check_shared(total: int, available: int, query: int, block: int, stages: int) -> None:
    if total <= available:
        return
    fit = max(0, (available - query - 2 * SWIZZLE_ALIGNMENT) // (2 * block))
    remedy = (
        f"num_kv_stages: {fit} is the most that fit"
        if fit
        else "lower BN, or BM (num_consumer_warpgroups)"
    )
    raise ConfigError(
        Problem(
            f"shared memory: {query} for queries + {stages} stages * 2 * {block} for keys and values "
            f"+ barriers and alignment = {total} bytes, but a CTA has {available}",
            remedy=f"{remedy}" + ("" if not fit else "; or lower BN or BM"),
            key="num_kv_stages",
        )
    )


def _registers(config: AttentionConfig, chosen: _Choices, warpgroups: int) -> RegisterSplit:
    if config.registers == "auto":
        split = default_registers(warpgroups)
        chosen.add(
            "registers", {"producer": split.producer, "consumer": split.consumer}, "auto",
            "the register file, less what the loader needs, in equal parts",
        )  # fmt: skip
        return split
    given = config.registers
    chosen.add("registers", {"producer": given.producer, "consumer": given.consumer}, "config", "")
    return RegisterSplit(given.producer, given.consumer)
