"""The registers that ptxas was measured to need for a consumer and a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionConfig

CHUNK_KEYS = 16
"""Keys of one wgmma of P.V."""
TWO_CHUNKS = 32
"""Keys of a block up to which nothing was seen to spill where a config gives the split."""
WIDE_BLOCK = 128
"""Keys of a block above which its softmax needs more registers, up to as deep an output."""
LOOKUPS_OF_80 = 32
"""Of a table beside 80 or 96 keys of a block: with 16 it spilled, with 64 keys none are needed."""
LOOKUP_REGISTERS = 24
"""Of a consumer that reads declared tensors score by score: addresses, and elements on the way."""
ROW_ELEMENTS = 8
"""Of a consumer whose score or mask reads an element for each row; thrice with narrow panels."""
WINDOWED_TERMS = 12
"""Of a consumer whose score is an expression, beside both ends of a window."""
BENT_TERMS = {64: 24, 96: 28}
"""The same, by depth, where more than a multiple of the key is computed for each score."""
DEEP_LISTS, THREE_PANELS = 36, 36
"""Of the widest blocks: with lists of them, more columns of keys than of values; three panels."""
ROWS_OF_CONDITIONS = 64
"""Of an element a row beside a condition, narrow panels, and more than 112 keys: these spill."""
FLOOR_TERMS = 16
"""Of both of these beside a mask that divides."""
WIDEST_BY_DISTANCE = {64: 240, 96: 224, 128: 192}
"""Keys of a block, by depth, above which both rows' exponents of a distance spilled."""
BESIDE_CONDITIONS = {
    (64, 64): (112, 24),
    (96, 96): (112, 24),
    (128, 64): (64, 64),
    (128, 128): (80, 24),
    (192, 128): (80, 24),
    (192, 192): (96, 48),
    (256, 256): (64, 48),
}
"""By depths: keys of a block above which a crowded row spilled, and registers of wider ones."""
MOST_CROWDED = {
    (96, 96): (96, 24),
    (192, 128): (48, 24),
    (192, 192): (80, 48),
    (256, 256): (48, 48),
}
"""The same where lengths of pairs are beside them, or terms."""
NO_LIMIT = (256, 0)
BESIDE_DIVIDED = {
    (64, 64): (48, 96),
    (96, 96): (48, 64),
    (192, 192): (64, 96),
    (256, 256): (32, 96),
}
"""The same where keys are divided, by 15 say: see ``Mask.divides_keys``."""
DIVIDED_OF_PAIRS = BESIDE_DIVIDED | {
    (64, 64): (0, 96),
    (96, 96): (0, 64),
    (128, 128): (48, 128),
    (192, 192): (48, 96),
}
"""The same of pairs."""
WIDEST_PLAIN, DEEP_BLOCK = 160, 80
"""Keys of a block above which each takes more than its score; the same at depth 256."""
WIDEST_OF_THREE = 240
"""Of three narrow panels, whatever else is kept."""
NARROWER_VALUES = 48
"""Of those at depth 256 with fewer columns of values; a third of it with as many, a quarter where
nothing else is kept."""
FEW_READS = 48
"""Keys of a block up to which elements of two tensors fit."""
WIDE_READS = 24
"""Of the widest where a tensor is read for each key."""
SPARE, MUCH = 8, 4
"""Left free where so many things come together."""
HEADS_AND_MORE = 16
"""Of rows of several heads, in a window by consumers in turns, or at depth 96 beside something."""
USUAL_REGISTERS = (152, 160, 232, 240, 256)
"""Of consumers whose split the plan decides."""
STRAIGHT_TERMS = 12
"""Of a score at depth 96 that is capped or a multiple of the key: three panels, and 128 keys."""
WIDE_LOOKUPS = 64
"""Of elements of every key beside lengths, with blocks of 160 keys: these spill."""
PAIR_LOOKUPS = {64: (32, 0), 96: (16, 0), 128: (16, 12), 192: (32, 28)}
"""By columns of values, of pairs whose score and mask both read elements of every key and that have
more columns of keys: keys of a block above which some spilled, and what wider ones take."""
PAIR_LOOKUPS_OF_THREE, PAIR_LOOKUPS_WIDE = 28, 64
"""The same of three warpgroups, and of blocks of more than 64 keys: these spill."""
GIVEN_READS, GIVEN_DEEP_READS = 8, 32
"""Of elements of every key beside up to 128 columns of values and more of keys, in a split that the
config gives: with as few as it has, these spilled; the second at depth 256, up to 192 registers."""
NARROW_PANELS = 24
"""Of a consumer of wide blocks: addresses of four panels of K, or of six or more narrow ones."""


