"""Mutants of the kernel for Blackwell, and the emulator's findings on each.

Places are the functions that hold the instruction: most are thin wrappers around one.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from tests.kernels.source_mutation import Change, Found, Mutant, line, swap

# Outputs are rescaled whenever a maximum grows, so that the correction has something to do.
_COMMON: Final = {"rescale_threshold": 0.0, "exp2_fma_share": 0.0}
_CONFIGS: Final[dict[str, dict[str, Any]]] = {
    # two query tiles, P over its scores, parts of the depth, the output leaves by the query slot
    "over": {"kv_ring": "separate", "num_kv_stages": 2},
    "fused": {"kv_ring": "fused", "num_kv_stages": 3},
    # P in columns of its own, the output has a slot of its own
    "apart": {"depth": 64, "BN": 64, "num_kv_stages": 2},
    "single": {"BM": 128, "BN": 64, "num_kv_stages": 2},
    "single_over": {"BM": 128, "BN": 160, "num_kv_stages": 2, "kv_ring": "separate"},
    "pair": {"cta_group": 2, "num_kv_stages": 2},
    "pair_dynamic": {"cta_group": 2, "depth": 64, "BN": 64, "num_kv_stages": 2,
                     "scheduler": "dynamic"},
    "pair_query": {"cta_group": 2, "depth": 64, "BN": 64, "num_kv_stages": 3, "kv_ring": "fused",
                   "output_staging": "query", "dtype": "fp16"},
    "fp8": {"dtype": "fp8_e4m3", "num_kv_stages": 2},
}  # fmt: skip
CONFIGS: Final = {name: {**_COMMON, **keys} for name, keys in _CONFIGS.items()}

MMA_PV: Final = "mma_a_in_tensor_memory"
SEVERAL_TILES: Final = "gqa/3"  # more tiles than CTAs, two blocks of keys each
ONE_BLOCK: Final = "batch/5"  # as many, one block each


RELEASE_V: Final = r"\n    if \(kReleases\) values\.release_v\(e\);"
NOT_CORRECTED: Final = (Change(line(r"outputs\.acquire\(\)")),)
WITHOUT_CORRECTION: Final = (
    Found("race", MMA_PV, "mma", "after the tensor memory write by the warp of correction"),
    Found("race", "tensor_memory_load", "correction", "after the tcgen05.mma issued by mma"),
    # where the correction was so slow that it missed phases
    Found("phase-lap", "mbarrier_wait", "correction", "output_full["),
    Found("deadlock", "mbarrier_wait", "correction", "output_full["),
)
NOT_STORED: Final = (
    swap(
        line(r"tensor_memory_wait_stores\(\)"),
        line(r"tcgen05_fence_before\(\)") + line(r"probabilities_out\.commit\(\d\)"),
        2,
    ),
)
UNSTORED: Final = (
    Found("missing-tcgen05-wait", MMA_PV, "mma", "after the tensor memory write by the warp of"),
)
NO_FLIP: Final = (Change(line(r"phase \^= 1")),)
NOT_FLIPPED: Final = (
    Found("over-arrival", "mbarrier_arrive_expect_tx", "load", "_full["),
    Found("race", "tma_load_5d", "load", "is not ordered after the tensor copy issued by load"),
    Found("deadlock", "mbarrier_wait", "load", "_empty["),
    # where the ring happened to be right, and another pipeline was not
    Found("phase-lap", "mbarrier_wait", "softmax", "scores_full["),
)

KEY_OVERWRITTEN: Final = (
    Found("race", "tma_load_5d", "load", "overwrites key["),
    Found("race", "mma", "mma", "reads key["),
)

# The four most common errors, on each kind of kernel.
WRONG_VERSIONS: Final[dict[str, Mutant]] = {
    **{
        f"correction_not_waited_for_{config}": Mutant(
            config, "P.V is added while the correction rescales", NOT_CORRECTED, WITHOUT_CORRECTION
        )
        for config in ("over", "apart", "single", "pair")
    },
    **{
        f"probabilities_before_their_stores_{config}": Mutant(
            config, "P is handed over before its stores are complete", NOT_STORED, UNSTORED
        )
        for config in ("over", "apart", "single", "pair")
    },
    **{
        f"phase_never_flips_{config}": Mutant(
            config, "PipelineState keeps its phase at the wrap", NO_FLIP, NOT_FLIPPED
        )
        for config in ("over", "fused", "apart", "single", "pair")
    },
    "key_released_by_the_first_tile": Mutant(
        "over", "a part of K is released by tile 0, though tile 1 has yet to read it",
        (Change(r"if \(kReleases\) (keys\.release_k<0>)", r"if (kWaits) \1"),),
        KEY_OVERWRITTEN,
    ),
    "key_released_by_the_first_tile_apart": Mutant(
        "apart", "as above, with K in one part",
        (Change(r"if \(kReleases\) keys\.release_k<0>\(e\);",
                "if (kWaits) mma_commit<kCtaGroup>("
                "keys.pipeline.template consumer_mbar<0>(), e);\n"
                "    if (kReleases) keys.pipeline.state.step();"),),
        KEY_OVERWRITTEN,
    ),
    **{
        f"key_released_before_its_product_{config}": Mutant(
            config, "K is released before the product that reads it is issued",
            (swap(r"\n    issue_query_key<\d>[^\n]*", r"\n    if \(kReleases\)[^\n]*", parts),),
            KEY_OVERWRITTEN,
        )
        for config, parts in (("over", 2), ("apart", 1), ("single", 2))
    },
}  # fmt: skip

_LAST_RELEASES: Final[tuple[tuple[str, Literal["error", "isa"]], ...]] = (
    ("over", "isa"), ("fused", "isa"), ("single", "isa"),
    ("pair", "error"), ("pair_query", "error"),
)  # fmt: skip
"""Releases whose late arrival at a peer is an error."""
WAITS: Final[dict[str, Mutant]] = {
    "value_released_before_its_product": Mutant(
        "over", "V is released, and the ring steps, before tile 1's product",
        (swap(r"(?s:\n    const MatrixDescriptor value = values\.get_v\(\);.*?)", RELEASE_V),),
        (Found("race", MMA_PV, "mma", "reads value["),
         Found("race", "tma_load_5d", "load", "overwrites value[")),
    ),
    **{
        f"value_released_after_the_output_{config}": Mutant(
            config, "the CTAs may be gone when the last release of V arrives there",
            (swap(RELEASE_V, line(r"outputs\.commit_mma\(e\)")),),
            (Found("early-exit", "mma_commit_mask", "", "signals mbarrier"),), verdict=verdict,
        )
        for config, verdict in _LAST_RELEASES
    },
    "key_not_waited_for": Mutant(
        "over", "the second part of K is not waited for",
        (Change(line(r"if \(kWaits\) keys\.wait_k<1>\(\)")),),
        (Found("race", "mma", "mma", "reads key["),),
    ),
    "value_not_waited_for": Mutant(
        "over", "V is not waited for", (Change(line(r"values\.wait_v\(\)")),),
        (Found("race", MMA_PV, "mma", "reads value["),),
    ),
    "query_not_waited_for": Mutant(
        "over", "Q is not waited for",
        (Change(r"\n    if \(first_block\) mbarrier_wait\(query_full[^\n]*", times=2),),
        (Found("race", "mma", "mma", "reads query["),),
    ),
    "scores_not_waited_for": Mutant(
        "apart", "scores are loaded before they are there",
        (Change(line(r"scores_in\.wait\(\)")),),
        (Found("uninitialised", "tensor_memory_load", "softmax"),
         Found("race", "tensor_memory_load", "softmax", "after the tcgen05.mma issued by mma")),
    ),
    "part_of_probabilities_not_waited_for": Mutant(
        "over", "the last part of P is not waited for",
        (Change(line(r"probabilities\.wait\(1\)")),),
        (Found("race", MMA_PV, "mma", "after the tensor memory write by the warp of softmax"),
         Found("race", "tensor_memory_store_packed", "softmax", "after the tcgen05.mma issued")),
    ),
    "scores_over_probabilities": Mutant(
        "over", "scores overwrite P while its product may read it: order of issue is not enough",
        (Change(line(r"outputs\.ring\(\)\.wait_full\(\)") + line(r"tcgen05_fence_after\(\)")),),
        (Found("race", "mma", "mma", "which nothing has shown to be complete"),), verdict="isa",
    ),
    "scores_over_probabilities_single": Mutant(
        "single_over", "as above, with the scores of every other block in a buffer",
        (Change(line(r"outputs\.ring\(\)\.wait_full\(\)") + line(r"tcgen05_fence_after\(\)")),),
        (Found("race", "mma", "mma", "which nothing has shown to be complete"),), verdict="isa",
    ),
    "output_not_waited_for": Mutant(
        "over", "the output is read before its last product is complete",
        (Change(line(r"outputs_in\.wait\(\)") + r"(\n    tcgen05_fence_after[^\n]*\n    const)",
                r"\1"),),
        (Found("race", "tensor_memory_load", "correction", "after the tcgen05.mma issued by mma"),
         Found("race", MMA_PV, "mma", "by the warp of correction"),
         Found("deadlock", "mbarrier_wait", "mma", "output_ready[")),
    ),
    "ready_before_the_rescaling": Mutant(
        "over", "the correction says that it is through before it has begun",
        (swap(r"\n    if \(__any_sync[^\n]*",
               line(r"tcgen05_fence_before\(\)") + line(r"outputs_in\.release\(\)")),),
        WITHOUT_CORRECTION,
    ),
    "rescaled_output_not_stored": Mutant(
        "over", "rescaled outputs are handed over before their stores are complete",
        (Change(line(r"tensor_memory_wait_stores\(\)") + r"(?=\n})"),),
        (Found("missing-tcgen05-wait", MMA_PV, "mma", "by the warp of correction"),),
    ),
    "scores_still_loading": Mutant(
        "over", "P goes over scores that are still being loaded",
        (Change(line(r"tensor_memory_wait_loads\(\)") + r"(?=\n    if \(masked\))"),),
        # what is stored is computed from what was loaded
        (Found("missing-tcgen05-wait", "tensor_memory_store_packed", "softmax"),), verdict="isa",
    ),
    "scale_not_acquired": Mutant(
        "single", "a factor is overwritten before the correction has read it",
        (Change(line(r"scales_out\.acquire\(\)")),),
        (Found("race", "store_shared", "softmax", "write of scale["),
         Found("race", "load_shared", "correction", "scale[")),
    ),
    "scale_not_acquired_over": Mutant(
        "over", "as above, or the correction misses a phase and waits for ever",
        (Change(line(r"scales_out\.acquire\(\)")),),
        (Found("race", "store_shared", "softmax", "write of scale["),
         Found("race", "load_shared", "correction", "scale["),
         Found("deadlock", "mbarrier_wait", "correction", "scale_full[")),
    ),
    "tile_given_back_by_one_lane": Mutant(
        "over", "a warp gives a tile back before all its lanes have read it",
        (Change(line(r"__syncwarp\(\)") + r"(?=\n    if \(threadIdx)"),),
        (Found("race", "write_tile", "load", "write of tile["),), SEVERAL_TILES,
    ),
}  # fmt: skip

FENCES: Final[dict[str, Mutant]] = {
    "scores_loaded_without_fence": Mutant(
        "over", "no fence between the wait for scores and their loads",
        (Change(r"(scores_in\.wait\(\);)" + line(r"tcgen05_fence_after\(\)"), r"\1"),),
        (Found("missing-tcgen05-fence", "tensor_memory_load", "softmax"),), verdict="review",
    ),
    "probabilities_used_without_fence": Mutant(
        "over", "no fence between the wait for P and its product",
        (Change(r"(probabilities\.wait\(0\);)" + line(r"tcgen05_fence_after\(\)"), r"\1"),),
        (Found("missing-tcgen05-fence", MMA_PV, "mma", "by the warp of softmax"),),
        verdict="review",
    ),
    "probabilities_handed_over_without_fence": Mutant(
        "over", "no fence between the stores of P and the arrival",
        (Change(line(r"tcgen05_fence_before\(\)") + r"(?=\n    probabilities_out\.commit\(1\))"),),
        (Found("missing-tcgen05-fence", MMA_PV, "mma", "by the warp of softmax"),),
        verdict="review",
    ),
    "output_rescaled_without_fence": Mutant(
        "over", "no fence between the wait for the output and its loads",
        (Change(r"(outputs_in\.wait\(\);)" + line(r"tcgen05_fence_after\(\)")
                + r"(?=\n    // Other rows)", r"\1"),),
        (Found("missing-tcgen05-fence", "tensor_memory_load", "correction"),), verdict="review",
    ),
    "output_given_back_without_fence": Mutant(
        "over", "no fence between the stores of the output and the arrival",
        (Change(line(r"tcgen05_fence_before\(\)")
                + r"(?=\n    outputs_in\.release\(\);\n  })"),),
        (Found("missing-tcgen05-fence", MMA_PV, "mma", "by the warp of correction"),),
        verdict="review",
    ),
    "staged_without_proxy_fence": Mutant(
        "over", "the TMA store reads what was written without a fence between the proxies",
        (Change(line(r"fence_proxy_async_shared\(\)")),),
        (Found("missing-proxy-fence", "tma_store_5d", "correction", "reads query["),),
    ),
    "staged_without_proxy_fence_apart": Mutant(
        "apart", "as above, from a slot of the output's own",
        (Change(line(r"fence_proxy_async_shared\(\)")),),
        (Found("missing-proxy-fence", "tma_store_5d", "correction", "reads output["),),
    ),
}  # fmt: skip

ENDS: Final[dict[str, Mutant]] = {
    "query_given_back_before_the_store": Mutant(
        "over", "the query's slot is freed before the store of the output has read it",
        (swap(line(r"tma_store_wait_read\(\)"), line(r"mbarrier_arrive\(base \+ kQueryE.*")),),
        (Found("race", "tma_load_5d", "load", "is not ordered after the tensor store"),),
        SEVERAL_TILES,
    ),
    "query_given_back_before_the_last_product": Mutant(
        "apart", "the query's slot is freed after the first block",
        (Change(r"if \(n == num_blocks - 1\) \{", "if (n == 0) {"),),
        (Found("race", "tma_load_5d", "load", "overwrites query["),
         Found("race", "mma", "mma", "reads query[")), SEVERAL_TILES,
    ),
    "staging_overwritten": Mutant(
        "apart", "the staging slot is written again while the store reads it",
        (Change(line(r"tma_store_wait_read\(\)")),),
        (Found("race", "store_shared_chunk", "correction", "not ordered after the tensor store"),),
        SEVERAL_TILES,
    ),
    "staging_not_waited_for": Mutant(
        "single", "threads do not wait for the one that has seen the store read the slot",
        (Change(line(r"named_barrier_sync\(kEpilogueBarrier, kTileRows\)") + r"(?=\n#pragma)"),),
        (Found("race", "store_shared_chunk", "correction", "not ordered after the tensor store"),),
        ONE_BLOCK,
    ),
    "stored_before_all_have_written": Mutant(
        "over", "one thread stores what the others have not written yet",
        (Change(line(r"named_barrier_sync\(kEpilogueBarrier, kTileRows\)") + r"(?=\n    if)"),),
        (Found("race", "tma_store_5d", "correction",
               "is not ordered after the write by correction"),),
    ),
    "output_given_back_before_it_is_read": Mutant(
        "over", "the next tile's product may begin before the output has been read",
        (Change(r"(\n    const int32 i = query_tile\(\);[\s\S]*?)("
                + line(r"tcgen05_fence_before\(\)") + line(r"outputs_in\.release\(\)")
                + r")(?=\n    store_staged)", r"\2\1"),),
        (Found("race", MMA_PV, "mma", "by the warp of correction"),
         Found("race", "tensor_memory_load", "correction", "after the tcgen05.mma issued by mma")),
        SEVERAL_TILES,
    ),
    "freed_while_in_use": Mutant(
        "over", "tensor memory is freed while others use it",
        (Change(line(r"__syncthreads\(\)") + r"(?=\n  tcgen05_fence_after\(\);\n  //)"),),
        (Found("tensor-memory", "tensor_memory_free", "mma"),),
    ),
    "registers_kept": Mutant(
        "over", "the correction keeps the registers that the softmax waits for",
        (Change(line(r"decrease_registers<kCorrectionRegisters>\(\)")),),
        (Found("deadlock", "increase_registers", "softmax", "more registers than the CTA has"),),
    ),
    "half_of_the_bytes_expected": Mutant(
        "over", "the loader expects half of what it loads",
        (Change(r"(mbarrier_expect_leader<config::cta_group>\(mbar, part_bytes)\)", r"\1 / 2)"),),
        (Found("deadlock", "mbarrier_wait", "mma", "_full["),
         Found("race", "mma", "mma", "reads key["),
         Found("over-arrival", "tma_load_5d", "load")),
    ),
}  # fmt: skip

_HALF: Final = r"\1 = 128"
PAIRS: Final[dict[str, Mutant]] = {
    "probabilities_of_one_cta": Mutant(
        "pair", "the MMA warp waits for P of one CTA",
        (Change("(kProbabilitiesFullArrivals) = 256", _HALF),),
        (Found("race", MMA_PV, "mma", "by the warp of softmax"),
         Found("phase-lap", "mbarrier_wait", "mma", "probabilities_full["),
         Found("deadlock", "mbarrier_wait", "mma", "probabilities_full[")), in_header=True,
    ),
    "correction_of_one_cta": Mutant(
        "pair", "the MMA warp waits for the correction of one CTA",
        (Change("(kOutputReadyArrivals) = 256", _HALF),),
        (*WITHOUT_CORRECTION, Found("phase-lap", "mbarrier_wait", "mma", "output_ready["),
         Found("deadlock", "mbarrier_wait", "mma", "output_ready[")), in_header=True,
    ),
    "freed_before_the_peer_is_through": Mutant(
        "pair", "tensor memory is freed without waiting for anyone",
        (Change(line(r"cluster_sync_aligned\(\)") + r"(?=\n  tcgen05_fence_after\(\);\n  //)"),),
        (Found("tensor-memory", "tensor_memory_free", "mma"),),
    ),
    "left_before_the_peer_is_through": Mutant(
        "pair", "at the end a CTA waits for its own threads only",
        (Change(line(r"cluster_sync_aligned\(\)") + r"(?=\n  tcgen05_fence_after\(\);\n  //)",
                r"\n  __syncthreads();"),),
        (Found("early-exit", "mbarrier_arrive_remote", "CTA 0"),
         Found("early-exit", "mbarrier_arrive_remote", "correction (CTA 0"),
         Found("early-exit", "mma_commit_mask", "CTA 1"),
         Found("tensor-memory", "tensor_memory_free", "mma")),
    ),
    "tiles_acquired_from_the_own_cta": Mutant(
        "pair_dynamic", "what the leader's loader wrote is acquired at the scope of the own CTA",
        (Change(r"mbarrier_wait_acquire_cluster(?=\(base \+ kTileFull)", "mbarrier_wait"),),
        (Found("race", "load_shared_words_3", "", "only by a wait of .cta scope"),), SEVERAL_TILES,
        verdict="isa",
    ),
    "slots_acquired_from_the_own_cta": Mutant(
        "pair_dynamic", "what the peer's warps have read is acquired at the scope of the own CTA",
        (Change(r"mbarrier_wait_acquire_cluster(?=\(empty)", "mbarrier_wait"),),
        (Found("race", "store_shared_cluster", "load", "only by a wait of .cta scope"),),
        SEVERAL_TILES, verdict="isa",
    ),
}  # fmt: skip

ALWAYS: Final = (
    *(name for name in WRONG_VERSIONS if name.endswith(("_over", "_pair", "_first_tile"))),
    "tiles_acquired_from_the_own_cta",
)
"""Made in every run; all of them with --many-seeds."""
MUTANTS: Final = {**WRONG_VERSIONS, **WAITS, **FENCES, **ENDS, **PAIRS}
