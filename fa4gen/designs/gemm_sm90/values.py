"""From the config and what was measured to one value for every key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.gemm_maps import SCALE_BYTES, SCALE_LINE_BYTES
from fa4gen.designs.common.gemm_scales import OperandScales
from fa4gen.designs.common.gemm_values import GemmValues
from fa4gen.designs.common.roles import WARPGROUP, RegisterSplit
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES, take_out_dtype
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.model import Choice

WGMMA_ROWS = 64
SCALED_K = 128
"""Elements along k that have one scale."""
GRID = 8
"""CTAs of a cluster that share A and B."""
GRID_ROWS = 2
"""Rows of tiles that such a cluster works on."""
STORED_ROWS = 16
"""The rows that a warp writes into a panel together: the last 8 may go past the panel's end."""
MOST_EPI_STAGES = 4
"""The schema's limit."""
WARPGROUP_ROWS = (64, 128)
"""One wgmma's rows, or two's."""
DEFAULT_REGISTERS = {
    1: RegisterSplit(56, 256),
    2: RegisterSplit(40, 232),
    3: RegisterSplit(32, 160),
}
"""By consumer warpgroups. The loaders divide to find their tiles: attention's need fewer."""
THREE_WITH_PARTS = RegisterSplit(40, 152)
"""The split for three consumer warpgroups when the loader ``loads_parts``."""

NATURAL_WARPGROUPS = {64: 1, 128: 2, 192: 3, 256: 2}
"""Consumer warpgroups of a tile, by its rows of wgmma."""