def working_registers(
    config: AttentionConfig, block: int, warpgroups: int, *, overlap_epilogue: bool
) -> int:
    """Return what a consumer needs beside output, scores and probabilities in flight.

    For row state, masks, conversions and addresses. Measured: of random configs ptxas 13 compiled
    those without spills and with wgmma overlapped that leave this many registers, and of those that
    leave fewer most with spills.
    """
    depth, mask = config.resolved_value_depth, config.resolved_mask
    needed = _row_registers(depth, block)
    if depth > 128 or block > 128:
        needed += 4 * bool(config.resolved_score.words)
        needed += 4 * (mask.FIRST is not None)
        needed += overlap_epilogue * (12 if config.sinks else 8)
        needed += 8 * (
            warpgroups == 3 and depth > 128
        )  # of the launch's 128 a wide wgmma takes nearly all
    reads = config.resolved_score.reads_by_key or (
        mask.reads_by_key and not config.lists_blocks  # a bit for each key, before scores arrive
    )
    needed += (LOOKUP_REGISTERS * (1 + (depth <= 96)) + 16 * (depth > 128)) * reads
    by_key = config.resolved_score.reads_by_key
    needed += 16 * (by_key and (depth == 128 or config.has_tile_lengths))
    given = config.registers != "auto" and block > TWO_CHUNKS
    if given and by_key and depth <= 128 and depth < config.depth:
        needed += GIVEN_DEEP_READS if config.depth > 192 else GIVEN_READS
    needed += LOOKUPS_OF_80 * (by_key and 64 < block <= 96 and depth <= 128)
    if mask.reads_by_key and not config.lists_blocks and block > FEW_READS:
        needed += (32 if depth == 128 else 24) * by_key  # elements of both under way
        needed += 8 * bool(config.sinks or config.resolved_score.words)
    elif mask.reads_by_key and not config.lists_blocks:
        needed += 4 * (by_key and depth == 128)
    if by_key and mask.reads_by_key and not config.lists_blocks and config.cta_group == 2:
        needed += _pair_lookups(config, block, warpgroups)
    if config.lists_blocks:
        needed += {96: 16, 128: 4, 192: 16, 256: 8}.get(depth, 0)
        needed += 12 * (depth == 128 and not config.overlap)
        needed += 14 * (config.resolved_score.IS_EXPRESSION and depth <= 128)
        needed += DEEP_LISTS * (config.depth > 128 >= depth and block > 160)
    needed += _expression_registers(config)
    narrow = panel_columns(config) < 64
    if narrow and block > 112 and mask.IS_EXPRESSION and config.resolved_score.reads_by_row:
        needed += ROWS_OF_CONDITIONS
    if overlap_epilogue and block > WIDE_BLOCK and config.depth // panel_columns(config) > 4:
        needed += NARROW_PANELS
    if block > 224 and (config.depth == 192 or mask.reads_by_key):
        needed += THREE_PANELS
    if block > 144 and by_key and config.has_tile_lengths:
        needed += WIDE_LOOKUPS
    if config.has_tile_lengths and mask.IS_EXPRESSION and mask.FIRST is not None:
        needed += WINDOWED_TERMS
    widest, more = _widest_crowded(config)
    needed += more * (block > widest)
    needed += _of_wide_blocks(config, block)
    if config.tile_heads > 1 and warpgroups == 3:
        needed += _heads_registers(config, overlap_epilogue=overlap_epilogue)
    if config.has_tile_lengths:
        needed += _lengths_registers(config, warpgroups, overlap_epilogue=overlap_epilogue)
    return needed + _spare(config, overlap_epilogue=overlap_epilogue)


def _pair_lookups(config: AttentionConfig, block: int, warpgroups: int) -> int:
    """Return what a pair takes whose score and mask both read elements of every key: measured."""
    depth = config.resolved_value_depth
    if depth >= config.depth:
        return 0
    if block > 64:
        return PAIR_LOOKUPS_WIDE
    widest, more = PAIR_LOOKUPS.get(depth, (CHUNK_KEYS, PAIR_LOOKUPS_OF_THREE))
    if block <= widest:
        return 0
    return PAIR_LOOKUPS_OF_THREE if warpgroups == 3 else more


