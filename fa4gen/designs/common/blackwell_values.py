"""Values that follow directly from a config of attention with tensor memory, in both designs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fa4gen.designs.common.attention_config import BlackwellKeys, BlackwellPrefillKeys
from fa4gen.designs.common.attention_parameters import tile_list_plan
from fa4gen.designs.common.float32 import as_float32_constant
from fa4gen.designs.common.values import E4M3_LARGEST_LOG2, DesignValues, Scheduler

if TYPE_CHECKING:
    from fa4gen.designs.common.choices import ChoiceLog
    from fa4gen.designs.common.model import Fields

OUT_BYTES = 2
"""Bytes of an element of the output."""
B = TypeVar("B", bound=BlackwellPrefillKeys)


@dataclass(frozen=True)
class RoleSplit:
    """Registers per thread of a softmax warpgroup, the correction, and the other warps."""

    softmax: int
    correction: int
    other: int


@dataclass(frozen=True)
class BlackwellAttentionValues(DesignValues[B]):
    """The decisions of both designs of attention with tensor memory."""

    num_kv_stages: int
    scheduler: Scheduler
    rescale_threshold: float
    exp2_fma_share: float
    registers: RoleSplit

    @property
    def probability_shift(self) -> int:
        """Power of two that fits probabilities, with a maximum that lags, into the range of fp8."""
        if self.element_bytes == 2:
            return 0
        return math.floor(E4M3_LARGEST_LOG2 - self.rescale_threshold)

    @property
    def has_descales(self) -> bool:
        """Whether query, key and value come with scales: they do in fp8."""
        return self.config.dtype == "fp8_e4m3"


def blackwell_fields(values: BlackwellAttentionValues[Any], *, tile_rows: int) -> Fields:
    """Return fields that every plan of attention with tensor memory has alike.

    ``tile_rows``: query rows that a cluster works on at once.
    """
    return {
        "tile_list": tile_list_plan(values.config, tile_rows),
        "out_dtype": values.config.resolved_out_dtype,
        "out_element_bytes": OUT_BYTES,
        "scheduler": values.scheduler,
        "num_kv_stages": values.num_kv_stages,
        "has_descales": values.has_descales,
        "probability_shift": values.probability_shift,
        "exp2_fma_share": values.exp2_fma_share,
        "epilogue": "tma_store",
        "mixed_tile_heights": False,
        "rescale_threshold": as_float32_constant(values.rescale_threshold),
        "softmax_registers": values.registers.softmax,
        "correction_registers": values.registers.correction,
        "other_registers": values.registers.other,
    }


def take_rescale_threshold(config: BlackwellKeys, log: ChoiceLog) -> float:
    """Decide by how much a maximum may grow before the output is rescaled."""
    fp8 = config.dtype == "fp8_e4m3"
    reason = "fp8 has no range to spare" if fp8 else (
        "probabilities up to 2^8 are exact enough in 16 bits"
    )  # fmt: skip
    given = config.rescale_threshold
    return log.take("rescale_threshold", given, 0.0 if fp8 else 8.0, reason)


def take_role_registers(
    config: BlackwellPrefillKeys, default: RoleSplit, reason: str, log: ChoiceLog
) -> RoleSplit:
    """Decide on the registers of softmax, correction and other warps."""
    given = config.registers
    if given != "auto":
        split = RoleSplit(given.softmax, given.correction, given.other)
        log.note("registers", split, "config")
        return split
    log.note("registers", default, "auto", reason)
    return default
