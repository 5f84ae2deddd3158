"""What follows directly from a config with every ``auto`` decided, in several designs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from fa4gen.config.gemm import BlackwellGemmConfig, HopperGemmConfig
from fa4gen.config.schema import AttentionConfig, BlackwellAttentionConfig
from fa4gen.designs.shared.attention_parameters import tile_list_plan
from fa4gen.designs.shared.float32 import as_float32_constant
from fa4gen.designs.shared.hardware import ARCHITECTURES, Architecture

if TYPE_CHECKING:
    from fa4gen.designs.shared.choices import ChoiceLog
    from fa4gen.designs.shared.roles import RegisterSplit
    from fa4gen.epilogues import Residual

Scheduler = Literal["static", "dynamic"]
C = TypeVar(
    "C",
    bound=AttentionConfig | BlackwellAttentionConfig | HopperGemmConfig | BlackwellGemmConfig,
)
G = TypeVar("G", bound=HopperGemmConfig | BlackwellGemmConfig)

ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp8_e4m3": 1, "fp32": 4}
PANEL_BYTES = 128
"""The widest row of a swizzled panel; 64 and 32 bytes are possible too."""
MMA_K_BYTES = 32
"""Elements along the reduced extent of one matrix instruction, in bytes."""
E4M3_LARGEST_LOG2 = math.log2(448)
MAX_KV_STAGES = 32
"""The schema's limit on Blackwell."""


@dataclass(frozen=True)
class DesignValues(Generic[C]):
    """A config with every ``auto`` decided."""

    config: C

    @property
    def arch(self) -> Architecture:
        """The limits of the architecture."""
        return ARCHITECTURES[self.config.arch]

    @property
    def is_pair(self) -> bool:
        """Whether two CTAs work together."""
        return self.config.cta_group == 2

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the inputs."""
        return ELEMENT_BYTES[self.config.dtype]

    @property
    def mma_k(self) -> int:
        """Elements along the reduced extent of one matrix instruction."""
        return MMA_K_BYTES // self.element_bytes


@dataclass(frozen=True)
class RoleSplit:
    """Registers per thread of a softmax warpgroup, the correction, and the other warps."""

    softmax: int
    correction: int
    other: int


@dataclass(frozen=True)
class BlackwellAttentionValues(DesignValues[BlackwellAttentionConfig]):
    """What both designs of attention with tensor memory decide."""

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


def blackwell_fields(values: BlackwellAttentionValues, *, tile_rows: int) -> dict[str, object]:
    """Return fields that every plan of attention with tensor memory has alike.

    ``tile_rows``: query rows that a cluster works on at once.
    """
    return {
        "tile_list": tile_list_plan(values.config, tile_rows),
        "epilogue": "tma_store",
        "mixed_tile_heights": False,
        "rescale_threshold": as_float32_constant(values.rescale_threshold),
        "softmax_registers": values.registers.softmax,
        "correction_registers": values.registers.correction,
        "other_registers": values.registers.other,
    }


def hopper_attention_fields(
    values: DesignValues[AttentionConfig], registers: RegisterSplit, *, tile_rows: int
) -> dict[str, object]:
    """Return fields that every plan of attention by wgmma has alike.

    ``tile_rows``: query rows that a cluster works on at once.
    """
    config = values.config
    return {
        "tile_list": tile_list_plan(config, tile_rows),
        "out_dtype": config.dtype,
        "out_element_bytes": values.element_bytes,
        "value_depth": config.resolved_value_depth,
        "has_descales": False,
        "rescale_threshold": as_float32_constant(config.rescale_threshold),
        "producer_registers": registers.producer,
        "consumer_registers": registers.consumer,
    }


def take_keys(config: AttentionConfig | BlackwellAttentionConfig, log: ChoiceLog) -> None:
    """Record where keys and values are, and their type where it may differ from the query's."""
    log.take("keys", config.keys, config.batching, "as batching")
    if config.pack_heads:
        log.take("kv_dtype", config.kv_dtype, config.dtype, "as dtype")


def take_out_dtype(config: BlackwellAttentionConfig | G, log: ChoiceLog) -> None:
    """Record the element type of the output."""
    resolved = config.resolved_out_dtype
    reason = "as dtype" if resolved == config.dtype else "fp8 inputs have a 16-bit output"
    log.take("out_dtype", config.out_dtype, resolved, reason)


def take_rescale_threshold(config: BlackwellAttentionConfig, log: ChoiceLog) -> float:
    """Decide by how much a maximum may grow before the output is rescaled."""
    fp8 = config.dtype == "fp8_e4m3"
    reason = "fp8 has no range to spare" if fp8 else (
        "probabilities up to 2^8 are exact enough in 16 bits"
    )  # fmt: skip
    given = config.rescale_threshold
    return log.take("rescale_threshold", given, 0.0 if fp8 else 8.0, reason)


def take_role_registers(
    config: BlackwellAttentionConfig, default: RoleSplit, reason: str, log: ChoiceLog
) -> RoleSplit:
    """Decide on the registers of softmax, correction and other warps."""
    given = config.registers
    if given != "auto":
        split = RoleSplit(given.softmax, given.correction, given.other)
        log.note("registers", split, "config")
        return split
    log.note("registers", default, "auto", reason)
    return default


@dataclass(frozen=True)
class GemmValues(DesignValues[G]):
    """What both designs of a matrix product decide."""

    cta_group: int
    BM: int
    BN: int
    BK: int
    num_stages: int
    num_epi_stages: int
    """Slots for the residual; on Hopper the output passes through the same ones."""

    @property
    def is_pair(self) -> bool:
        """Whether two CTAs work together."""
        return self.cta_group == 2

    @property
    def c(self) -> Residual:
        """What C is."""
        return self.config.c

    @property
    def activation_cuda(self) -> str | None:
        """The activation as a C++ expression over ``float x``."""
        from fa4gen.config.expression import parse_expression

        text = self.config.activation
        return None if text is None else parse_expression(text).cuda()

    @property
    def out_element_bytes(self) -> int:
        """Bytes of an element of C and of the output."""
        return ELEMENT_BYTES[self.config.resolved_out_dtype]

    @property
    def panel_columns(self) -> int:
        """Elements of A and B in a row of a panel of 128 bytes."""
        return PANEL_BYTES // self.element_bytes

    @property
    def a_bytes(self) -> int:
        """Bytes of A in a slot of the ring."""
        return self.BM * self.BK * self.element_bytes
