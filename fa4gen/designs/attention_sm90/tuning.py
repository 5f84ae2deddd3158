"""The fastest choices on an H200, as measured, for each depth and kind of mask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.kernel_config import RegisterBudget

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.config import HopperAttentionConfig


@dataclass(frozen=True)
class Tuning:
    """Values that ``auto`` takes where the rest of the config leaves room for them."""

    num_consumer_warpgroups: int
    BN: int
    num_pv_chunks_in_flight: int
    overlap_epilogue: bool
    block_reason: str
    stages: int = 2
    stages_reason: str = "two were measured to be as fast as more"
    narrows_first: bool = False
    """Whether a narrower block is tried before consumers give registers to the loader."""


LARGER_LOADERS = {
    2: RegisterBudget(producer=40, consumer=232),
    3: RegisterBudget(producer=56, consumer=152),
}
"""By consumer warpgroups, for a loader that does more than claim tiles and count blocks."""

PAGE_SCALES_LOADER = RegisterBudget(producer=56, consumer=224)
"""For a loader that reads the scales of pages: with 40 registers it spills in ragged batches."""
OF_PAGE_SCALES = (
    "two warpgroups: with three, and scales of pages, a block of 128 keys spills at depth 128"
)
FITS_REGISTERS = "the widest block whose scores and output fit the registers of three warpgroups"
FITS_SHARED = "the widest block whose two stages fit shared memory"

DENSE = {
    64: Tuning(3, 128, 2, False, FITS_REGISTERS),
    96: Tuning(3, 128, 2, False, FITS_REGISTERS, narrows_first=True),
    128: Tuning(3, 96, 3, True, FITS_REGISTERS),
    192: Tuning(2, 112, 3, False, FITS_SHARED),
    256: Tuning(2, 80, 4, False, FITS_SHARED),
}
CAUSAL = {
    **DENSE,
    128: Tuning(3, 96, 3, False, FITS_REGISTERS),
    192: Tuning(2, 112, 4, True, FITS_SHARED),
    256: Tuning(2, 80, 3, True, FITS_SHARED),
}
"""For masks in which warpgroups drop the blocks right of the diagonal that they do not see."""
WINDOW = {**CAUSAL, 256: Tuning(2, 80, 2, False, FITS_SHARED)}
"""Both ends of a window are masked: at depth 256 that leaves no registers for a second tile."""
CAUSAL_ALIBI = {**CAUSAL, 96: replace(CAUSAL[96], num_pv_chunks_in_flight=1)}
"""At depth 96 two chunks in flight are 5 % slower than one (8192 rows, H200, nvrtc 13.0)."""
NARROW_SPAN = 512
NARROW_BLOCK = 64
"""The block where a row sees few keys: wider ones are mostly outside the window. Measured with
windows of 128 and 256 keys, up to 24 % faster; with 512 keys as fast at depth 64 and 6 % faster at
128; with 1024 keys slower."""
FP8 = {
    64: Tuning(3, 128, 1, False, FITS_REGISTERS),
    96: Tuning(3, 128, 1, False, FITS_REGISTERS),
    128: Tuning(3, 128, 1, True, FITS_REGISTERS),
    192: Tuning(2, 128, 1, False, FITS_SHARED),
    256: Tuning(2, 128, 1, False, FITS_SHARED),
}
"""Elements of 8 bits: ptxas serialises what has more P.V in flight, at depth 128."""
PROMOTED_BLOCKS = {"depth": {192: 64, 256: 32}, "keys": {192: 128, 256: 64}}
"""The widest blocks of which two stages fit shared memory with promoted sums, by value_major and
depth; for other depths those of FP8 do."""
PROMOTED_ROWS = ("auto", "depth")
"""promote_every and value_major of kernels that promote and transpose."""
PROMOTED_LATENT_BLOCK = 96
"""The keys of a block for them at depth 192 with values of 128 columns and three warpgroups: of 128
keys one stage fits."""
OF_LISTS = "the keys of the blocks that lists name"
NAMED_BLOCKS = {
    64: Tuning(3, 64, 4, True, OF_LISTS, stages=5, stages_reason="warpgroups walk lists apart"),
    128: Tuning(2, 128, 8, True, OF_LISTS),
}
"""For blocks that a call names, by their keys. Where lists are short a tile's end weighs: with 64
keys its output under the next tile's first Q.K is 8 to 12 % faster at densities from 0.1 to 1; with
128 keys a third stage, and tiles taken earlier, gain less than 1 %."""
LATENT = Tuning(3, 96, 3, False, FITS_REGISTERS)
"""Depth 192 with values of 128 columns, whatever the mask: the output of depth 128."""


def larger_loader(config: HopperAttentionConfig, warpgroups: int) -> RegisterBudget:
    """Return the registers where the producer needs more than it has by default."""
    if config.resolved_kv_scale == "page" and warpgroups == 2:
        return PAGE_SCALES_LOADER
    return LARGER_LOADERS[warpgroups]


def promoted_block(config: HopperAttentionConfig, depth: int) -> int:
    """Return the keys of the widest block with promoted sums."""
    return PROMOTED_BLOCKS[config.value_major].get(depth, FP8[depth].BN)


def tuning_of(config: HopperAttentionConfig) -> Tuning:
    """Return the measured values for the depth and mask of ``config``."""
    if config.given_blocks is not None:
        return NAMED_BLOCKS[config.given_blocks.keys]
    mask, depths = config.resolved_mask, (config.depth, config.resolved_value_depth)
    depth = max(depths)
    if config.dtype == "fp8_e4m3":
        tuning = FP8[128 if depths == (192, 128) else depth]
        if isinstance(config.promote_every, int):
            tuning = replace(tuning, BN=promoted_block(config, depth))
        if config.resolved_kv_scale == "page":
            tuning = replace(tuning, num_consumer_warpgroups=2, block_reason=OF_PAGE_SCALES)
        elif depths == (192, 128) and (config.promote_every, config.value_major) == PROMOTED_ROWS:
            tuning = replace(tuning, BN=PROMOTED_LATENT_BLOCK, block_reason=FITS_SHARED)
    elif depths == (192, 128):
        tuning = LATENT
    elif mask.has_left_end:
        tuning = WINDOW[depth]
    elif (config.mask, config.score) == ("causal", "alibi"):
        tuning = CAUSAL_ALIBI[depth]
    else:
        tuning = (DENSE if not mask.has_right_end else CAUSAL)[depth]
    if mask.span is None or mask.span > NARROW_SPAN:
        return tuning
    return replace(
        tuning,
        BN=NARROW_BLOCK,
        block_reason=f"measured: a row sees {mask.span} keys, and wide blocks are mostly outside",
        stages=4,
        stages_reason="measured: tiles of few blocks, whose loads have to run ahead",
    )
