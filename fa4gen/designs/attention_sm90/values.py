"""From the config and what was measured to one value for every key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.attention_sm90.tuning import Tuning, tuning_of
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.common.roles import RegisterSplit, default_registers
from fa4gen.designs.common.values import DesignValues, take_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.model import Choice
    from fa4gen.designs.common.values import Scheduler

Epilogue = Literal["direct", "tma_store"]

WARPGROUP_ROWS = 64
ELEMENT_BYTES = 2
MIN_BLOCK = 16
MAX_BLOCK = 256
CHUNK_KEYS = 16
"""Keys of one wgmma of P.V."""
PROBABILITY_REGISTERS = 4
"""The registers of a thread for the probabilities of such a chunk: 64 x 16 of 16 bits in 128
threads."""
ROW_REGISTERS = 4
"""The registers of a thread for the maxima and sums of its two rows."""
LARGER_LOADERS = {2: RegisterSplit(40, 232), 3: RegisterSplit(56, 152)}
"""By consumer warpgroups, for a loader that does more than claim tiles and count blocks."""


@dataclass(frozen=True)
class Values(DesignValues[HopperAttentionConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    BN: int
    num_consumer_warpgroups: int
    num_kv_stages: int
    num_pv_chunks_in_flight: int
    ping_pong: bool
    overlap_epilogue: bool
    epilogue: Epilogue
    scheduler: Scheduler
    registers: RegisterSplit

    @property
    def is_pair(self) -> bool:
        """Whether two CTAs work together."""
        return self.config.cta_group == 2

    @property
    def BM(self) -> int:  # noqa: N802
        """Query rows of a tile."""
        return WARPGROUP_ROWS * self.num_consumer_warpgroups

    @property
    def mixed_tile_heights(self) -> bool:
        """Whether tiles may leave warpgroups out: to even out waves, or at a sequence's end."""
        if self.is_pair or self.config.lists_blocks:
            return False
        return self.num_consumer_warpgroups == 3 or self.config.batching == "ragged"

    @property
    def num_chunks(self) -> int:
        """Chunks of 16 keys in a block: P.V is issued in these."""
        return self.BN // CHUNK_KEYS

    @property
    def query_bytes(self) -> int:
        """Bytes of the query rows of one warpgroup."""
        return WARPGROUP_ROWS * self.config.depth * ELEMENT_BYTES

    @property
    def value_depth(self) -> int:
        """Columns of value and output."""
        return self.config.resolved_value_depth

    @property
    def key_bytes(self) -> int:
        """Bytes of a block of keys."""
        return self.BN * self.config.depth * ELEMENT_BYTES

    @property
    def value_bytes(self) -> int:
        """Bytes of a block of values."""
        return self.BN * self.value_depth * ELEMENT_BYTES

    @property
    def stage_bytes(self) -> int:
        """Bytes of a slot of both rings."""
        return self.key_bytes + self.value_bytes

    @property
    def panel_columns(self) -> int:
        """Columns of a swizzled panel: as many as tile the depths of keys and values."""
        return 64 if self.config.depth % 64 == 0 == self.value_depth % 64 else 32

    @property
    def num_panels(self) -> int:
        """Panels of queries and keys side by side."""
        return self.config.depth // self.panel_columns

    @property
    def num_value_panels(self) -> int:
        """Panels of values and output side by side."""
        return self.value_depth // self.panel_columns


def decide(
    config: HopperAttentionConfig, most_stages: Callable[[Values], int]
) -> tuple[Values, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here.

    ``most_stages`` says how many slots of each ring fit shared memory with the rest.
    """
    log = ChoiceLog(config)
    take_keys(config, log)
    log.take("value_depth", config.value_depth, config.depth, "as depth")
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
    epilogue: Epilogue = log.take(
        "epilogue",
        config.epilogue,
        "direct",
        "measured: 16-byte stores from registers need no staging",
    )
    overlap_epilogue = _overlaps_epilogue(config, tuning, log)
    values = Values(
        config=config,
        BN=block,
        num_consumer_warpgroups=warpgroups,
        num_kv_stages=1,
        num_pv_chunks_in_flight=chunks,
        ping_pong=ping_pong,
        overlap_epilogue=overlap_epilogue,
        epilogue=epilogue,
        scheduler=_scheduler(config, log),
        registers=registers,
    )
    stages = _stages(values, tuning, most_stages, log)
    log.note(
        "registers",
        registers,
        "auto" if config.registers == "auto" else "config",
        "the register file, less what the loader needs, in equal parts"
        if config.registers == "auto"
        else "",
    )
    return replace(values, num_kv_stages=stages), log.rows


def _free_registers(config: HopperAttentionConfig, registers: RegisterSplit, block: int) -> int:
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


def _registers(config: HopperAttentionConfig, warpgroups: int) -> RegisterSplit:
    if config.registers == "auto":
        larger = warpgroups == 2 and _has_busy_loader(config)
        return LARGER_LOADERS[warpgroups] if larger else default_registers(warpgroups)
    return RegisterSplit(config.registers.producer, config.registers.consumer)


def _has_busy_loader(config: HopperAttentionConfig) -> bool:
    """Whether the loader multicasts, keeps its place in an order of windows, or reads lists."""
    static_window = config.scheduler == "static" and config.resolved_mask.has_left_end
    return config.cta_group == 2 or static_window or config.lists_blocks


def _block(
    config: HopperAttentionConfig,
    tuning: Tuning,
    registers: RegisterSplit,
    free: Callable[[int], int],
    log: ChoiceLog,
) -> int:
    """Keys of a block: what was tuned, or less where the registers are fewer than it was tuned for.

    P.V in flight comes second: it gets what the block leaves.
    """
    if free(tuning.BN) >= 0:
        default, reason = tuning.BN, tuning.block_reason
    else:
        narrower = range(tuning.BN - CHUNK_KEYS, 0, -CHUNK_KEYS)
        default = next((block for block in narrower if free(block) >= 0), MIN_BLOCK)
        reason = f"the widest block whose scores and output fit {registers.consumer} registers"
    return log.take("BN", config.BN, default, f"depth {config.depth}: {reason}")


def _chunks_in_flight(
    config: HopperAttentionConfig, tuning: Tuning, free: int, block: int, log: ChoiceLog
) -> int:
    if config.overlap:
        fit = max(0, free) // PROBABILITY_REGISTERS
        default = min(tuning.num_pv_chunks_in_flight, block // CHUNK_KEYS, fit)
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


def _stages(
    values: Values, tuning: Tuning, most_stages: Callable[[Values], int], log: ChoiceLog
) -> int:
    """Return the slots of each ring: as many as were measured to be enough, or as fit."""
    given = values.config.num_kv_stages
    if given != "auto":
        return log.take("num_kv_stages", given, given, "")
    fit = most_stages(values)
    room = (
        f"shared memory ({values.arch.shared_bytes} bytes, queries take "
        f"{values.num_consumer_warpgroups * values.query_bytes}, a stage {values.stage_bytes})"
    )
    enough = tuning.num_kv_stages
    reason = (
        f"{tuning.stages_reason}; {fit} would fit {room}"
        if fit >= enough
        else f"{'two' if enough == 2 else enough} do not fit {room}"
    )
    return log.take("num_kv_stages", given, max(1, min(enough, fit)), reason)
