"""From a Blackwell attention config to its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.candidates import (
    PREFERRED_BLOCKS,
    fma_share,
    preferred_blocks,
)
from fa4gen.designs.attention_sm100.limits import ROW_REGISTERS, exceeded_limits
from fa4gen.designs.attention_sm100.memory import KEY_STEP, TILE_ROWS, are_parts_of
from fa4gen.designs.attention_sm100.model import FA4Config
from fa4gen.designs.attention_sm100.rules import broken_rules
from fa4gen.designs.common.attention_config import RoleRegisters
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.fitting import most_stages, with_stages
from fa4gen.designs.common.values import (
    MAX_KV_STAGES,
    take_keys,
    take_out_dtype,
    take_rescale_threshold,
)

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.attention_sm100.memory import KvRing, OutputStaging
    from fa4gen.designs.common.refusal import Refusal
    from fa4gen.designs.common.values import Scheduler

SPLITS = {
    1: RoleRegisters(softmax=192, correction=192, other=120),
    2: RoleRegisters(softmax=200, correction=64, other=48),
}
"""By query tiles: the softmax gets what the others can spare."""
WIDE_QUERIES = RoleRegisters(softmax=184, correction=64, other=80)
"""For two query tiles of depth 256: one warp keeps the steps of all their products."""


def decide(config: BlackwellAttentionConfig) -> FA4Config:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    log.take("value_depth", config.value_depth, config.depth, "as depth")
    take_out_dtype(config, log)
    draft = FA4Config(
        config=config,
        cta_group=config.cta_group,
        num_qo=2,
        BN=PREFERRED_BLOCKS[-1],
        kv_ring="separate",
        num_qk_stages=1,
        num_pv_stages=1,
        output_staging="own",
        scheduler="dynamic",
        rescale_threshold=8.0,
        exp2_fma_share=0.0,
        registers=SPLITS[2],
    )
    draft = _tiles(draft, log)
    draft = _staging(draft, log)
    draft = _rings(draft, log)
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
    reason = "the softmax, which keeps a row of scores, gets what the others can spare"
    registers = log.take("registers", config.registers, _split(draft), reason)
    return replace(draft, registers=registers, choices=log.rows)


def find_faults(plan: FA4Config) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return [*broken_rules(plan), *exceeded_limits(plan)]


def _most_stages(draft: FA4Config) -> int:
    """Return how many stages fit shared memory: 0 to 32; a fused ring needs two at least."""
    return most_stages(draft, MAX_KV_STAGES)


def _tiles(draft: FA4Config, log: ChoiceLog) -> FA4Config:
    """Decide BM and BN: two query tiles where tensor memory holds them, then the widest block."""
    config = draft.config
    columns = draft.hardware.tensor_memory_columns
    fits_two = draft.columns_needed <= columns
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
        apart = draft.num_qo == 2 or tried.has_columns_for_probabilities
        deep = _most_stages(_in_ring(tried, "separate")) >= 2
        deep = deep or _most_stages(_in_ring(tried, "fused")) >= 3
        in_registers = block + ROW_REGISTERS <= softmax
        return apart and deep and in_registers and tried.columns_needed <= columns

    def suits(block: int) -> bool:
        """Whether the stages and parts that the config asks for go with the block."""
        tried = replace(draft, BN=block, output_staging=staging)
        stages, parts = config.num_kv_stages, config.num_pv_stages
        fit = _most_stages(_in_ring(tried, _ring(tried)[0]))
        return (stages == "auto" or stages <= fit) and (
            parts == "auto" or are_parts_of(block, parts)
        )

    fitting = [block for block in preferred_blocks(config) if works(block)] or [KEY_STEP]
    block = next(filter(suits, fitting), fitting[0])
    reason = "the widest block whose scores fit tensor memory, and whose stages shared memory"
    if block == PREFERRED_BLOCKS[0]:
        reason = "a thread keeps the scores of a row in registers"
    return replace(draft, BN=log.take("BN", config.BN, block, reason))


def _smallest_staging(draft: FA4Config) -> OutputStaging:
    return "query" if draft.out_bytes <= draft.query_bytes else "own"


def _staging(draft: FA4Config, log: ChoiceLog) -> FA4Config:
    smallest = _smallest_staging(draft)
    own = replace(draft, output_staging="own")
    asked = draft.config.num_kv_stages
    if asked == "auto":
        enough, fit = 2, _most_stages(_in_ring(own, "separate"))
    else:
        enough, fit = asked, _most_stages(_in_ring(own, _ring(own)[0]))
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


def _rings(draft: FA4Config, log: ChoiceLog) -> FA4Config:
    """Decide on one ring or two, their parts and their stages: whichever ring has more slots."""
    config = draft.config
    ring, reason = _ring(draft)
    log.take("kv_ring", config.kv_ring, ring, reason)
    draft = replace(draft, kv_ring=ring)
    in_ring = _in_ring(draft, draft.kv_ring)
    fit = _most_stages(in_ring)
    reason = f"{fit} fit the {draft.hardware.shared_bytes} bytes of shared memory"
    draft = with_stages(draft, fit, reason, log)
    parts = log.take(
        "num_qk_stages",
        config.num_qk_stages,
        in_ring.num_qk_stages,
        "slots of a fused ring arrive whole"
        if draft.kv_ring == "fused"
        else "one for each swizzled panel of the depth",
    )
    return replace(draft, num_qk_stages=parts)


def _ring(draft: FA4Config) -> tuple[KvRing, str]:
    config = draft.config
    if config.kv_ring != "auto":
        return config.kv_ring, ""
    if config.num_qk_stages not in ("auto", 1):
        return "separate", "parts of K have a ring of their own"
    if config.num_kv_stages == 1:
        return "separate", "a ring for both needs two slots"
    slots = 2 * _most_stages(_in_ring(draft, "separate")), _most_stages(_in_ring(draft, "fused"))
    return (
        "fused" if slots[1] > max(slots[0], 1) else "separate",
        f"{slots[1]} slots fit in one ring, {slots[0]} in two",
    )


def _in_ring(draft: FA4Config, ring: KvRing) -> FA4Config:
    """Return the draft with a ring and all parts, whose barriers may take the room of a slot."""
    config = draft.config
    parts = 1 if ring == "fused" else draft.num_panels
    return replace(
        draft,
        kv_ring=ring,
        num_qk_stages=parts if config.num_qk_stages == "auto" else config.num_qk_stages,
        num_pv_stages=_pv_stages(draft) if config.num_pv_stages == "auto" else config.num_pv_stages,
    )


def _pv_stages(draft: FA4Config) -> int:
    return 2 if draft.BN > KEY_STEP else 1


def _scheduler(draft: FA4Config, log: ChoiceLog) -> Scheduler:
    config = draft.config
    default: Scheduler = "dynamic"
    reason = "tiles go to whichever CTA is free"
    if draft.is_pair and config.has_tile_lengths:
        reason = "sequences differ: tiles go to whichever pair is free"
    elif draft.is_pair:
        default, reason = "static", "pairs of CTAs take tiles in a fixed round"
    return log.take("scheduler", config.scheduler, default, reason)


def _split(draft: FA4Config) -> RoleRegisters:
    """Return the registers of the roles."""
    given = draft.config.registers
    default = WIDE_QUERIES if draft.has_wide_queries else SPLITS[draft.num_qo]
    return default if given == "auto" else given
