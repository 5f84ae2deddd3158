"""From the config and what was measured to the plan of a matrix product on Hopper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.fitting import most_slots
from fa4gen.designs.common.gemm_scales import OperandScales
from fa4gen.designs.common.grouped import take_most_groups
from fa4gen.designs.common.kernel_config import RegisterBudget
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES, take_gemm_output
from fa4gen.designs.gemm_sm90.limits import exceeded_limits
from fa4gen.designs.gemm_sm90.model import HopperGemmPlan
from fa4gen.designs.gemm_sm90.rules import broken_rules
from fa4gen.designs.gemm_sm90.tile import DEFAULT_REGISTERS, GATED_ROWS, SCALED_K, WGMMA_ROWS

if TYPE_CHECKING:
    from fa4gen.designs.common.refusal import Refusal
    from fa4gen.designs.gemm_sm90.config import HopperGemmConfig

MAX_STAGES = 16
"""The schema's limit."""
MOST_EPI_STAGES = 4
"""The schema's limit."""
THREE_WITH_PARTS = RegisterBudget(producer=40, consumer=152)
"""The split for three consumer warpgroups when the loader ``loads_parts``."""
GATHERING = RegisterBudget(producer=56, consumer=224)
"""The split for two consumer warpgroups with gathered rows: a lane keeps its rows of a tile."""
NATURAL_WARPGROUPS = {64: 1, 128: 2, 192: 3, 256: 2}
"""Consumer warpgroups of a tile, by its rows of wgmma."""


