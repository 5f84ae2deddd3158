"""Sizes of types, and decisions that several designs make alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import AttentionKeys, BlackwellKeys, OutputKeys
    from fa4gen.designs.common.choices import ChoiceLog
    from fa4gen.designs.common.gemm_config import GemmKeys

Scheduler = Literal["static", "dynamic"]

ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp4_e2m1": 1, "fp32": 4} | {
    "ue8m0": 1,
}
"""Bytes of an element, or of those that share a byte."""
SHARED_BYTE = {"fp4_e2m1": 2}
"""Elements of a type that share a byte, where they do."""
PANEL_BYTES = 128
"""The widest row of a swizzled panel; 64 and 32 bytes are possible too."""
MMA_K_BYTES = 32
"""Elements along the reduced extent of one matrix instruction, in bytes."""
E4M3_LARGEST_LOG2 = math.log2(448)
"""The range of probabilities of 8 bits, in powers of two."""
MAX_KV_STAGES = 32
"""The most that a config of Blackwell may ask for."""
SMALLEST_FLOAT32 = 2.0**-126
"""The smallest normal number."""


def as_float32_constant(number: float) -> float:
    """Return 0 for a positive ``number`` too small for the constant of the kernel that holds it."""
    return number if number >= SMALLEST_FLOAT32 else 0.0


def probability_shift(element_bytes: int, rescale_threshold: float) -> int:
    """Return the power of two by which probabilities are scaled before they are rounded.

    For 8 bits: what fits them, with a maximum that lags by the threshold, into their range.
    """
    return math.floor(E4M3_LARGEST_LOG2 - rescale_threshold) if element_bytes == 1 else 0


def take_keys(config: AttentionKeys, log: ChoiceLog) -> None:
    """Record where keys and values are."""
    log.take("keys", config.keys, config.batching, "as batching")


def take_out_dtype(config: OutputKeys | GemmKeys, log: ChoiceLog) -> None:
    """Record the element type of the output."""
    resolved = config.resolved_out_dtype
    narrow = config.dtype.partition("_")[0]
    reason = "as dtype" if resolved == config.dtype else f"{narrow} inputs have a 16-bit output"
    log.take("out_dtype", config.out_dtype, resolved, reason)


def take_gemm_output(config: GemmKeys, log: ChoiceLog) -> None:
    """Record the element type of a product's output, which may be quantised."""
    if config.resolved_output_scales is None:
        take_out_dtype(config, log)
    else:
        reason = f"output_scales: {config.output_scales}"
        log.note("out_dtype", config.resolved_out_dtype, "derived", reason)


def take_rescale_threshold(config: BlackwellKeys, log: ChoiceLog) -> float:
    """Decide by how much a maximum may grow before the output is rescaled."""
    fp8 = config.dtype == "fp8_e4m3"
    reason = "fp8 has no range to spare" if fp8 else (
        "probabilities up to 2^8 are exact enough in 16 bits"
    )  # fmt: skip
    given = config.rescale_threshold
    default = 0.0 if fp8 else 8.0
    return as_float32_constant(log.take("rescale_threshold", given, default, reason))
