"""From the config and what was measured to the plan of attention on Hopper."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.limits import exceeded_limits
from fa4gen.designs.attention_sm90.memory import (
    PROBABILITY_REGISTERS,
    ROW_REGISTERS,
)
from fa4gen.designs.attention_sm90.model import HopperAttentionPlan
from fa4gen.designs.attention_sm90.rules import broken_rules
from fa4gen.designs.attention_sm90.tuning import (
    FP8,
    Tuning,
    larger_loader,
    promoted_block,
    tuning_of,
)
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.fitting import most_stages, with_stages
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.common.roles import WARPGROUP_ROWS, default_registers
from fa4gen.designs.common.values import as_float32_constant, take_keys, take_out_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
    from fa4gen.designs.common.kernel_config import RegisterBudget
    from fa4gen.designs.common.refusal import Refusal
    from fa4gen.designs.common.values import Scheduler

DEFAULT_THRESHOLD = 8.0
FP8_THRESHOLD = 2.7
"""With probabilities of up to 2^6 at the maximum: together just below 448."""
PROMOTED_KEYS = 2048
MAX_STAGES = 16
"""The schema's limit."""


def decide(config: HopperAttentionConfig) -> HopperAttentionPlan:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    log.take("value_depth", config.value_depth, config.depth, "as depth")
    take_out_dtype(config, log)
    if config.dtype == "fp8_e4m3":
        reason = "each sequence has a scale for every key head"
        log.take("kv_scale", config.kv_scale, config.resolved_kv_scale, reason)
    tuning = tuning_of(config)
    warpgroups = _warpgroups(config, tuning, log)
    registers = _registers(config, warpgroups)
    free = partial(_free_registers, config, registers)
    block = _block(config, tuning, registers, free, log)
    log.take("overlap", config.overlap, True, "")
    chunks = _chunks_in_flight(config, tuning, free(block), block, log)
    ping_pong = log.take(
        "ping_pong", config.ping_pong, False, "measured: three free-running warpgroups are faster"
    )
    epilogue = log.take(
        "epilogue",
        config.epilogue,
        "direct",
        "measured: 16-byte stores from registers need no staging",
    )
    overlap_epilogue = _overlaps_epilogue(config, tuning, log)
    draft = HopperAttentionPlan(
        config=config,
        cta_group=config.cta_group,
        BN=block,
        num_consumer_warpgroups=warpgroups,
        num_pv_chunks_in_flight=chunks,
        ping_pong=ping_pong,
        overlap_epilogue=overlap_epilogue,
        epilogue=epilogue,
        scheduler=_scheduler(config, log),
        registers=registers,
        promote_every=_promote_every(config, block, log),
        rescale_threshold=_rescale_threshold(config, log),
    )
    draft = _with_stages(draft, tuning, log)
    reason = "the register file, less what the loader needs, in equal parts"
    log.take("registers", config.registers, registers, reason)
    return replace(draft, choices=log.rows)


