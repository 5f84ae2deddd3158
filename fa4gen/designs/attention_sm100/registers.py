"""The registers that a softmax thread needs, as measured with ptxas 13."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.schema import BlackwellAttentionConfig

PREFERRED_BLOCKS = (128, 96, 64, 32)
FEW = 0.25
"""Share of exponentials on the FMA pipe that costs no registers."""
MOST = 0.75
"""Share beyond which ptxas spills beside 96 scores of 16-bit types."""
MANY_BESIDE_TILES = 80
"""Registers of shares beyond ``FEW`` with two query tiles and blocks of 128 keys: 72 spill.

But not of fp8 with a mask, of which 13 of 13 compiled clean with fewer.
"""
USUAL_REGISTERS = 184
"""The fewest that the plan gives the softmax."""
SPARE = 8
"""Left free of fewer, for ptxas's assignment is not monotonic: of random splits at the limit one in
eight spilled a few registers. Twice beside a score that is an expression."""
EXACT = 0.125
"""Share that fits beside conditions and terms: with 0.25, 128 scores and two query tiles half of
those tried spilled."""
LOOKED_UP = 80
"""Where lists say which blocks are tested, elements on the way: 96 scores spill, 64 do not."""
OF_EACH_KEY = 16
"""Where a tensor is read for each key, or a condition is asked of it: a few of either ahead."""
OF_DISTANCES = 112
"""Beside a distance without its sign, one of three conditions of which one divides: more than 64
scores spilled by 100 to 850 bytes."""
LEAST_WORKING = 32
"""Maximum, sum, scale, addresses and counters of a softmax thread, and what is under way."""
LEAST_BESIDE_TILES = 48
"""The same with two query tiles beside 64 scores: with 40 some spill."""


def softmax_registers(
    config: BlackwellAttentionConfig, share: float, block: int, tiles: int
) -> int:
    """Return what a softmax thread needs beside the scores of a row."""
    needed = _softmax_registers(config, share, block, tiles)
    if config.registers != "auto" and config.registers.softmax < USUAL_REGISTERS:
        needed += SPARE * (1 + config.resolved_score.IS_EXPRESSION)
    return needed + LOOKED_UP * config.lists_blocks


def _softmax_registers(
    config: BlackwellAttentionConfig, share: float, block: int, tiles: int
) -> int:
    """Return it without lists of blocks.

    Measured with random configs: with fewer, ptxas 13 spills. ``share``: of the exponentials that
    the FMA pipe computes, whose polynomials keep more numbers under way. ``block``: keys of a row.
    ``tiles``: query tiles of a CTA; of two, whose code is one function, more is kept.
    """
    # where a tile's sequence begins, its rows and its keys are not in the launch's parameters
    if block > PREFERRED_BLOCKS[-1] and _tests_distances(config):
        return OF_DISTANCES
    lengths = 8 * config.has_tile_lengths
    # a few loads of a declared tensor and their addresses, and what is asked of each key
    mask, tested = config.resolved_mask, _is_tested(config)
    lengths += OF_EACH_KEY * config.resolved_score.reads_by_key
    lengths += OF_EACH_KEY * (tested or mask.reads_by_key)
    lengths += 8 * config.resolved_score.reads_by_row  # the element, and its address meanwhile
    # terms of the row, and both ends of what it sees
    lengths += 8 * (config.resolved_score.bends_by_key and config.resolved_mask.FIRST is not None)
    # terms of each key, beside the widest and the narrowest rows
    bent = config.resolved_score.bends_by_key
    lengths += 8 * (bent and not PREFERRED_BLOCKS[-1] < block <= PREFERRED_BLOCKS[0])
    # three panels of K beside as many scores as 128 registers have room for
    lengths += 8 * (config.depth == PREFERRED_BLOCKS[1] >= block)
    if share and config.dtype == "fp8_e4m3" and block >= PREFERRED_BLOCKS[0]:
        is_windowed = config.resolved_mask.FIRST is not None
        score = config.resolved_score
        if is_windowed and (score.bends_by_key or score.reads_by_row):
            return MANY_BESIDE_TILES  # 128 scores of fp8 spilled, 96 did not
    # terms beside a condition that is asked of each key
    terms = config.resolved_score.bends_by_key or config.resolved_score.reads_by_row
    lengths += 2 * OF_EACH_KEY * (tiles == 1 and tested and terms)
    if block > PREFERRED_BLOCKS[0] and share > few_beside_wide_blocks(config):
        return LEAST_WORKING + int(56 * share) + 2 * max(lengths, 8)
    if (
        config.reads_by_key
        and config.resolved_score.IS_EXPRESSION
        and tiles == 2
        and block >= PREFERRED_BLOCKS[0]
    ):
        return MANY_BESIDE_TILES
    if tiles == 1 and config.dtype == "fp8_e4m3" and block >= PREFERRED_BLOCKS[0]:
        mask = config.resolved_mask
        if mask.TEST is not None and mask.floor_functions:
            return MANY_BESIDE_TILES
    narrower = config.resolved_value_depth < config.depth  # more panels of K than of V
    if narrower and mask.reads_by_key and tiles == 2 and block >= PREFERRED_BLOCKS[0]:
        return MANY_BESIDE_TILES
    shallow = config.depth == PREFERRED_BLOCKS[2] and config.dtype != "fp8_e4m3"
    if shallow and share > EXACT and tiles == 2 and block >= PREFERRED_BLOCKS[0]:
        return MANY_BESIDE_TILES
    crowded = is_crowded(config) or computes_in_fp8(config) if tiles == 2 else _is_deep(config)
    if share > EXACT and crowded and block >= PREFERRED_BLOCKS[0]:
        return MANY_BESIDE_TILES
    if _tests_every_key(config) and tiles == 2 and block >= PREFERRED_BLOCKS[1]:
        loaded = LEAST_WORKING * config.resolved_score.reads_by_key
        return MANY_BESIDE_TILES + PREFERRED_BLOCKS[0] - block + loaded
    if share <= FEW:
        crowded = tiles == 2 and block == 64 and not config.lists_blocks
        least = LEAST_BESIDE_TILES if crowded else LEAST_WORKING
        return least + lengths * (2 if block > PREFERRED_BLOCKS[0] else 1)
    ends = (config.resolved_mask.FIRST, config.resolved_mask.LAST)
    functions = sum(end is not None for end in ends) + bool(config.resolved_score.words) + tested
    is_masked_fp8 = config.dtype == "fp8_e4m3" and any(end is not None for end in ends)
    if tiles == 2 and block >= PREFERRED_BLOCKS[0] and not is_masked_fp8:
        return MANY_BESIDE_TILES
    if tiles == 2 and block >= PREFERRED_BLOCKS[1] and share > MOST and config.dtype != "fp8_e4m3":
        return MANY_BESIDE_TILES + PREFERRED_BLOCKS[0] - PREFERRED_BLOCKS[1]
    return 24 + int(56 * share) + 6 * functions + lengths


def is_crowded(config: BlackwellAttentionConfig) -> bool:
    """Whether conditions, terms or ends leave two query tiles no registers for more than EXACT."""
    mask = config.resolved_mask
    written = mask.IS_EXPRESSION or config.resolved_score.IS_EXPRESSION
    paged_pair = config.cta_group == 2 and config.page_size is not None
    if config.resolved_value_depth < config.depth == 256:  # products take 16 of its registers
        written |= mask.FIRST is not None or mask.LAST is not None
    return written and (config.dtype != "fp8_e4m3" or config.depth == 256 or paged_pair)


def computes_in_fp8(config: BlackwellAttentionConfig) -> bool:
    """Whether a condition divides or asks how far a key is, beside fp8 scores and lse.

    With 128 scores, two query tiles and 0.25 of the exponentials on the FMA pipe one in six spilled
    8 bytes, with 0.125 none of 70; ragged sequences, whose rows are clipped, did not.
    """
    if config.dtype != "fp8_e4m3" or not config.lse or config.batching == "ragged":
        return False
    mask = config.resolved_mask
    return _is_tested(config) and (bool(mask.floor_functions) or "abs(" in (mask.TEST or ""))


def _is_deep(config: BlackwellAttentionConfig) -> bool:
    """Whether four panels of K leave one query tile no registers for a share above EXACT."""
    return config.depth == 256 and config.dtype != "fp8_e4m3"


def _is_tested(config: BlackwellAttentionConfig) -> bool:
    """Whether a condition is asked of each key, not of those that lists name."""
    return config.resolved_mask.TEST is not None and not config.lists_blocks


def _tests_distances(config: BlackwellAttentionConfig) -> bool:
    """Whether a distance without its sign is one of three conditions, of which one divides."""
    test = config.resolved_mask.TEST or ""
    divides = bool(config.resolved_mask.floor_functions)
    return _is_tested(config) and divides and "abs(" in test and test.count("||") > 1


def _tests_every_key(config: BlackwellAttentionConfig) -> bool:
    """Whether a condition is asked of each key, and terms are computed for it, too."""
    mask, score = config.resolved_mask, config.resolved_score
    if not _is_tested(config):
        return False
    return score.reads_by_key or (mask.LAST is None is mask.FIRST and score.bends_by_key)


def few_beside_wide_blocks(config: BlackwellAttentionConfig) -> float:
    """Return the share of exponentials on the FMA pipe that fits beside more than 128 scores."""
    return 0.125 if config.dtype == "fp8_e4m3" else 0.0