def decide(config: HopperGemmConfig) -> HopperGemmPlan:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_gemm_output(config, log)
    ping_pong = log.take(
        "ping_pong",
        config.ping_pong,
        False,
        "measured: tiles of both warpgroups are larger, and move fewer bytes",
    )
    if config.swap_operands:
        rows, columns, warpgroups = _swapped_tile(config, log)
    else:
        rows, warpgroups = _rows(config, ping_pong, log)
        columns = _columns(config, rows if ping_pong else rows // warpgroups, log)
    draft = HopperGemmPlan(
        config=config,
        cta_group=log.take(
            "cta_group", config.cta_group, 1, "measured: the pair's waits cost more than it saves"
        ),
        BM=rows,
        BN=columns,
        BK=_block(config, log),
        evict_first=_evict_first(config, log),
        num_consumer_warpgroups=warpgroups,
        ping_pong=ping_pong,
        registers=DEFAULT_REGISTERS[warpgroups],
        scales=_scales(config),
    )
    draft = replace(draft, num_epi_stages=_epi_stages(draft, log))
    draft = replace(draft, registers=_registers(draft, log))
    draft = replace(draft, most_groups=take_most_groups(draft, log, MAX_STAGES))
    draft = replace(draft, multiply_ahead=_multiply_ahead(draft, log))
    return replace(draft, num_stages=_stages(draft, log), choices=log.rows)


def find_faults(plan: HopperGemmPlan) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return [*broken_rules(plan), *exceeded_limits(plan)]


def _scales(config: HopperGemmConfig) -> tuple[OperandScales, ...]:
    """Return the scales of A and of B, or none."""
    given = config.scales
    if given is None:
        return ()
    columns = SCALED_K if given.b == "128x128" else 1
    return (
        OperandScales("a", given.a, given.dtype, 1, SCALED_K, gathered=config.rows == "gathered"),
        OperandScales("b", given.b, given.dtype, columns, SCALED_K),
    )


def _block(config: HopperGemmConfig, log: ChoiceLog) -> int:
    panel = PANEL_BYTES // ELEMENT_BYTES[config.dtype]
    if config.swap_operands and (config.BM == "auto" or config.BM <= WGMMA_ROWS):
        return log.take("BK", config.BK, 2 * panel, "measured: the weights stream in larger pieces")
    return log.take("BK", config.BK, panel, "one row of the 128-byte swizzle")


def _evict_first(config: HopperGemmConfig, log: ChoiceLog) -> Literal["none", "b", "both"]:
    if config.swap_operands:
        return log.take("evict_first", config.evict_first, "b", "the weights are read once")
    reason = "measured: faster where few row tiles read the weights, slower elsewhere"
    return log.take("evict_first", config.evict_first, "none", reason)


def _epi_stages(draft: HopperGemmPlan, log: ChoiceLog) -> int:
    config = draft.config
    if config.output_in_ring:
        panels = draft.panels_per_ring
        reason = "one for each panel of a tile: the ring has the room"
        if panels > MOST_EPI_STAGES:
            reason = f"the most that there are: a consumer has {panels} panels of a tile"
        default = min(panels, MOST_EPI_STAGES)
        return log.take("num_epi_stages", config.num_epi_stages, default, reason)
    if config.swap_operands:
        reason = "a consumer has one panel of a tile or two, and the ring of A and B needs the room"
        return log.take("num_epi_stages", config.num_epi_stages, 2, reason)
    if draft.gathers_rows:
        reason = "gathered rows land later than tiles of TMA: the ring has the room"
        return log.take("num_epi_stages", config.num_epi_stages, 2, reason)
    if draft.output_scales is not None:
        reason = "a panel has a whole block of columns, and a tile few of them"
        return log.take("num_epi_stages", config.num_epi_stages, 2, reason)
    default = 4 if config.c.is_matrix else 3
    reason = f"measured: with {default}, the output waits for no store; worth a stage of A and B"
    return log.take("num_epi_stages", config.num_epi_stages, default, reason)


def _rows(config: HopperGemmConfig, ping_pong: bool, log: ChoiceLog) -> tuple[int, int]:
    """Return BM and the consumer warpgroups; each can follow from the other."""
    given = config.num_consumer_warpgroups
    if ping_pong:
        warpgroups = log.take("num_consumer_warpgroups", given, 2, "ping_pong: a tile each")
        rows = log.take("BM", config.BM, 128, "ping_pong: as many rows as one warpgroup holds")
        return rows, warpgroups
    if config.BM != "auto":
        natural = NATURAL_WARPGROUPS.get(config.BM, 1)
        warpgroups = log.take("num_consumer_warpgroups", given, natural, f"BM is {config.BM}")
        log.note("BM", config.BM, "config")
        return config.BM, warpgroups
    warpgroups = log.take("num_consumer_warpgroups", given, 2, "more would have too few registers")
    rows = WGMMA_ROWS * warpgroups
    log.note("BM", rows, "auto", "64 rows for each consumer warpgroup")
    return rows, warpgroups


def _swapped_tile(config: HopperGemmConfig, log: ChoiceLog) -> tuple[int, int, int]:
    """Return BM, BN and the consumer warpgroups, which divide the columns."""
    rows = log.take("BM", config.BM, 64, "as many rows of A as one tile is meant for")
    given = config.num_consumer_warpgroups
    if config.BN != "auto":
        natural = NATURAL_WARPGROUPS.get(config.BN, 1)
        if config.is_gated:
            natural = max(1, config.BN // GATED_ROWS)
        warpgroups = log.take("num_consumer_warpgroups", given, natural, f"BN is {config.BN}")
        log.note("BN", config.BN, "config")
        return rows, config.BN, warpgroups
    warpgroups = log.take("num_consumer_warpgroups", given, 1, "the more tiles read the weights")
    each = GATED_ROWS if config.is_gated else WGMMA_ROWS
    columns = each * warpgroups
    log.note("BN", columns, "auto", f"{each} columns for each consumer warpgroup")
    return rows, columns, warpgroups


def _columns(config: HopperGemmConfig, warpgroup_rows: int, log: ChoiceLog) -> int:
    three = config.BM == 192 or config.num_consumer_warpgroups == 3
    wide = warpgroup_rows == WGMMA_ROWS and not three
    if config.scales is not None:
        reason = "sums and the products of a block fit the registers"
        narrow = three and config.resolved_output_scales is None
        halves = config.is_gated and config.resolved_output_scales is not None
        return log.take("BN", config.BN, 256 if halves else 64 if narrow else 128, reason)
    return log.take(
        "BN", config.BN, 256 if wide else 128, "the widest tile whose sums fit the registers"
    )


def _registers(draft: HopperGemmPlan, log: ChoiceLog) -> RegisterBudget:
    default = DEFAULT_REGISTERS[draft.num_consumer_warpgroups]
    if draft.gathers_rows and draft.num_consumer_warpgroups == 2:
        default = GATHERING
    elif draft.loads_parts and default.producer < THREE_WITH_PARTS.producer:
        default = THREE_WITH_PARTS
    reason = "the register file, less what the loaders need, in equal parts"
    return log.take("registers", draft.config.registers, default, reason)


def _multiply_ahead(draft: HopperGemmPlan, log: ChoiceLog) -> bool:
    config = draft.config
    if config.scales is None:
        return config.multiply_ahead is True
    fits = draft.accumulators + 2 * draft.products < draft.registers.consumer
    reason = "sums and two sets of products are fewer than a thread's registers"
    single = draft.warpgroup_rows == WGMMA_ROWS and draft.BK == SCALED_K
    given = config.num_stages
    slots = most_slots(draft, "num_stages", 2) if given == "auto" else given
    default = fits and single and slots > 1  # the next block lands before the last is released
    if draft.gathers_rows and config.scales.b == "1x128":
        default, reason = False, "looked up rows and scales of single columns take registers, too"
    return log.take("multiply_ahead", config.multiply_ahead, default, reason)


def _stages(draft: HopperGemmPlan, log: ChoiceLog) -> int:
    """Return the slots of the ring: as many as fit."""
    given = draft.config.num_stages
    if given != "auto":
        return log.take("num_stages", given, given, "")
    fit = most_slots(draft, "num_stages", MAX_STAGES)
    reason = (
        f"the most that fit shared memory ({draft.hardware.shared_bytes} bytes, a stage "
        f"{draft.stage_bytes}, the output's slots "
        f"{draft.num_consumer_warpgroups * draft.num_epi_stages * draft.epi_bytes})"
    )
    return log.take("num_stages", given, max(1, fit), reason)