def _widest_crowded(config: AttentionConfig) -> tuple[int, int]:
    """Return the widest block of a row with conditions, and what wider ones take: measured.

    ptxas computes parts of conditions ahead, for many keys at a time.
    """
    mask, terms = config.resolved_mask, config.resolved_score.IS_EXPRESSION
    depths = (config.depth, config.resolved_value_depth)
    lengths, pair = config.has_tile_lengths, config.cta_group == 2
    divided = DIVIDED_OF_PAIRS if pair else BESIDE_DIVIDED
    if mask.divides_keys and depths in divided:
        return divided[depths]
    windowed = lengths and mask.FIRST is not None
    tested = mask.IS_EXPRESSION and mask.TEST is not None
    crowded = tested
    match depths:
        case (64, 64):
            crowded = mask.IS_EXPRESSION and (terms or (tested and pair))
        case (96, 96):
            crowded = mask.IS_EXPRESSION or windowed or (lengths and terms)
        case (128, 128):
            capped = mask.IS_EXPRESSION and config.softcap is not None
            crowded = capped or (terms and crowds_loader(config))
        case (192, 128):
            crowded = mask.IS_EXPRESSION or windowed
    of_pairs = pair and lengths and (windowed or mask.IS_EXPRESSION) and depths[1] <= 128
    if depths in MOST_CROWDED and (of_pairs or (tested and config.resolved_score.words)):
        alone = depths == (192, 128) and not (windowed or config.resolved_score.words)
        return (64, 24) if alone else MOST_CROWDED[depths]
    return BESIDE_CONDITIONS.get(depths, NO_LIMIT) if crowded else NO_LIMIT


def softmax_registers(config: AttentionConfig, block: int, *, overlap_epilogue: bool) -> int:
    """Return what a consumer needs beside output and scores while these become probabilities.

    However few chunks of P.V are in flight then; without overlap none is, and nothing is needed.
    Measured as ``working_registers``, on the widest blocks: dense, causal and in a window.
    """
    if not config.overlap:
        return 0
    depth, more = config.resolved_value_depth, 4
    none_in_flight = config.num_pv_chunks_in_flight == 0
    if depth < 128 and block > (WIDE_BLOCK - CHUNK_KEYS if none_in_flight else WIDE_BLOCK):
        more = 16
    elif depth == 128 and block > WIDE_BLOCK:
        more = 12 + 2 * overlap_epilogue
    if block > 208 and config.depth // panel_columns(config) == 4:
        more += NARROW_PANELS
    if config.resolved_score.IS_EXPRESSION and config.resolved_mask.ENDS_AT_QUERY:
        more += 20 * (block > WIDEST_BY_DISTANCE.get(depth, block))
    if config.resolved_mask.FIRST is not None:
        more += 4 * (depth > 128 or block > 128)
        more += 4 * (depth <= 128 and config.epilogue == "tma_store")
    more += _of_wide_blocks(config, block)
    needed = more + _row_registers(depth, block) + _expression_registers(config)
    return needed + _spare(config, overlap_epilogue=overlap_epilogue)


def _of_wide_blocks(config: AttentionConfig, block: int) -> int:
    """Return what wide blocks take beside their scores: addresses of parts of K, for one."""
    crowded = _things_together(config, overlap_epilogue=config.overlap_epilogue is True) > 0
    needed = crowded * max(0, block - WIDEST_PLAIN) * 3 // 8
    needed += WIDE_READS * (block > WIDEST_PLAIN and config.reads_by_key)
    if config.depth == 96 and block > WIDEST_OF_THREE:
        needed += NARROW_PANELS
    staged = config.epilogue == "tma_store"
    shallow = config.resolved_value_depth < config.depth
    tested_pair = config.cta_group == 2 and config.resolved_mask.TEST is not None
    at_limit = shallow and (staged or (tested_pair and config.resolved_score.reads_by_key))
    if config.depth <= 192 or block < DEEP_BLOCK or (block == DEEP_BLOCK and not at_limit):
        return needed
    if shallow:
        needed += NARROWER_VALUES if crowded else NARROWER_VALUES // 4
        return needed + NARROW_PANELS * tested_pair
    if block > DEEP_BLOCK + CHUNK_KEYS:
        return needed + NARROWER_VALUES // 3
    windowed = config.resolved_mask.FIRST is not None
    return needed + SPARE * ((config.epilogue == "tma_store") + (windowed and crowded))


def _spare(config: AttentionConfig, *, overlap_epilogue: bool) -> int:
    """Return what is left free where much comes together, for ptxas's assignment is not monotonic.

    Of random configs at the limit, one in 25 with so much spilled a few registers; with this many
    left none did. Masks by name, lengths and pages alone need none.
    """
    asked = _asked(config, overlap_epilogue=overlap_epilogue)
    written = config.resolved_score.IS_EXPRESSION or config.resolved_mask.IS_EXPRESSION
    together = _things_together(config, overlap_epilogue=overlap_epilogue) + sum(
        (
            config.resolved_mask.FIRST is not None,
            config.cta_group == 2,
            config.resolved_value_depth != config.depth,
        )
    )
    return SPARE * (together >= MUCH and (written or asked > 0))


