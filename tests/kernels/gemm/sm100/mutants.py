"""Mutants of the matrix product for Blackwell, and the emulator's findings on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.kernels.gemm.emulation import Problem
from tests.kernels.source_mutation import Change, Found, line, swap

# Steps of two panels a tile, two slots in each ring: every ring wraps within a tile or two.
_SMALL: Final = {"BM": 128, "BN": 128, "num_stages": 2, "num_epi_stages": 2, "num_out_stages": 2}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "none": {"cta_group": 1, **_SMALL},
    "residual": {"cta_group": 1, "residual": "matrix", **_SMALL},
    "row": {"cta_group": 1, "residual": "row", **_SMALL},
    "pair": {"cta_group": 2, "residual": "matrix", **_SMALL},
    "narrow": {"cta_group": 1, "residual": "matrix", **_SMALL, "BN": 64, "num_stages": 4,
               "num_accum_stages": 4, "num_epi_stages": 1},
    "dynamic": {"cta_group": 1, "scheduler": "dynamic", **_SMALL},
    "pair_dynamic": {"cta_group": 2, "scheduler": "dynamic", "residual": "matrix", **_SMALL},
    "short": {"cta_group": 1, "residual": "matrix", **_SMALL, "BM": 64},
    "pair_short": {"cta_group": 2, "residual": "matrix", **_SMALL, "BM": 64},
}  # fmt: skip

TILES: Final = Problem(400, 300, 150)
"""Several tiles for each CTA, three blocks each, tails on all sides."""
SQUARES: Final = Problem(260, 260, 64, beta=1.0)


@dataclass(frozen=True)
class GemmMutant:
    """As ``source_mutation.Mutant``, with a problem instead of the name of a case."""

    config: str
    about: str
    changes: tuple[Change, ...]
    found: tuple[Found, ...]
    problem: Problem = TILES
    in_header: bool = False


NUMBERS: Final = Found("numbers", "", "")
WAIT: Final = "mbarrier_wait"
SUMS_LOST: Final = (
    Found("race", "mma", "mma", "by the warp of epilogue"),
    Found("race", "tensor_memory_load", "epilogue", "after the tcgen05.mma issued by mma"),
    Found("missing-tcgen05-wait", "mma", "mma"),
)

UPSTREAM: Final[dict[str, GemmMutant]] = {
    **{
        f"residual_row_and_column_swapped_{config}": GemmMutant(
            config, "the coordinates of C go to TMA as (row, column)",
            (Change(r"(tma_load_once_3d\(to, map), column, row,", r"\1, row, column,"),),
            (NUMBERS,), SQUARES,
        )
        for config in ("residual", "pair", "short")
    },
    **{
        f"residual_stepped_by_panels_{config}": GemmMutant(
            config, "a panel's width is taken for the distance of tiles",
            (Change(r"tile\.column \+ step \* kOutPanel(?=,\s+tile\);\n  }\n})",
                    "tile.column / kBN * kOutPanel + step * kOutPanel"),),
            (NUMBERS,), SQUARES,
        )
        for config in ("residual", "row", "pair")
    },
    "one_residual_a_tile": GemmMutant(
        "residual", "C is loaded once a tile, and the epilogue reads slot index % 2",
        (Change(r"step < kSteps; \+\+step\)(?=\n      load_residual)", "step < 1; ++step)"),
         Change(r"if \(has_residual\)(?= residual\.wait_producer)",
                "if (has_residual && out.index == 0)"),
         Change(r"if \(has_residual\)(?= \{\n      mbarrier_arrive\(residual)",
                "if (has_residual && out.index == 1)")),
        (NUMBERS, Found("uninitialised", "load_shared_chunk", "epilogue"),
         Found("race", "tma_load_once_3d", "residual"),
         Found("race", "load_shared_chunk", "epilogue")),
        SQUARES,
    ),
    "load_order_without_back_pressure": GemmMutant(
        "narrow", "the loader does not wait for the one of C, which misses a phase",
        (Change(line(r"order\.wait_consumer\(\)")),),
        (Found("over-arrival", "mbarrier_arrive", "load", "order_full["),
         Found("phase-lap", WAIT, "residual", "order_full["),
         Found("deadlock", WAIT, "residual", "order_full[")),
        Problem(600, 300, 64),
    ),
}  # fmt: skip

WAITS: Final[dict[str, GemmMutant]] = {
    "residual_not_waited_for": GemmMutant(
        "residual", "the epilogue reads C before it is there",
        (Change(line(r"if \(has_residual\) residual\.wait_producer\(\)")),),
        (Found("race", "load_shared_chunk", "epilogue", "residual["),
         Found("race", "tma_load_once_3d", "residual", "residual["),
         Found("over-arrival", "mbarrier_arrive", "epilogue", "residual_empty["),
         Found("uninitialised", "load_shared_chunk", "epilogue")),
    ),
    "residual_slot_not_waited_for": GemmMutant(
        "residual", "C is loaded over what the epilogue has yet to read",
        (Change(line(r"const auto slot = residual\.produce\(\)"),
                "\n  struct Slot { Residual& of; uint32 i, full;\n"
                "    __device__ ~Slot() { of.producer_step(); }\n"
                "    __device__ uint32 index() const { return i; }\n"
                "    __device__ uint32 mbar() const { return full; } };\n"
                "  const Slot slot{residual, residual.producer_stage(),"
                " residual.producer_mbar()};"),),
        (Found("race", "tma_load_once_3d", "residual", "residual["),
         Found("race", "load_shared_chunk", "epilogue", "residual["),
         Found("over-arrival", "mbarrier_arrive_expect_tx", "residual", "residual_full[")),
    ),
    "residual_never_freed": GemmMutant(
        "residual", "the epilogue's arrival is dropped",
        (Change(line(r"mbarrier_arrive\(residual\.consumer_mbar\(\)\)")),),
        (Found("deadlock", WAIT, "residual", "residual_empty["),),
    ),
    "sums_given_back_before_they_are_read": GemmMutant(
        "none", "the accumulator is free after the first step",
        (Change(r"if \(step \+ 1 == kSteps\) \{", "if (step == 0) {"),), SUMS_LOST,
    ),
    "sums_given_back_before_their_loads_are_complete": GemmMutant(
        "none", "the loads may still be under way",
        (Change(line(r"tensor_memory_wait_loads\(\)") + r"(?=\n  })"),),
        (Found("missing-tcgen05-wait", "mma", "mma"),
         Found("missing-tcgen05-wait", "store_shared_chunk", "epilogue"),
         Found("missing-tcgen05-wait", "pack", "epilogue"),
         Found("missing-tcgen05-wait", "output_value", "epilogue")),
    ),
    "sums_not_waited_for": GemmMutant(
        "none", "sums are overwritten while the epilogue reads them",
        (Change(r"(Stage acquire_for_mma\(\) const \{)\n    pipeline\.wait_consumer\(\);", r"\1"),),
        SUMS_LOST,
    ),
    "products_not_waited_for": GemmMutant(
        "none", "sums are read before they are complete",
        (Change(r"(Stage acquire_for_epilogue\(\) const \{)\n    pipeline\.wait_producer\(\);",
                r"\1"),),
        (Found("uninitialised", "tensor_memory_load", "epilogue"), *SUMS_LOST,
         Found("over-arrival", "mbarrier_arrive", "epilogue", "accum_empty[")),
    ),
    "input_not_waited_for": GemmMutant(
        "none", "products read a block that has not landed",
        (Change(line(r"inputs\.wait_producer\(\)")),),
        (Found("race", "mma", "mma", "reads "), Found("race", "tma_load_3d", "load")),
    ),
    "input_overwritten": GemmMutant(
        "none", "a block is loaded over one that products read",
        (Change(line(r"inputs\.wait_consumer\(\)") + r"(?=\n      const uint32 slot)"),),
        (Found("race", "tma_load_3d", "load"), Found("race", "mma", "mma"),
         Found("over-arrival", "mbarrier_arrive_expect_tx", "load", "input_full[")),
    ),
    "input_freed_before_its_products": GemmMutant(
        "none", "the slot is committed before the products that read it",
        (swap(r"#pragma unroll\n      for \(int32 k = 0[^;]*;[^;]*;[^;]*;\n",
               r"(?:      //[^\n]*\n)?      mma_commit<kCtaGroup>\(inputs[^\n]*\n"),),
        (Found("race", "tma_load_3d", "load"), Found("race", "mma", "mma")),
    ),
    "half_of_the_bytes_expected": GemmMutant(
        "none", "the loader expects A alone",
        (Change(r"kABytes \+ kBBytes\);", "kABytes);"),),
        (Found("race", "mma", "mma", "reads "), Found("deadlock", WAIT, "mma", "input_full["),
         Found("over-arrival", "tma_load_3d", "load")),
    ),
    "slot_overwritten_while_stored": GemmMutant(
        "none", "the output's slot is written again while the store reads it",
        (Change(r"\n    if \(threadIdx\.x == 0\) tma_store_wait_read[^\n]*"),),
        (Found("race", "store_shared_chunk", "epilogue", "is not ordered after the tensor store"),),
    ),
    "slot_waited_for_by_one_thread": GemmMutant(
        "none", "the others do not wait for the one that has seen the store read the slot",
        (Change(r"(__syncwarp\(\);)" + line(r"named_barrier_sync\(kEpilogueBarrier, 128\)"),
                r"\1"),),
        (Found("race", "store_shared_chunk", "epilogue", "is not ordered after the tensor store"),),
    ),
    "stored_before_all_have_written": GemmMutant(
        "none", "one thread stores what the others have not written yet",
        (Change(line(r"named_barrier_sync\(kEpilogueBarrier, 128\)") + r"(?=\n    if)"),),
        (Found("race", "tma_store_3d", "epilogue", "is not ordered after the write by epilogue"),),
    ),
}  # fmt: skip

FENCES: Final[dict[str, GemmMutant]] = {
    "staged_without_proxy_fence": GemmMutant(
        "none", "no fence between the writes to the slot and the store that reads them",
        (Change(line(r"fence_proxy_async_shared\(\)") + r"(?=\n  })"),),
        (Found("missing-proxy-fence", "tma_store_3d", "epilogue", "reads output["),),
    ),
    "residual_freed_without_proxy_fence": GemmMutant(
        "residual", "the same, and C is overwritten by a copy after plain reads",
        (Change(line(r"fence_proxy_async_shared\(\)") + r"(?=\n    if \(has)"),),
        (Found("missing-proxy-fence", "tma_store_3d", "epilogue", "reads output["),),
    ),
    "sums_loaded_without_fence": GemmMutant(
        "none", "no fence between the wait for the sums and their loads",
        (Change(line(r"tcgen05_fence_after\(\)") + r"(?=\n    }\n#pragma)"),),
        (Found("missing-tcgen05-fence", "tensor_memory_load", "epilogue"),),
    ),
    "sums_given_back_without_fence": GemmMutant(
        "none", "no fence between the loads of the sums and the arrival",
        (Change(line(r"tcgen05_fence_before\(\)") + r"(?=\n          accumulators)"),),
        (Found("missing-tcgen05-fence", "mma", "mma", "by the warp of epilogue"),),
    ),
    "sums_overwritten_without_fence": GemmMutant(
        "none", "no fence between the wait for the epilogue and the products",
        (Change(line(r"tcgen05_fence_after\(\)")
                + r"(?=\n#pragma unroll 1\n    for \(int32 block)"),),
        (Found("missing-tcgen05-fence", "mma", "mma", "by the warp of epilogue"),),
    ),
}  # fmt: skip

NOT_LOOKED_AT: Final = Problem(200, 136, 64, beta=0.0, nan_in_c=True)
VALUES: Final[dict[str, GemmMutant]] = {
    "residual_times_zero": GemmMutant(
        "residual", "with beta = 0, NaN in C gets through",
        (Change(line(r"if \(beta == 0\.f\) continue")), Change(r"= beta != 0\.f;", "= true;")),
        (NUMBERS,), NOT_LOOKED_AT,
    ),
    "sums_kept": GemmMutant(
        "none", "a tile begins with the sums of another",
        (Change(r"block > 0 \|\| k > 0,\s+e\)", "true, e)"),),
        (NUMBERS, Found("uninitialised", "mma", "mma")),
    ),
    "first_block_alone_is_added": GemmMutant(
        "none", "every block begins with new sums", (Change(r"block > 0 \|\| k > 0", "k > 0"),),
        (NUMBERS,),
    ),
}  # fmt: skip

PAIRS: Final[dict[str, GemmMutant]] = {
    "epilogue_of_one_cta": GemmMutant(
        "pair", "the MMA warp waits for the epilogue of one CTA",
        (Change("(kAccumEmptyArrivals) = 256", r"\1 = 128"),),
        (*SUMS_LOST, Found("phase-lap", WAIT, "mma", "accum_empty["),
         Found("deadlock", WAIT, "mma", "accum_empty["),
         Found("over-arrival", "mbarrier_arrive_remote", "epilogue", "accum_empty[")),
        in_header=True,
    ),
    "arrival_of_the_peer_dropped": GemmMutant(
        "pair", "the peer's epilogue does not arrive at the leader",
        (Change(r"    (mbarrier_arrive_leader<cta_group>\(pipeline\.consumer_mbar\(\)\);)",
                r"    if (cluster_rank() == 0) \1"),),
        (Found("deadlock", WAIT, "mma", "accum_empty["),),
    ),
    "commit_to_the_leader_alone": GemmMutant(
        "pair", "the peer's epilogue is not signalled about the sums",
        (Change("tensor_memory, 0b11", "tensor_memory, 0b01", 2),),
        (Found("deadlock", WAIT, "epilogue", "accum_full["),),
    ),
    "peer_loads_the_same_half": GemmMutant(
        "pair", "both CTAs load the first half of B",
        (Change(r"tile\.column \+ rank \* kBColumns", "tile.column"),), (NUMBERS,),
    ),
    "peer_brings_the_same_residual": GemmMutant(
        "pair", "both CTAs add C of the leader's rows",
        (Change(r"tile\.row \+ rank \* kBM(?=, tile\.column \+ step)", "tile.row"),), (NUMBERS,),
    ),
    "loader_leaves_early": GemmMutant(
        "pair", "the peer may be gone when the leader's last commits arrive there",
        (Change(r"\n  for \(int32 slot = 0; slot < kNumStages; \+\+slot\) \{[\s\S]*?\n  }",
                "\n  for (int32 slot = 0; slot < 0; ++slot) {}"),
         Change(line(r"cluster_sync_aligned\(\)")
                + r"(?=\n  tcgen05_fence_after\(\);\n  if \(warp)",
                "\n  __syncthreads();")),
        (Found("early-exit", "mma_commit_mask", "CTA 1"),
         Found("early-exit", "mma_commit_mask", "mma"),
         Found("early-exit", "mbarrier_arrive_remote", ""),
         Found("tensor-memory", "tensor_memory_free", "mma")),
    ),
    "half_of_the_second_panel": GemmMutant(
        "pair_short", "the panel of lanes 64 to 127 goes where the first one went",
        (Change(r"(tma_store_3d\(out_map, slot \+ kOutPanelBytes, column) \+ kBN / 2", r"\1"),),
        (NUMBERS, Found("race", "tma_store_3d", "epilogue")),
    ),
}  # fmt: skip

SCHEDULERS: Final[dict[str, GemmMutant]] = {
    "answer_overwritten": GemmMutant(
        "dynamic", "the next answer may come before all have read the last",
        (Change(r"\n    mbarrier_wait\(base \+ kTileEmpty[^\n]*"),),
        (Found("race", "try_cancel", "scheduler", "tile["),
         Found("race", "canceled_cta", "", "tile["),
         Found("phase-lap", WAIT, "", "tile_full["), Found("deadlock", WAIT, "", "tile_full[")),
        Problem(900, 400, 0),
    ),
    "answer_read_without_proxy_fence": GemmMutant(
        "dynamic", "the next answer is written by the async proxy over plain reads",
        (Change(line(r"fence_proxy_async_shared\(\)") + r"(?=\n    if \(kWhole)"),),
        (Found("proxy-war", "try_cancel", "scheduler", "tile["),),
        Problem(900, 400, 64),
    ),
    "answer_given_back_by_one_lane": GemmMutant(
        "dynamic", "a warp gives an answer back before all its lanes have read it",
        (Change(r"\n    if \(kWholeWarp\) __syncwarp\(\);[^\n]*"),),
        (Found("race", "try_cancel", "scheduler", "tile["),
         Found("race", "canceled_cta", "", "tile[")),
        Problem(900, 400, 64),
    ),
    "peer_expects_no_answer": GemmMutant(
        "pair_dynamic", "nobody expects the answer's bytes in the peer",
        (Change(line(r"mbarrier_arrive_expect_tx_cluster\(map_to_cta\(full, 1\), kTileBytes\)")),),
        (Found("deadlock", WAIT, "", "tile_full["),),
    ),
    "answer_acquired_from_the_own_cta": GemmMutant(
        "pair_dynamic", "the peer's reads are acquired at the scope of the own CTA",
        (Change(r"mbarrier_wait_acquire_cluster(?=\(base \+ kTileEmpty)", "mbarrier_wait"),),
        (Found("race", "try_cancel", "scheduler", "only by a wait of .cta scope"),),
        Problem(1500, 400, 64),
    ),
    "answer_released_to_the_own_cta": GemmMutant(
        "pair_dynamic", "the peer's reads are released within the peer only",
        (Change(r"mbarrier\.arrive\.release\.cluster(?=\.shared::cluster\.b64 _, \[%0 \+ %1\];)",
                "mbarrier.arrive.release.cta"),),
        (Found("race", "try_cancel", "scheduler", "tile["),
         Found("scope", "try_cancel", "scheduler", "tile[")),
        Problem(1500, 400, 64),
    ),
}  # fmt: skip

MUTANTS: Final = {**UPSTREAM, **WAITS, **FENCES, **VALUES, **PAIRS, **SCHEDULERS}