def _promote_every(config: HopperAttentionConfig, block: int, log: ChoiceLog) -> int | None:
    """Return the blocks after which sums are promoted to float32; None: never.

    Cuts take 2^-13 of the sum off each product at most, half of that on average, and the sum is
    half of what it becomes: after 2048 keys 2^-4, as much as the rounding of a probability.
    """
    if config.dtype != "fp8_e4m3":
        return None
    default: int | str = max(1, PROMOTED_KEYS // block)
    reason = f"{PROMOTED_KEYS} keys lose at most 2^-4, as much as the rounding of a probability"
    depth = config.resolved_value_depth
    if promoted_block(config, depth) < FP8[depth].BN:
        default = "never"
        reason = "promoted sums leave no shared memory for two stages of wide blocks"
    given: int | str = config.promote_every
    taken = log.take("promote_every", given, default, reason)
    return taken if isinstance(taken, int) else None


def _rescale_threshold(config: HopperAttentionConfig, log: ChoiceLog) -> float:
    """Return by how much a maximum may grow before the output is rescaled."""
    default, reason = DEFAULT_THRESHOLD, "probabilities up to 2^8 are exact enough in 16 bits"
    if config.dtype == "fp8_e4m3":
        default = FP8_THRESHOLD
        reason = "measured: a smaller one rescales in more blocks, and fp8 has no range for more"
    given = config.rescale_threshold
    return as_float32_constant(log.take("rescale_threshold", given, default, reason))


def find_faults(plan: HopperAttentionPlan) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return [*broken_rules(plan), *exceeded_limits(plan)]


def _free_registers(config: HopperAttentionConfig, registers: RegisterBudget, block: int) -> int:
    """Return the registers left after output, scores of ``block`` keys and row state.

    Less than nothing where they do not fit: the least that a consumer needs, whatever it computes.
    """
    most = min(registers.consumer, ARCHITECTURES[config.arch].max_registers_per_thread)
    return most - config.resolved_value_depth // 2 - block // 2 - ROW_REGISTERS


def _overlaps_epilogue(config: HopperAttentionConfig, tuning: Tuning, log: ChoiceLog) -> bool:
    """Return whether the next tile's first Q.K goes before this tile's output."""
    reason, default = "measured for this depth", tuning.overlap_epilogue
    if config.epilogue == "tma_store":
        reason, default = "the output is staged in the query slot", False
    return log.take("overlap_epilogue", config.overlap_epilogue, default, reason)


def _warpgroups(config: HopperAttentionConfig, tuning: Tuning, log: ChoiceLog) -> int:
    """Return how many warpgroups compute, each 64 rows of a tile."""
    depth = config.resolved_value_depth
    rows = log.take(
        "BM",
        config.BM,
        WARPGROUP_ROWS * tuning.num_consumer_warpgroups,
        f"depth {depth}: an output of 64 x {depth} takes {depth // 2} registers of a warpgroup",
    )
    warpgroups = rows // WARPGROUP_ROWS
    log.note("num_consumer_warpgroups", warpgroups, "derived", "BM / 64")
    return warpgroups


def _registers(config: HopperAttentionConfig, warpgroups: int) -> RegisterBudget:
    if config.registers == "auto":
        larger = warpgroups == 2 and _has_busy_loader(config)
        return larger_loader(config, warpgroups) if larger else default_registers(warpgroups)
    return config.registers


def _has_busy_loader(config: HopperAttentionConfig) -> bool:
    """Whether the producer transposes, multicasts, keeps its place in windows, or reads lists."""
    if config.dtype == "fp8_e4m3" and config.value_major == "depth":
        return True
    static_window = config.scheduler == "static" and config.resolved_mask.has_left_end
    return config.cta_group == 2 or static_window or config.lists_blocks


def _block(
    config: HopperAttentionConfig,
    tuning: Tuning,
    registers: RegisterBudget,
    free: Callable[[int], int],
    log: ChoiceLog,
) -> int:
    """Keys of a block: what was tuned, or less where the registers are fewer than it was tuned for.

    P.V in flight comes second: it gets what the block leaves.
    """
    step = config.chunk_keys
    if free(tuning.BN) >= 0:
        default, reason = tuning.BN, tuning.block_reason
    else:
        narrower = range(tuning.BN - step, 0, -step)
        default = next((block for block in narrower if free(block) >= 0), step)
        reason = f"the widest block whose scores and output fit {registers.consumer} registers"
    return log.take("BN", config.BN, default, f"depth {config.depth}: {reason}")


def _chunks_in_flight(
    config: HopperAttentionConfig, tuning: Tuning, free: int, block: int, log: ChoiceLog
) -> int:
    if config.overlap:
        fit = max(0, free) // PROBABILITY_REGISTERS
        default = min(tuning.num_pv_chunks_in_flight, block // config.chunk_keys, fit)
        reason = "measured: more would hold the registers of probabilities under the next Q.K"
    else:
        default, reason = 0, "without overlap all of P.V is waited for"
    taken = log.take("num_pv_chunks_in_flight", config.num_pv_chunks_in_flight, default, reason)
    return taken if config.overlap else 0


def _scheduler(config: HopperAttentionConfig, log: ChoiceLog) -> Scheduler:
    if config.cta_group == 1:
        return log.take(
            "scheduler", config.scheduler, "dynamic", "tiles go to whichever CTA is free"
        )
    return log.take(
        "scheduler", config.scheduler, "static", "pairs of CTAs take tiles in a fixed round"
    )


def _with_stages(draft: HopperAttentionPlan, tuning: Tuning, log: ChoiceLog) -> HopperAttentionPlan:
    """Return the draft with as many slots as were measured to be enough, or as fit."""
    fit = most_stages(draft, MAX_STAGES)
    room = (
        f"shared memory ({draft.hardware.shared_bytes} bytes, queries take "
        f"{draft.num_consumer_warpgroups * draft.query_bytes}, a stage {draft.stage_bytes})"
    )
    enough = tuning.stages
    reason = (
        f"{tuning.stages_reason}; {fit} would fit {room}"
        if fit >= enough
        else f"{'two' if enough == 2 else enough} do not fit {room}"
    )
    return with_stages(draft, min(enough, fit), reason, log)
