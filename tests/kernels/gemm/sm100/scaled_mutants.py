"""Mutants of products with block scales, and the emulator's findings on each."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.emulation import Problem
from tests.kernels.gemm.sm100.mutants import NUMBERS, WAIT, GemmMutant
from tests.kernels.source_mutation import ANYWHERE, Change, Found

_SMALL: Final = {"num_stages": 2, "num_accum_stages": 1}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "mxfp8": {"cta_group": 1, "dtype": "fp8_e4m3", "scales": "mxfp8", "BN": 128, **_SMALL},
    "nvfp4": {"cta_group": 1, "dtype": "fp4_e2m1", "scales": "nvfp4", "BN": 256, **_SMALL},
    "mxfp4_narrow": {"cta_group": 1, "dtype": "fp4_e2m1", "scales": "mxfp4", "BN": 64, **_SMALL},
    "two_slots": {"cta_group": 1, "dtype": "fp4_e2m1", "scales": "nvfp4", "BN": 192,
                  "num_stages": 4},
    "overlap": {"cta_group": 1, "dtype": "fp4_e2m1", "scales": "nvfp4", "residual": "matrix",
                "BN": 256, "num_stages": 2},
    "rows": {"cta_group": 1, "dtype": "fp4_e2m1", "scales": "mxfp4", "scale_order": "row_major",
             "BN": 256, **_SMALL},
    "rows_pair": {"cta_group": 2, "dtype": "fp8_e4m3", "scales": "mxfp8",
                  "scale_order": "row_major", "BN": 256, **_SMALL},
    "mxfp8_pair": {"cta_group": 2, "dtype": "fp8_e4m3", "scales": "mxfp8", "BN": 256, **_SMALL},
}  # fmt: skip
BLOCKS: Final = Problem(140, 260, 600, alpha=-0.5)
"""Several tiles for a CTA, several blocks each, tails on all sides."""
DEEP: Final = Problem(140, 260, 2200)
WIDE: Final = Problem(140, 1100, 600)
PAIRS: Final = Problem(300, 300, 600)

COPY, COPIES = "tensor_memory_copy_scales", "copy_scales"
OVERWRITTEN: Final = (
    Found("race", COPY, "mma", "tcgen05.mma"), Found("race", "mma_scaled", "mma", "tcgen05.cp"),
)  # fmt: skip
NOT_LANDED: Final = Found("race", COPY, "mma", "tensor copy issued by load")
UNWRITTEN: Final = Found("uninitialised", "mma_scaled", "mma")

BYTES: Final[dict[str, GemmMutant]] = {
    "scale_slice_not_advanced": GemmMutant(
        "mxfp8", "every product of a block has the scales of the first",
        (Change(r"first_scales\(k % kAtomK / kScaleK\)", "first_scales(0)"),), (NUMBERS,), BLOCKS,
    ),
    "byte_of_b_wrong": GemmMutant(
        "mxfp8", "B's scales are always those of the first byte",
        (Change(r"\(byte << 29\) \| \(byte << 4\)", "byte << 29"),), (NUMBERS,), BLOCKS,
    ),
    "half_of_a_wrong": GemmMutant(
        "mxfp4_narrow", "A's scales are those of the other half of the column",
        (Change(r"\(byte << 29\) \|", "((byte ^ 2) << 29) |"),), (NUMBERS,), BLOCKS,
    ),
    "scales_of_another_type": GemmMutant(
        "nvfp4", "scales in e4m3 are read as powers of two",
        (Change(r"kPowersOfTwo = 0", "kPowersOfTwo = 1"),), (NUMBERS,), BLOCKS,
    ),
    "scales_of_a_type_that_the_kind_lacks": GemmMutant(
        "mxfp8", "powers of two are said to be in e4m3",
        (Change(r"kPowersOfTwo = 1", "kPowersOfTwo = 0"),),
        (Found("descriptor", "mma_scaled", "mma", "ue4m3"),), BLOCKS,
    ),
    "scales_exchanged": GemmMutant(
        "mxfp8", "the product takes B's scales for A's",
        (Change(r"\[%6\], \[%7\], add", "[%7], [%6], add"),), (NUMBERS,), BLOCKS,
    ),
    "elements_counted_as_bytes": GemmMutant(
        "nvfp4", "the place along k in a map of bytes is given in elements",
        (Change(r"\(k \+ panel \* kAPanel\) / kElementsPerByte", "k + panel * kAPanel"),),
        (NUMBERS,), BLOCKS,
    ),
    "tensor_scale_dropped": GemmMutant(
        "nvfp4", "alpha, which has the scale of the tensors, does not count",
        (Change(r"return alpha \* product;", "return product;"),), (NUMBERS,), BLOCKS,
    ),
}  # fmt: skip

PLACES: Final[dict[str, GemmMutant]] = {
    "scales_of_the_first_block": GemmMutant(
        "mxfp8", "every block is loaded with the scales of the first",
        (Change(r"a_map, block \* kKAtoms", "a_map, 0"),), (NUMBERS,), BLOCKS,
    ),
    "scales_of_the_next_rows": GemmMutant(
        "mxfp8", "A's scales are those of 128 rows further down",
        (Change(r"row / kAtomRows", "row / kAtomRows + 1"),), (NUMBERS,), BLOCKS,
    ),
    "scales_of_the_first_columns": GemmMutant(
        "mxfp8", "B's scales are those of the first tile",
        (Change(r"column / kAtomRows", "0"),), (NUMBERS,), BLOCKS,
    ),
    "maps_exchanged": GemmMutant(
        "mxfp8", "the loader takes B's scales for A's",
        (Change(r"slot, scale_a_map, scale_b_map", "slot, scale_b_map, scale_a_map"),), (NUMBERS,),
        BLOCKS,
    ),
    "atoms_in_the_wrong_order": GemmMutant(
        "nvfp4", "B's atoms are taken to follow each other along the columns",
        (Change(r"rows \* kKAtoms \+ atom", "atom * kBAtoms + rows"),), (NUMBERS,), BLOCKS,
    ),
    "atom_not_advanced": GemmMutant(
        "nvfp4", "all products have A's scales of the block's first 64 elements",
        (Change(r"scales \+ column_of_a_scales\(k\)", "scales"),), (NUMBERS,), BLOCKS,
    ),
    "tile_within_an_atom": GemmMutant(
        "mxfp4_narrow", "a tile of 64 columns always begins with an atom",
        (Change(r" \+ begin,", ","),), (NUMBERS,), BLOCKS,
    ),
    "lines_of_an_atom_swizzled": GemmMutant(
        "mxfp8", "atoms are read as if they were swizzled",
        (Change(r"\(kVersion << 14\)(?= \| \(kEightLines)", "(6u << 29) | (kVersion << 14)"),),
        (NUMBERS, NOT_LANDED), BLOCKS,
    ),
    "lines_of_an_atom_apart": GemmMutant(
        "mxfp8", "groups of eight lines are taken to be 256 bytes apart",
        (Change(r"kEightLines = 8 \* 16", "kEightLines = 16 * 16"),), (NUMBERS, NOT_LANDED),
        BLOCKS,
    ),
    "columns_of_the_accumulator": GemmMutant(
        "mxfp8", "the first slot of scales begins in the accumulator",
        (Change(r"tensor_memory \+ kScales0Column\}", "tensor_memory + kScales0Column - 4}"),),
        (NUMBERS, *OVERWRITTEN, Found("race", COPY, "mma")), BLOCKS,
    ),
    "slots_overlap": GemmMutant(
        "nvfp4", "slots of scales are as far apart as A's scales are wide",
        (Change(r"scales \+ kScaleStageCols \* index", "scales + kScaleAColumns * index"),),
        (*OVERWRITTEN, NUMBERS), BLOCKS,
    ),
    "peer_has_the_rows_of_the_leader": GemmMutant(
        "mxfp8_pair", "the second half of the pair's rows has the scales of the first",
        (Change(r"\(tile\.row \+ rank \* kBM\) / kAtomRows", "tile.row / kAtomRows"),), (NUMBERS,),
        PAIRS,
    ),
    "peer_has_half_of_the_columns": GemmMutant(
        "mxfp8_pair", "the peer loads scales for its own half of B from there on",
        (Change(r"(scale_b_map,\s+\(tile\.row \+ rank \* kBM\) / kAtomRows,\s+tile\.column),",
                r"\1 + rank * kBColumns,"),),
        (NUMBERS,), PAIRS,
    ),
}  # fmt: skip

ORDER: Final[dict[str, GemmMutant]] = {
    "copied_after_the_products": GemmMutant(
        "mxfp8", "a block's scales are copied once its products are issued",
        (Change(r"\n      copy_scales\(base, slot, scales, e\);"),
         Change(r"\n      mma_commit<kCtaGroup>\(inputs",
                "\n      copy_scales(base, slot, scales, e);\n      mma_commit<kCtaGroup>(inputs")),
        (UNWRITTEN, *OVERWRITTEN), BLOCKS,
    ),
    "copied_before_the_products_have_read": GemmMutant(
        "two_slots", "a slot of scales is overwritten while products may read it",
        (Change(r"\n      mbarrier_wait\(input_empty[^\n]*"),), OVERWRITTEN, DEEP,
    ),
    "one_slot_too_many": GemmMutant(
        "two_slots", "the wait for a slot is a block late",
        (Change(r"unused = kNumScaleStages", "unused = kNumScaleStages + 1"),), OVERWRITTEN, DEEP,
    ),
    "copied_without_fence": GemmMutant(
        "two_slots", "nothing orders the copies after the products that were waited for",
        (Change(r"\n      tcgen05_fence_after\(\);  // orders the copies[^\n]*"),),
        (Found("missing-tcgen05-fence", COPY, "mma"),), DEEP,
    ),
    "copied_before_they_have_landed": GemmMutant(
        "mxfp8", "the block's bytes are not waited for",
        (Change(r"\n      inputs\.wait_producer\(\);"),),
        (NOT_LANDED, Found("race", "tma_load_scales", "load"),
         Found("race", "mma_scaled", "mma"), Found("race", "tma_load_3d", "load")),
        BLOCKS,
    ),
    "bytes_of_scales_not_expected": GemmMutant(
        "mxfp8", "a block counts as there without its scales",
        (Change(r"kABytes \+ kBBytes \+ kScaleABytes \+ kScaleBBytes", "kABytes + kBBytes"),),
        (Found("deadlock", WAIT, ""), NOT_LANDED), BLOCKS,
    ),
}  # fmt: skip

OVERLAP: Final[dict[str, GemmMutant]] = {
    "panels_in_order": GemmMutant(
        "overlap", "the epilogue gives the shared columns back once it has read others",
        (Change(r"return turn == 0 \? [^\n]*", "return step;"),),
        (Found("race", "mma_scaled", "mma"), Found("race", "tensor_memory_load", "epilogue"),
         Found("missing-tcgen05-wait", "mma_scaled", "mma")), WIDE,
    ),
    "given_back_a_panel_early": GemmMutant(
        "overlap", "the epilogue has read one of the two panels that both accumulators have",
        (Change(r"step \+ 1 == kOverlapSteps", "step == 0"),),
        (Found("race", "mma_scaled", "mma"), Found("race", "tensor_memory_load", "epilogue"),
         Found("missing-tcgen05-wait", "mma_scaled", "mma")), WIDE,
    ),
    "always_the_first_accumulator": GemmMutant(
        "overlap", "the MMA warp does not change between the accumulators",
        (Change(r"(ring\.release_from_mma\(stage, e\);)\n    turn \^= 1;", r"\1"),),
        (NUMBERS, Found("race", "mma_scaled", "mma"), Found("uninitialised", "load_sums", ""),
         Found("uninitialised", "tensor_memory_load", "epilogue"),
         Found("race", "tensor_memory_load", "epilogue")), WIDE,
    ),
    "residual_in_another_order": GemmMutant(
        "overlap", "C comes panel by panel from the left",
        (Change(r"panels\.at\(step\) \* kOutPanel(?=,\s+tile\);\n    panels)",
                "step * kOutPanel"),), (NUMBERS,), WIDE,
    ),
    "peer_loads_the_same_atom": GemmMutant(
        "mxfp8_pair", "both CTAs load B's scales of the first 128 columns",
        (Change(r"column / kAtomRows \+ rank", "column / kAtomRows"),), (NUMBERS,), PAIRS,
    ),
    "atom_for_the_own_cta_alone": GemmMutant(
        "mxfp8_pair", "a CTA's half of B's scales does not reach the other CTA",
        (Change(r"kBothCtas = 0b11", "kBothCtas = 0b01"),),
        (NUMBERS, NOT_LANDED, UNWRITTEN, Found("deadlock", WAIT, ""), Found("race", COPY, "mma"),
         Found("uninitialised", COPY, "mma")), PAIRS,
    ),
}  # fmt: skip

RUNS: Final = Problem(140, 260, 2200)
"""Several runs of scales for each tile, rows that begin anywhere."""
CHUNKS: Final = Problem(140, 260, 2048)
WORDS: Final = Problem(140, 260, 2176)
PAST_THE_END: Final = Found("out-of-bounds", ANYWHERE, "arrange")
ARRIVAL: Final = (
    r"mbarrier_arrive_release_shared\(leader_address<kCtaGroup>\(inputs\.producer_mbar\(\)\)\)"
)

ARRANGED: Final[dict[str, GemmMutant]] = {
    "stored_without_proxy_fence": GemmMutant(
        "rows", "nothing orders the stores of scales before the copies that read them",
        (Change(r"\n *fence_proxy_async_shared\(\);  // orders the stores before[^\n]*"),),
        (Found("missing-proxy-fence", COPY, "mma"),), CHUNKS,
    ),
    "arrived_before_the_warp_has_stored": GemmMutant(
        "rows", "the first lane arrives for lanes that may not have stored",
        (Change(r"(orders the stores before[^\n]*)\n *__syncwarp\(\);", r"\1"),),
        (Found("race", COPY, "mma"), Found("race", "store_shared_chunk", "arrange"),
         Found("missing-proxy-fence", COPY, "mma")), CHUNKS,
    ),
    "stored_into_a_slot_in_use": GemmMutant(
        "rows", "the products that read a slot are not waited for",
        (Change(r"\n *inputs\.wait_consumer\(\);(?=\n *run\.store)"),),
        (Found("race", "store_shared_chunk", "arrange"), Found("race", COPY, "mma"),
         Found("phase-lap", ANYWHERE, ""), Found("over-arrival", ANYWHERE, "")), CHUNKS,
    ),
    "always_the_first_block_of_a_run": GemmMutant(
        "rows", "each block has the scales of the run's first",
        (Change(r"part \* kKAtoms \+ atom", "atom"),), (NUMBERS,), CHUNKS,
    ),
    "always_the_first_run": GemmMutant(
        "rows", "every run is loaded from the beginning of k",
        (Change(r"lines\[group\] \+ first \+ i", "lines[group] + i"),), (NUMBERS,), CHUNKS,
    ),
    "always_the_first_half_of_a_run": GemmMutant(
        "rows", "the second sixteen scales of a run are the first",
        (Change(r"lines\[group\] \+ first \+ i", "lines[group] + first"),), (NUMBERS,), CHUNKS,
    ),
    "first_half_lost": GemmMutant(
        "rows", "the first half of a run is not moved down before the second",
        (Change(r"words\[group\]\[i\] = words\[group\]\[kHalf \+ i\];[^\n]*"),), (NUMBERS,), WORDS,
    ),
    "rows_of_a_lane_side_by_side": GemmMutant(
        "rows", "a lane takes four rows in turn",
        (Change(r"row \+ 32 \* group", "row + group"),), (NUMBERS,), CHUNKS,
    ),
    "rows_past_the_end": GemmMutant(
        "rows", "scales of rows past the end are loaded",
        (Change(r"min\(row \+ 32 \* group, last_row\)", "row + 32 * group"),),
        (PAST_THE_END,), CHUNKS,
    ),
    "words_past_the_end": GemmMutant(
        "rows", "words of scales are loaded past the end of k",
        (Change(r"min\(place, extent - 4\)", "place"),), (PAST_THE_END,),
        WORDS,
    ),
    "bytes_past_the_end": GemmMutant(
        "rows", "scales are loaded past the end of k",
        (Change(r"min\(place \+ i, last\)", "(place + i)"),),
        (PAST_THE_END,), RUNS,
    ),
    "strides_along_k_taken_to_be_1": GemmMutant(
        "rows", "scales are always loaded as if they were row-major",
        (Change(r"scales\.k_stride != 1 \|\| "),),
        (NUMBERS, PAST_THE_END),
        Problem(140, 260, 2048, scale_step=2),
    ),
    "chunks_wherever_rows_begin": GemmMutant(
        "rows", "sixteen scales are loaded at once from any address",
        (Change(r"return places % 16 == 0 \? 16 : 4;", "return 16;"),),
        (Found("misaligned", ANYWHERE, "arrange"), PAST_THE_END), WORDS,
    ),
    "second_columns_have_the_scales_of_the_first": GemmMutant(
        "rows", "the second 128 columns of a tile have the scales of the first",
        (Change(r"tile\.column / kAtomRows \+ rows - 1", "tile.column / kAtomRows"),), (NUMBERS,),
        CHUNKS,
    ),
    "atoms_of_columns_in_the_place_of_the_first": GemmMutant(
        "rows", "the atoms of all columns go to the place of the first",
        (Change(r"kScaleBOffset \+ kScaleABytes \* \(rows - 1\)", "kScaleBOffset"),),
        (NUMBERS, Found("race", "store_shared_chunk", "arrange"),
         Found("uninitialised", COPY, "mma")), CHUNKS,
    ),
    "scales_of_the_other_operand": GemmMutant(
        "rows", "the warp for A has the scales of B",
        (Change(r"\? a_scales : b_scales", "? b_scales : a_scales"),),
        (NUMBERS, PAST_THE_END), CHUNKS,
    ),
    "an_arrival_too_few": GemmMutant(
        "rows", "a block counts as there without the scales of its last columns",
        (Change(r"kInputFullArrivals = 4", "kInputFullArrivals = 3"),),
        (Found("race", COPY, "mma"), Found("over-arrival", ANYWHERE, "")), CHUNKS, in_header=True,
    ),
    "peer_arranges_the_rows_of_the_leader": GemmMutant(
        "rows_pair", "the second half of the pair's rows has the scales of the first",
        (Change(r"(first_row = tile\.row) \+ rank \* kBM", r"\1"),), (NUMBERS,), PAIRS,
    ),
    "arrived_without_release": GemmMutant(
        "rows_pair", "the peer's stores are not released to the leader",
        (Change(ARRIVAL,
                "mbarrier_arrive_remote(leader_address<kCtaGroup>(inputs.producer_mbar()))"),),
        (Found("race", COPY, "mma"),), PAIRS,
    ),
    "waited_without_acquire": GemmMutant(
        "rows_pair", "the leader does not acquire what the peer has stored",
        (Change(r"mbarrier_wait_acquire_shared\(inputs\.full\([^;]*;", "inputs.wait_producer();"),),
        (Found("race", COPY, "mma"),), PAIRS,
    ),
    "arrived_in_the_own_cta": GemmMutant(
        "rows_pair", "the peer's warps arrive on barriers that nobody waits on",
        (Change(ARRIVAL, "mbarrier_arrive_release_shared(inputs.producer_mbar())"),),
        (Found("deadlock", ANYWHERE, ""),), PAIRS,
    ),
}  # fmt: skip

MUTANTS: Final = {**ARRANGED, **OVERLAP, **BYTES, **PLACES, **ORDER}
