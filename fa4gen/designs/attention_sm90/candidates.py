"""The candidates of attention on Hopper: wide blocks first, and for each those of less room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.tuning import larger_loader, tuning_of
from fa4gen.designs.common.roles import WARPGROUP_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
    from fa4gen.designs.attention_sm90.tuning import Tuning
    from fa4gen.designs.common.candidates import Changes

FEWER_WARPGROUPS = 2
FEW_KEYS = (64, 32, 16)
"""The keys of a block with fewer warpgroups: tried where nothing of the usual number compiles
clean."""


def candidates(config: HopperAttentionConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    if config.given_blocks is not None:
        yield from _of_named_blocks(tuning_of(config))
        return
    tuning = tuning_of(config)
    least = _least(config, tuning.num_consumer_warpgroups)
    step = config.chunk_keys
    for block in range(tuning.BN, step - 1, -step):
        yield {"BN": block}
        if config.dtype == "fp8_e4m3" and tuning.overlap_epilogue:
            yield {"BN": block, "overlap_epilogue": False}
            yield {"BN": block, "overlap_epilogue": False, "num_pv_chunks_in_flight": 0}
        for chunks in (tuning.num_pv_chunks_in_flight - 1, 0) if block == tuning.BN else ():
            yield {"BN": block, "num_pv_chunks_in_flight": chunks}
        if not tuning.narrows_first:
            yield {"BN": block, **least}
        elif block < tuning.BN:
            yield {"BN": block + step, **least}
    if tuning.narrows_first:
        yield {"BN": step, **least}
    for block in (tuning.BN, *(keys for keys in FEW_KEYS if keys >= step)):
        fewer: Changes = {"BM": WARPGROUP_ROWS * FEWER_WARPGROUPS, "BN": block}
        yield {**fewer, **_least(config, FEWER_WARPGROUPS)}


def _least(config: HopperAttentionConfig, warpgroups: int) -> Changes:
    """Return the settings that need the fewest registers, in consumers and loader."""
    loader = larger_loader(config, warpgroups).data()
    return {"num_pv_chunks_in_flight": 0, "overlap_epilogue": False, "registers": loader}


def _of_named_blocks(tuning: Tuning) -> Iterator[Changes]:
    """Yield less P.V in flight, then fewer warpgroups: lists decide the keys of a block."""
    chunks = tuning.num_pv_chunks_in_flight
    for warpgroups in range(tuning.num_consumer_warpgroups, 0, -1):
        for in_flight in (chunks, chunks // 2, 1, 0):
            yield {
                "BM": WARPGROUP_ROWS * warpgroups,
                "num_pv_chunks_in_flight": in_flight,
                "overlap_epilogue": tuning.overlap_epilogue and in_flight == chunks,
            }
