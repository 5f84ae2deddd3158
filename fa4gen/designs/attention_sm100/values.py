"""From a Blackwell attention config to one value for every key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
from fa4gen.designs.common.blackwell_values import (
    OUT_BYTES,
    BlackwellAttentionValues,
    RoleSplit,
    take_rescale_threshold,
    take_role_registers,
)
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.values import take_keys, take_out_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.model import Choice
    from fa4gen.designs.common.values import Scheduler

KvRing = Literal["separate", "fused"]
OutputStaging = Literal["query", "own"]

TILE_ROWS = 128
"""Query rows of a query tile: lanes of tensor memory."""
KEY_STEP = 32
"""Keys come in multiples of this many: what one tcgen05.st of probabilities packs."""
PREFERRED_BLOCKS = (128, 96, 64, 32)
"""Keys of a block that the plan takes: the widest that fits."""
LISTED_BLOCKS = (64, 32)
"""Block widths with lists of the blocks that are seen: of narrower blocks, fewer keys are
masked."""
ROW_REGISTERS = 2
"""The registers of a softmax thread for the maximum and the sum of its row."""
SPLITS = {1: RoleSplit(192, 192, 120), 2: RoleSplit(200, 64, 48)}
"""By query tiles: the softmax gets what the others can spare."""
WIDE_QUERIES = RoleSplit(184, 64, 80)
"""For two query tiles of depth 256: one warp keeps the steps of all their products."""


@dataclass(frozen=True)
class Values(BlackwellAttentionValues[BlackwellAttentionConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    num_qo: int
    BN: int
    kv_ring: KvRing
    num_qk_stages: int
    num_pv_stages: int
    output_staging: OutputStaging

    @property
    def is_pair(self) -> bool:
        """Whether two CTAs work together."""
        return self.config.cta_group == 2

    @property
    def depth(self) -> int:
        """Columns of query and key."""
        return self.config.depth

    @property
    def value_depth(self) -> int:
        """Columns of value and output."""
        return self.config.resolved_value_depth

    @property
    def panel_columns(self) -> int:
        """Columns of a swizzled panel of queries and keys."""
        return panel_columns(self.depth, self.element_bytes)

    @property
    def num_panels(self) -> int:
        """Panels side by side along the depth."""
        return self.depth // self.panel_columns

    @property
    def value_panel_columns(self) -> int:
        """Columns of a swizzled panel of values; in a pair each CTA has whole panels."""
        return panel_columns(self.value_depth // self.config.cta_group, self.element_bytes)

    @property
    def out_panel_columns(self) -> int:
        """Columns of a swizzled panel of the output."""
        return panel_columns(self.value_depth, OUT_BYTES)

    @property
    def query_bytes(self) -> int:
        """Bytes of a query tile."""
        return TILE_ROWS * self.depth * self.element_bytes

    @property
    def out_bytes(self) -> int:
        """Bytes of the output of a query tile."""
        return TILE_ROWS * self.value_depth * OUT_BYTES

    @property
    def key_bytes(self) -> int:
        """Bytes of a block of keys in one CTA."""
        return self.BN * self.depth * self.element_bytes // self.config.cta_group

    @property
    def value_bytes(self) -> int:
        """Bytes of a block of values in one CTA."""
        return self.BN * self.value_depth * self.element_bytes // self.config.cta_group

    @property
    def slot_bytes(self) -> tuple[int, ...]:
        """Bytes of the slots that one stage takes: a K slot and a V slot, or a slot for either."""
        if self.kv_ring == "fused":
            return (max(self.key_bytes, self.value_bytes),)
        return self.key_bytes, self.value_bytes

    @property
    def probability_columns(self) -> int:
        """Columns of tensor memory that hold the probabilities of a block."""
        return self.BN * self.element_bytes // 4

    @property
    def pv_parts(self) -> tuple[int, ...]:
        """Keys of each part of P; of two, the first has three quarters, as far as steps allow."""
        if self.num_pv_stages == 2:
            first = max(KEY_STEP, self.BN * 3 // 4 // KEY_STEP * KEY_STEP)
            return first, self.BN - first
        return (self.BN // self.num_pv_stages,) * self.num_pv_stages

    @property
    def has_wide_queries(self) -> bool:
        """Two query tiles of depth 256: values and output are narrower."""
        return self.num_qo == 2 and self.config.depth == 256

    @property
    def num_threads(self) -> int:
        """Softmax warpgroups, one for corrections, one for the other roles."""
        return 128 * (self.num_qo + 2)


def panel_columns(depth: int, element_bytes: int) -> int:
    """Return the most columns, in a row of 128, 64 or 32 bytes, that tile ``depth``; 0 if none."""
    fitting = (row for row in (128, 64, 32) if depth * element_bytes % row == 0)
    return next(fitting, 0) // element_bytes


@dataclass(frozen=True)
class Room:
    """The room that the hardware leaves for choices: questions to values that are not final."""

    stages: Callable[[Values], int]
    """The number of stages that fit shared memory with the rest."""
    columns: Callable[[Values], int]
    """Columns of tensor memory needed."""
    is_apart: Callable[[Values], bool]
    """Whether probabilities have columns of their own, not over their scores."""


def are_parts_of(block: int, parts: int) -> bool:
    """Whether ``block`` keys can be divided into ``parts`` parts; two may differ in size."""
    steps = block // KEY_STEP
    return steps >= 2 if parts == 2 else steps % parts == 0


def preferred_blocks(config: BlackwellAttentionConfig) -> tuple[int, ...]:
    """Return the keys of a block, in the order in which they are tried."""
    return LISTED_BLOCKS if config.lists_blocks else PREFERRED_BLOCKS


def fma_share(config: BlackwellAttentionConfig) -> tuple[float, str]:
    """Return the share of exponentials that the FMA pipe computes by default, and why."""
    if config.arch == "sm_103a":
        return 0.0, "ex2 is twice as fast as on sm_100a"
    if config.dtype == "fp8_e4m3":
        return 0.25, "fp8 products leave less time for exponentials"
    return 0.125, "ex2 is as slow as the products"


def decide(config: BlackwellAttentionConfig, room: Room) -> tuple[Values, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    log.take("value_depth", config.value_depth, config.depth, "as depth")
    take_out_dtype(config, log)
    draft = Values(
        config=config,
        num_qo=2,
        BN=PREFERRED_BLOCKS[-1],
        kv_ring="separate",
        num_kv_stages=1,
        num_qk_stages=1,
        num_pv_stages=1,
        output_staging="own",
        scheduler="dynamic",
        rescale_threshold=8.0,
        exp2_fma_share=0.0,
        registers=SPLITS[2],
    )
    draft = _tiles(draft, room, log)
    draft = _staging(draft, room, log)
    draft = _rings(draft, room, log)
    draft = replace(
        draft,
        num_pv_stages=log.take(
            "num_pv_stages",
            config.num_pv_stages,
            _pv_stages(draft),
            "P.V starts when three quarters of P are there"
            if draft.BN > KEY_STEP
            else "the block is one step of keys",
        ),
        scheduler=_scheduler(draft, log),
        rescale_threshold=take_rescale_threshold(config, log),
        exp2_fma_share=log.take("exp2_fma_share", config.exp2_fma_share, *fma_share(config)),
    )
    draft = replace(draft, registers=_registers(draft, log))
    return draft, log.rows


def _tiles(draft: Values, room: Room, log: ChoiceLog) -> Values:
    """Decide BM and BN: two query tiles where tensor memory holds them, then the widest block."""
    config = draft.config
    columns = draft.arch.tensor_memory_columns
    fits_two = room.columns(draft) <= columns
    bm = log.take(
        "BM",
        config.BM,
        2 * TILE_ROWS if fits_two else TILE_ROWS,
        "two query tiles: each hides the softmax of the other"
        if fits_two
        else f"two query tiles with outputs of {draft.value_depth} columns need more than "
        f"{columns} columns of tensor memory",
    )
    draft = replace(draft, num_qo=max(1, bm // TILE_ROWS))

    softmax = _split(draft).softmax
    asked = config.output_staging
    staging = _smallest_staging(draft) if asked == "auto" else asked

    def works(block: int) -> bool:
        tried = replace(draft, BN=block, output_staging=staging)
        # One tile keeps the MMAs going only if Q.K need not wait for the P.V that reads P.
        apart = draft.num_qo == 2 or room.is_apart(tried)
        deep = room.stages(_in_ring(tried, "separate")) >= 2
        deep = deep or room.stages(_in_ring(tried, "fused")) >= 3
        in_registers = block + ROW_REGISTERS <= softmax
        return apart and deep and in_registers and room.columns(tried) <= columns

    def suits(block: int) -> bool:
        """Whether the stages and parts that the config asks for go with the block."""
        tried = replace(draft, BN=block, output_staging=staging)
        stages, parts = config.num_kv_stages, config.num_pv_stages
        fit = room.stages(_in_ring(tried, _ring(tried, room)[0]))
        return (stages == "auto" or stages <= fit) and (
            parts == "auto" or are_parts_of(block, parts)
        )

    fitting = [block for block in preferred_blocks(config) if works(block)] or [KEY_STEP]
    block = next(filter(suits, fitting), fitting[0])
    reason = "the widest block whose scores fit tensor memory, and whose stages shared memory"
    if block == PREFERRED_BLOCKS[0]:
        reason = "a thread keeps the scores of a row in registers"
    return replace(draft, BN=log.take("BN", config.BN, block, reason))


def _smallest_staging(draft: Values) -> OutputStaging:
    return "query" if draft.out_bytes <= draft.query_bytes else "own"


def _staging(draft: Values, room: Room, log: ChoiceLog) -> Values:
    smallest = _smallest_staging(draft)
    own = replace(draft, output_staging="own")
    asked = draft.config.num_kv_stages
    if asked == "auto":
        enough, fit = 2, room.stages(_in_ring(own, "separate"))
    else:
        enough, fit = asked, room.stages(_in_ring(own, _ring(own, room)[0]))
    staging: OutputStaging
    if smallest == "own":
        staging, reason = "own", "the output is wider than the query's slot"
    elif fit >= enough:
        staging, reason = "own", "the next queries load while the output is stored"
    else:
        staging, reason = "query", "a slot of its own would leave less than two stages"
        if asked != "auto":
            reason = f"a slot of its own would leave less than {enough} stages"
    return replace(
        draft,
        output_staging=log.take("output_staging", draft.config.output_staging, staging, reason),
    )


def _rings(draft: Values, room: Room, log: ChoiceLog) -> Values:
    """Decide on one ring or two, their parts and their stages: whichever ring has more slots."""
    config = draft.config
    ring, reason = _ring(draft, room)
    log.take("kv_ring", config.kv_ring, ring, reason)
    draft = replace(draft, kv_ring=ring)
    in_ring = _in_ring(draft, draft.kv_ring)
    fit = room.stages(in_ring)
    stages = log.take(
        "num_kv_stages",
        config.num_kv_stages,
        max(1, fit),
        f"{fit} fit the {draft.arch.shared_bytes} bytes of shared memory",
    )
    parts = log.take(
        "num_qk_stages",
        config.num_qk_stages,
        in_ring.num_qk_stages,
        "slots of a fused ring arrive whole"
        if draft.kv_ring == "fused"
        else "one for each swizzled panel of the depth",
    )
    return replace(draft, num_kv_stages=stages, num_qk_stages=parts)


def _ring(draft: Values, room: Room) -> tuple[KvRing, str]:
    config = draft.config
    if config.kv_ring != "auto":
        return config.kv_ring, ""
    if config.num_qk_stages not in ("auto", 1):
        return "separate", "parts of K have a ring of their own"
    if config.num_kv_stages == 1:
        return "separate", "a ring for both needs two slots"
    slots = 2 * room.stages(_in_ring(draft, "separate")), room.stages(_in_ring(draft, "fused"))
    return (
        "fused" if slots[1] > max(slots[0], 1) else "separate",
        f"{slots[1]} slots fit in one ring, {slots[0]} in two",
    )


def _in_ring(draft: Values, ring: KvRing) -> Values:
    """Return the draft with a ring and all parts, whose barriers may take the room of a slot."""
    config = draft.config
    parts = 1 if ring == "fused" else draft.num_panels
    return replace(
        draft,
        kv_ring=ring,
        num_qk_stages=parts if config.num_qk_stages == "auto" else config.num_qk_stages,
        num_pv_stages=_pv_stages(draft) if config.num_pv_stages == "auto" else config.num_pv_stages,
    )


def _pv_stages(draft: Values) -> int:
    return 2 if draft.BN > KEY_STEP else 1


def _scheduler(draft: Values, log: ChoiceLog) -> Scheduler:
    config = draft.config
    default: Scheduler = "dynamic"
    reason = "tiles go to whichever CTA is free"
    if draft.is_pair and config.has_tile_lengths:
        reason = "sequences differ: tiles go to whichever pair is free"
    elif draft.is_pair:
        default, reason = "static", "pairs of CTAs take tiles in a fixed round"
    return log.take("scheduler", config.scheduler, default, reason)


def _split(draft: Values) -> RoleSplit:
    """Return the registers of the roles."""
    given = draft.config.registers
    if given != "auto":
        return RoleSplit(given.softmax, given.correction, given.other)
    return WIDE_QUERIES if draft.has_wide_queries else SPLITS[draft.num_qo]


def _registers(draft: Values, log: ChoiceLog) -> RoleSplit:
    reason = "the softmax, which keeps a row of scores, gets what the others can spare"
    return take_role_registers(draft.config, _split(draft), reason, log)