@dataclass(frozen=True)
class Values(GemmValues[HopperGemmConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    evict_first: Literal["none", "b", "both"]
    num_consumer_warpgroups: int
    ping_pong: bool
    registers: RegisterSplit

    @property
    def out_panel_columns(self) -> int:
        """Columns of C and of the output in a panel."""
        return PANEL_BYTES // self.out_element_bytes

    @property
    def last_panel_columns(self) -> int:
        """Columns of the last panel of a tile: fewer, where the others do not divide the tile."""
        return (self.BN - 1) % self.out_panel_columns + 1

    @property
    def has_last_maps(self) -> bool:
        """Whether the last panel has tensor maps of its own: it is narrower than others."""
        return self.last_panel_columns < min(self.BN, self.out_panel_columns)

    @property
    def warpgroup_rows(self) -> int:
        """Rows of the tile that one consumer warpgroup computes; columns with swapped operands."""
        rows = self.BN if self.config.swap_operands else self.BM
        return rows if self.ping_pong else rows // self.num_consumer_warpgroups

    @property
    def is_shared(self) -> bool:
        """Whether the CTAs of a cluster load parts of A or B for one another."""
        return self.cta_group > 1

    @property
    def shares_both(self) -> bool:
        """Whether they do of A and of B: their tiles are a grid of ``GRID_ROWS`` rows."""
        return self.config.share == "both" or self.cta_group == GRID

    @property
    def cluster_rows(self) -> int:
        """CTAs of a cluster whose tiles are one below the other: they share B."""
        return min(GRID_ROWS, self.cta_group) if self.shares_both else self._in_line("b")

    @property
    def cluster_columns(self) -> int:
        """CTAs of a cluster whose tiles are side by side: they share A."""
        return max(1, self.cta_group // GRID_ROWS) if self.shares_both else self._in_line("a")

    def _in_line(self, operand: Literal["a", "b"]) -> int:
        """Return how many CTAs share one operand where the other is not shared."""
        shared = "a" if self.config.swap_operands or self.config.share == "a" else "b"
        return self.cta_group if operand == shared else 1

    @property
    def b_lines(self) -> int:
        """Lines of a block of B in shared memory."""
        return self.BN if self.config.b_major == "k" else self.BK

    @property
    def shares_in_turns(self) -> bool:
        """Whether each CTA brings whole blocks: their parts would not be groups of 8 lines.

        Of A in fours, such parts were measured: 2 to 7 % faster than turns.
        """
        if self.shares_both or self.cluster_columns == 4:
            return False
        lines = self.BM if self.cluster_columns > 1 else self.b_lines
        return self.is_shared and lines % (8 * self.cta_group) != 0

    @property
    def brought_a_lines(self) -> int | None:
        """Lines of A that one CTA brings at a time; None where A is not shared."""
        if self.cluster_columns == 1:
            return None
        return self.BM // (1 if self.shares_in_turns else self.cluster_columns)

    @property
    def brought_b_lines(self) -> int:
        """Lines of B that one CTA brings at a time."""
        return self.b_lines // (1 if self.shares_in_turns else self.cluster_rows)

    @property
    def loads_parts(self) -> bool:
        """Whether the loader finds parts of both operands, or of one in blocks of two panels."""
        return self.shares_both or (self.is_shared and self.panel_columns < self.BK)

    @property
    def shared_operands(self) -> str:
        """The operands that CTAs of a cluster load for one another, if there are several."""
        if self.shares_both:
            return "A and B"
        return "A" if self.cluster_columns > 1 else "B"

    @property
    def is_split(self) -> bool:
        """Whether two CTAs divide k of a tile."""
        return self.config.split_k == 2

    @property
    def sums_bytes(self) -> int:
        """Bytes of the sums of one consumer warpgroup, in float32."""
        return 4 * WARPGROUP * self.accumulators

    @property
    def wgmma_columns(self) -> int:
        """Columns of the sums of a wgmma."""
        return self.BM if self.config.swap_operands else self.BN

    @property
    def panel_rows(self) -> int:
        """Rows of the output in a panel."""
        return self.BM if self.config.swap_operands else WGMMA_ROWS

    @property
    def panels_per_consumer(self) -> int:
        """Panels of the output that a consumer warpgroup has of a tile."""
        if self.config.swap_operands:
            return max(1, self.warpgroup_rows // self.out_panel_columns)
        return max(1, self.warpgroup_rows // WGMMA_ROWS) * -(-self.BN // self.out_panel_columns)

    @property
    def accumulators(self) -> int:
        """Registers of a consumer thread that hold its part of the tile."""
        return self.warpgroup_rows * self.wgmma_columns // 128

    @property
    def products(self) -> int:
        """Registers that hold the products of a block, before they are scaled and added."""
        return WGMMA_ROWS * self.wgmma_columns // 128 if self.operand_scales else 0

    @property
    def operand_scales(self) -> tuple[OperandScales, ...]:
        """The scales of A and of B, or none."""
        given = self.config.scales
        if given is None:
            return ()
        of_b = (SCALED_K, "any") if given.b == "128x128" else (1, given.b_major)
        return (
            OperandScales("a", given.a, given.dtype, 1, SCALED_K, given.a_major),
            OperandScales("b", given.b, given.dtype, of_b[0], SCALED_K, of_b[1]),
        )

    @property
    def scale_blocks(self) -> int:
        """Blocks along k of a stage that have scales of their own."""
        return max(1, self.BK // SCALED_K)

    def scale_bytes(self, scales: OperandScales) -> int:
        """Bytes of a stage's scales that TMA brings: a line of each row, or a line of all."""
        rows = self.BM if scales.operand == "a" else self.BN
        if scales.major == "k":
            return rows * SCALE_LINE_BYTES
        return rows * self.scale_blocks * SCALE_BYTES[scales.dtype]

    @property
    def stage_bytes(self) -> int:
        """Bytes that complete a stage."""
        loaded = sum(self.scale_bytes(row) for row in self.operand_scales if row.is_tensor_map)
        return self.a_bytes + self.b_bytes + loaded

    @property
    def ring_bytes(self) -> int:
        """Bytes of the ring of A and B."""
        return self.num_stages * (self.a_bytes + self.b_bytes)

    @property
    def output_bytes(self) -> int:
        """Bytes of the slots of the output."""
        return self.num_consumer_warpgroups * self.num_epi_stages * self.epi_bytes

    @property
    def b_bytes(self) -> int:
        """Bytes of B in a stage."""
        return self.BN * self.BK * self.element_bytes

    @property
    def epi_bytes(self) -> int:
        """Bytes of one panel of the output."""
        return -(-self.panel_rows // STORED_ROWS) * STORED_ROWS * PANEL_BYTES


def decide(
    config: HopperGemmConfig, most_stages: Callable[[Values], int]
) -> tuple[Values, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here.

    ``most_stages`` says how many slots of the ring of A and B fit shared memory with the rest.
    """
    log = ChoiceLog(config)
    take_out_dtype(config, log)
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
    values = Values(
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
        num_stages=1,
        num_epi_stages=1,
        registers=DEFAULT_REGISTERS[warpgroups],
    )
    values = replace(values, num_epi_stages=_epi_stages(values, log))
    values = replace(values, registers=_registers(values, log))
    return replace(values, num_stages=_stages(values, most_stages, log)), log.rows


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


def _epi_stages(values: Values, log: ChoiceLog) -> int:
    config = values.config
    if config.output_in_ring:
        panels = values.panels_per_consumer
        reason = "one for each panel of a tile: the ring has the room"
        if panels > MOST_EPI_STAGES:
            reason = f"the most that there are: a consumer has {panels} panels of a tile"
        default = min(panels, MOST_EPI_STAGES)
        return log.take("num_epi_stages", config.num_epi_stages, default, reason)
    if config.swap_operands:
        reason = "a consumer has one panel of a tile or two, and the ring of A and B needs the room"
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
        warpgroups = log.take("num_consumer_warpgroups", given, natural, f"BN is {config.BN}")
        log.note("BN", config.BN, "config")
        return rows, config.BN, warpgroups
    warpgroups = log.take("num_consumer_warpgroups", given, 1, "the more tiles read the weights")
    columns = WGMMA_ROWS * warpgroups
    log.note("BN", columns, "auto", "64 columns for each consumer warpgroup")
    return rows, columns, warpgroups


def _columns(config: HopperGemmConfig, warpgroup_rows: int, log: ChoiceLog) -> int:
    three = config.BM == 192 or config.num_consumer_warpgroups == 3
    wide = warpgroup_rows == WGMMA_ROWS and not three
    if config.scales is not None:
        reason = "sums and the products of a block fit the registers"
        return log.take("BN", config.BN, 64 if three else 128, reason)
    return log.take(
        "BN", config.BN, 256 if wide else 128, "the widest tile whose sums fit the registers"
    )


def _registers(values: Values, log: ChoiceLog) -> RegisterSplit:
    config, warpgroups = values.config, values.num_consumer_warpgroups
    if config.registers == "auto":
        split = DEFAULT_REGISTERS[warpgroups]
        if values.loads_parts and split.producer < THREE_WITH_PARTS.producer:
            split = THREE_WITH_PARTS
        reason = "the register file, less what the loaders need, in equal parts"
        log.note("registers", split, "auto", reason)
        return split
    split = RegisterSplit(config.registers.producer, config.registers.consumer)
    log.note("registers", split, "config")
    return split


def _stages(values: Values, most_stages: Callable[[Values], int], log: ChoiceLog) -> int:
    """Return the slots of the ring: as many as fit."""
    given = values.config.num_stages
    if given != "auto":
        return log.take("num_stages", given, given, "")
    fit = most_stages(values)
    reason = (
        f"the most that fit shared memory ({values.arch.shared_bytes} bytes, a stage "
        f"{values.stage_bytes}, the output's slots "
        f"{values.num_consumer_warpgroups * values.num_epi_stages * values.epi_bytes})"
    )
    return log.take("num_stages", given, max(1, fit), reason)