def _things_together(config: AttentionConfig, *, overlap_epilogue: bool) -> int:
    """Return of how many things, beside a tile's sizes and a window, a consumer keeps something."""
    mask, score = config.resolved_mask, config.resolved_score
    return _asked(config, overlap_epilogue=overlap_epilogue) + sum(
        (
            *(mask.TEST is not None, mask.IS_EXPRESSION, bool(mask.tensors_read)),
            *(bool(score.words), score.bends_by_key, score.reads_by_key, score.reads_by_row),
            *(config.sinks, config.has_tile_lengths, config.resolved_keys == "paged"),
        )
    )


def _asked(config: AttentionConfig, *, overlap_epilogue: bool) -> int:
    """Return how many of these a config asks for that take registers: the plan seldom does."""
    few = config.registers != "auto" and config.registers.consumer not in USUAL_REGISTERS
    return sum((overlap_epilogue, config.epilogue == "tma_store", config.ping_pong is True, few))


def _expression_registers(config: AttentionConfig) -> int:
    """Return what a score of indices takes, and what is read of tensors row by row.

    Beside both ends of a window up to depth 128, and where it bends, its terms are computed anew.
    """
    mask, score = config.resolved_mask, config.resolved_score
    terms = 0
    if score.IS_EXPRESSION:
        shallow = config.resolved_value_depth <= 128
        windowed = WINDOWED_TERMS * (shallow and mask.FIRST is not None)
        bent = BENT_TERMS.get(config.depth, WINDOWED_TERMS) * score.bends_by_key
        terms = max(windowed, bent) if config.overlap and config.depth > 64 else windowed + bent
        beside = score.bends_by_key or score.reads_by_row
        terms += FLOOR_TERMS * bool(beside and mask.floor_functions)
    if config.depth == 96 and score.words and not (score.reads_by_row or score.reads_by_key):
        terms = max(terms, STRAIGHT_TERMS)
    of_rows = score.reads_by_row + bool(mask.tensors_read and not mask.reads_by_key)
    each = ROW_ELEMENTS * (1 if panel_columns(config) == 64 else 3)
    return terms + each * of_rows


def _row_registers(depth: int, block: int) -> int:
    return 8 + block // 8 + (depth // 8 if depth <= 128 else 16 + depth // 16)


def _heads_registers(config: AttentionConfig, *, overlap_epilogue: bool) -> int:
    """Return what rows of several heads in a tile take: of 930 random configs 7 spilled without."""
    windowed, three_panels = config.resolved_mask.FIRST is not None, config.depth == 96
    both = windowed and overlap_epilogue
    narrower = config.resolved_value_depth < config.depth
    crowded = config.ping_pong is True or (narrower and config.resolved_score.words)
    staged = three_panels and (both or config.epilogue == "tma_store")
    if staged or (windowed and crowded):
        return HEADS_AND_MORE
    few = config.registers != "auto" and three_panels
    return SPARE * (both or few or (windowed and narrower))


def _lengths_registers(config: AttentionConfig, warpgroups: int, *, overlap_epilogue: bool) -> int:
    """Return what a consumer needs besides where rows or keys differ from tile to tile."""
    depth, pair = config.resolved_value_depth, config.cta_group == 2
    both = config.batching == "ragged" and config.key_lengths
    narrow = depth == 96 or depth < config.depth  # more addresses
    needed = 8 * (narrow and crowds_loader(config) and warpgroups == 3)
    if depth > 128:
        needed += 8 * (overlap_epilogue and (pair or config.scheduler == "static"))
        needed += 16 * (overlap_epilogue and both)
    if depth > 192 and pair and config.scheduler == "dynamic" and config.resolved_key_lengths:
        needed += 24 * (config.resolved_mask.LAST is not None)
    return needed


def panel_columns(config: AttentionConfig) -> int:
    """Return the columns of a panel: see ``Values``."""
    return 64 if config.depth % 64 == 0 == config.resolved_value_depth % 64 else 32


def keeps_two_places(config: AttentionConfig) -> bool:
    """Whether a consumer that overlaps tiles has the places of two in a fixed order, of a pair.

    Measured in dense batches at depth 256; with lengths more registers are counted instead.
    """
    deep, in_order = config.resolved_value_depth > 192, config.scheduler != "dynamic"
    return deep and config.cta_group == 2 and in_order and not config.has_tile_lengths


def crowds_loader(config: AttentionConfig) -> bool:
    """Whether a loader spills with what it has in a dense kernel: measured.

    It looks up pages or lengths, and computes which tile is next, or where a window begins or a
    condition ends, or multicasts.
    """
    pair, paged = config.cta_group == 2, config.resolved_keys == "paged"
    if not config.has_tile_lengths:
        return False
    if pair:
        mask = config.resolved_mask
        windowed = mask.FIRST is not None or mask.IS_EXPRESSION
        return paged or windowed or config.scheduler == "dynamic"
    return config.scheduler == "static"
