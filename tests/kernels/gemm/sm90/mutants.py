"""Mutants of the matrix product for Hopper, and the emulator's findings on each."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.emulation import Problem
from tests.kernels.gemm.sm100.mutants import GemmMutant
from tests.kernels.source_mutation import Change, Found, line

_SMALL: Final = {"arch": "sm_90a", "BM": 128, "BN": 128, "num_stages": 2, "num_epi_stages": 2}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "shared": {**_SMALL, "cta_group": 1, "ping_pong": False},
    "residual": {**_SMALL, "cta_group": 1, "ping_pong": False, "residual": "matrix"},
    "pair": {**_SMALL, "cta_group": 2, "ping_pong": False, "residual": "matrix"},
    "narrow": {**_SMALL, "cta_group": 1, "ping_pong": False, "BN": 80, "residual": "matrix"},
    "swapped": {
        "arch": "sm_90a",
        "BM": 32,
        "BN": 128,
        "num_stages": 2,
        "num_epi_stages": 2,
        "swap_operands": True,
        "residual": "matrix",
    },
    "split": {**_SMALL, "BN": 64, "split_k": 2, "residual": "matrix"},
    "turns": {**_SMALL, "cta_group": 1, "ping_pong": True, "BN": 64},
    "four": {**_SMALL, "BM": 64, "BN": 64, "cta_group": 4, "residual": "matrix"},
    "four in turn": {**_SMALL, "BM": 64, "BN": 80, "cta_group": 4},
    "across": {**_SMALL, "BN": 64, "cta_group": 2, "share": "a", "ping_pong": False},
    "short ends": {**_SMALL, "cta_group": 1, "ping_pong": False, "short_ends": True},
    "ring": {**_SMALL, "num_epi_stages": "auto", "ping_pong": False, "output_in_ring": True},
    "ring of a pair": {
        **_SMALL,
        "BM": 64,
        "BN": 64,
        "cta_group": 2,
        "share": "a",
        "output_in_ring": True,
        "short_ends": True,
    },
    "grid": {**_SMALL, "BM": 64, "BN": 64, "cta_group": 8, "ping_pong": False},
    "side by side": {**_SMALL, "BM": 40, "BN": 64, "BK": 64, "cta_group": 4, "swap_operands": True},
}
TILES: Final = Problem(400, 200, 150)
SQUARES: Final = Problem(260, 260, 64, beta=1.0)
NUMBERS: Final = Found("numbers", "", "")
WAIT: Final = "mbarrier_wait"


UPSTREAM: Final[dict[str, GemmMutant]] = {
    "residual_row_and_column_swapped": GemmMutant(
        "residual", "the coordinates of C go to TMA as (row, column)",
        (Change(r"(tma_load_3d\(slot, c_map), (ahead\S+), (first_row \+ ahead\.row\(tile\))",
                r"\1, \3, \2"),),
        (NUMBERS,), SQUARES,
    ),
    "residual_stepped_by_panels": GemmMutant(
        "residual", "a panel's width is taken for the distance of tiles",
        (Change(r"c_map, ahead\.column\(tile\)",
                "c_map, ahead.column(tile) - tile.column + tile.column / kBN * kOutPanelColumns"),),
        (NUMBERS,), SQUARES,
    ),
    "one_residual_a_tile": GemmMutant(
        "residual", "only the first panel of C is loaded",
        (Change(r"c_map, ahead\.column\(tile\), first_row \+ ahead\.row\(tile\)",
                "c_map, tile.column, first_row + tile.row"),),
        (NUMBERS,), SQUARES,
    ),
}  # fmt: skip

WAITS: Final[dict[str, GemmMutant]] = {
    "slot_released_before_its_products": GemmMutant(
        "shared", "the slot of the running block is released instead of the last one's",
        (Change(r"release\(previous\);\n      }", "release(stage);\n      }"),),
        (Found("race", "tma_load_3d", "load"), Found("over-arrival", "mbarrier_arrive", "consume"),
         Found("deadlock", WAIT, "load", "input_empty[")),
    ),
    "products_not_waited_for": GemmMutant(
        "shared", "sums are read while wgmma still adds to them",
        (Change(line(r"wgmma_wait<0>\(\)")),),
        (Found("wgmma-read-early", "output_value", "consume"), NUMBERS,
         Found("race", "tma_load_3d", "load")),
    ),
    "input_not_waited_for": GemmMutant(
        "shared", "products read a block that has not landed",
        (Change(line(r"input\.wait_producer\(\)")),),
        (Found("race", "wgmma_m64n128k16_add_if", "consume"), Found("race", "tma_load_3d", "load"),
         Found("uninitialised", "wgmma_m64n128k16_add_if", "consume")),
    ),
    "half_of_the_bytes_expected": GemmMutant(
        "shared", "the loader expects A alone",
        (Change(r"kABytes \+ kBBytes\);", "kABytes);"),),
        (Found("race", "wgmma_m64n128k16_add_if", "consume"),
         Found("over-arrival", "tma_load_3d", "load"),
         Found("deadlock", WAIT, "consume", "input_full[")),
    ),
    "stored_panel_overwritten": GemmMutant(
        "shared", "the slot is freed while the store reads it",
        (Change(line(r"tma_store_wait_read\(\)") + r"(?=\n      done)"),),
        (Found("race", "store_matrices", "consume", "after the tensor store"),),
    ),
    "panel_stored_before_it_is_written": GemmMutant(
        "shared", "one lane arrives before the others of its warp have written",
        (Change(line(r"__syncwarp\(\)") + r"(?=\n        if \(lane)"),),
        (Found("race", "tma_store_3d", "transfer", "after the write by consume"),
         Found("missing-proxy-fence", "tma_store_3d", "transfer")),
    ),
    "written_without_proxy_fence": GemmMutant(
        "shared", "no fence between the writes to the panel and the store that reads them",
        (Change(line(r"fence_proxy_async_shared\(\)")),),
        (Found("missing-proxy-fence", "tma_store_3d", "transfer"),),
    ),
    "slot_released_by_31_lanes": GemmMutant(
        "turns", "31 phases complete at once, an odd number: the loader's next wait passes",
        (Change(r"if \(threadIdx\.x % 32 == 0\)(?= \{\n +mbarrier_arrive\(input\.empty)",
                "if (threadIdx.x % 32 != 0)"),),
        (Found("over-arrival", "mbarrier_arrive", "consume", "complete phase"),),
    ),
    "turns_not_waited_for": GemmMutant(
        "turns", "both warpgroups multiply, and cannot distinguish two uses of a slot",
        (Change(line(r"self\.wait_turn\(\)")),),
        (Found("race", "wgmma_m64n64k16_add_if", "consume"),
         Found("uninitialised", "wgmma_m64n64k16_add_if", "consume"),
         Found("over-arrival", "mbarrier_arrive", "consume"),
         Found("phase-lap", "mbarrier_arrive", "consume"), Found("phase-lap", WAIT, "load")),
        Problem(600, 150, 150),
    ),
}  # fmt: skip

PAIRS: Final[dict[str, GemmMutant]] = {
    "arrival_in_the_peer_dropped": GemmMutant(
        "pair", "the peer's loader is not signalled that a slot of B is free",
        (Change(line(r"mbarrier_arrive_remote\(peer[^;]*")),),
        (Found("deadlock", WAIT, "load", "input_empty["),), Problem(600, 200, 300),
    ),
    "peer_not_waited_for": GemmMutant(
        "pair", "the loader waits for the consumers of its own CTA",
        (Change(r"EmptySlots, kInputEmptyArrivals", "EmptySlots, kInputEmptyArrivals / 2"),
         Change(line(r"mbarrier_arrive_remote\(peer[^;]*"))),
        (Found("race", "tma_load_multicast_3d", "load"),
         Found("race", "wgmma_m64n128k16_add_if", "consume"),
         Found("over-arrival", "tma_load_multicast_3d", "load"),
         # bytes of the next use count for this one, and a role waits for ever
         Found("deadlock", "mbarrier_wait", "")),
        Problem(600, 200, 600),
    ),
    "peer_brings_the_same_half": GemmMutant(
        "pair", "both CTAs load the first half of B",
        (Change(r"tile\.column \+ first_line", "tile.column"),), (NUMBERS,),
    ),
    "left_while_the_peer_loads": GemmMutant(
        "pair", "a CTA may be gone when the peer's copies arrive",
        (Change(line(r"cluster_sync\(\)") + r"(?=\n(?:#endif\n)?})"),),
        (Found("early-exit", "tma_load_multicast_3d", ""),
         Found("early-exit", "mbarrier_arrive_remote", "")),
    ),
}  # fmt: skip

FOURS: Final[dict[str, GemmMutant]] = {
    "only_two_of_four_are_signalled": GemmMutant(
        "four", "the loaders of two CTAs wait for warps that never arrive",
        (Change(r"threadIdx\.x % 32 < kCtaGroup\)", "threadIdx.x % 32 < 2)"),),
        (Found("deadlock", WAIT, "load", "input_empty["),), Problem(600, 200, 300),
    ),
    "others_not_waited_for": GemmMutant(
        "four", "parts of B are sent to CTAs whose barriers may not be ready",
        (Change(line(r"  cluster_wait\(\)") + r"(?=\n  for \(int32 index)"),),
        (Found("race", "tma_load_multicast_3d", ""),
         Found("barrier-misuse", "tma_load_multicast_3d", "load")),
        Problem(600, 200, 300),
    ),
    "early_blocks_expected_twice": GemmMutant(
        "four", "the first blocks of A are loaded and expected once more",
        (Change(r"if \(early > 0\)", "if (early < 0)"),),
        (Found("over-arrival", "mbarrier_arrive_expect_tx", "load"),), Problem(600, 200, 300),
    ),
}  # fmt: skip

IN_TURN: Final[dict[str, GemmMutant]] = {
    "expected_before_the_slot_is_waited_for": GemmMutant(
        "four in turn", "consumers may be done with a block of others before its loader looks",
        (Change(r"(load_a\(base \+ kAOffset \+ kABytes \* block,)",
                r"mbarrier_arrive_expect_tx(input.full(block), kABytes + kBBytes);\n    \1"),
         Change(r"(mbarrier_arrive_expect_tx\(stage\.mbar\(\), kABytes \+ kBBytes\);)",
                r"if (early == 0) \1")),
        (Found("phase-lap", "mbarrier_arrive", "consume"), Found("phase-lap", WAIT, "load"),
         Found("phase-lap", "", ""), Found("deadlock", WAIT, "load")),
        Problem(600, 200, 300),
    ),
    "a_block_that_nobody_brings": GemmMutant(
        "four in turn", "the turns of three CTAs go round",
        (Change(r"\(turn \+ 1\) % kCtaGroup", "(turn + 1) % kCtaGroup + 1"),),
        (Found("deadlock", WAIT, ""), Found("deadlock", WAIT, "consume")),
        Problem(600, 200, 300),
    ),
    "rows_of_the_first_cta_in_all": GemmMutant(
        "side by side", "every CTA writes the columns of the first one",
        (Change(r"rank \* kBN \+ consumer", "consumer"),),
        (NUMBERS, Found("race", "tma_store_3d", "")), Problem(90, 600, 300),
    ),
    "columns_of_the_first_cta_in_all": GemmMutant(
        "across", "every CTA loads the columns of the first one",
        (Change(r"tile\.column \+ rank \* kBN", "tile.column"),), (NUMBERS,),
    ),
    "columns_stored_by_both": GemmMutant(
        "across", "every CTA stores to the columns of the first one",
        (Change(r"rank \* kBN, consumer", "0, consumer"),),
        (NUMBERS, Found("race", "tma_store_3d", "")),
    ),
    "slot_handed_back_while_it_is_stored": GemmMutant(
        "short ends", "no store is waited for before the consumer writes to the slot again",
        (Change(line(r"if \(ahead\.index < problem\.num_tiles\) tma_store_wait_read\(\)")),),
        (Found("race", "store_matrices", "consume"), Found("race", "tma_store_3d", "transfer"),
         Found("race", "", "")), Problem(600, 200, 100),
    ),
    "left_while_the_last_slots_are_stored": GemmMutant(
        "short ends", "a CTA may be gone before its last stores have read its shared memory",
        (Change(r"\n  tma_store_wait_read\(\);[^\n]*(?=\n})", ""),),
        (Found("early-exit", "tma_store_3d", ""), Found("race", "", "")),
    ),
    "panel_with_rows_that_are_not_stored": GemmMutant(
        "side by side", "a slot has as many rows as are stored, and the last 8 overwrite the next",
        (Change(r"kEpiBytes \* \(consumer", "kEpiBytes / 6 * 5 * (consumer"),),
        (NUMBERS, Found("race", "store_matrices_transposed", ""),
         Found("race", "tma_store_3d", ""), Found("race", "tma_store_3d", "transfer"),
         Found("race", "store_matrices_transposed", "consume")),
        Problem(90, 600, 300),
    ),
}  # fmt: skip

_GRID: Final = Problem(400, 600, 300)
GRIDS: Final[dict[str, GemmMutant]] = {
    "a_row_is_sent_to_half_of_itself": GemmMutant(
        "grid", "two CTAs of a row wait for parts of A that others keep to themselves",
        (Change(r"\(1 << kClusterColumns\) - 1", "(1 << kClusterColumns / 2) - 1"),),
        (Found("deadlock", WAIT, ""), Found("deadlock", WAIT, "consume", "input_full["),
         Found("over-arrival", "tma_load_multicast_to_3d", "load")), _GRID,
    ),
    "a_column_is_sent_to_the_first_one": GemmMutant(
        "grid", "every CTA brings its part of B to the first column",
        (Change(r"<< rank % kClusterColumns;", "<< 0;"),),
        (Found("deadlock", WAIT, ""), Found("over-arrival", "tma_load_multicast_to_3d", ""),
         Found("over-arrival", "tma_load_multicast_to_3d", "load")), _GRID,
    ),
    "rows_of_the_first_row_in_both": GemmMutant(
        "grid", "both rows of the cluster load the same rows of A",
        (Change(r"rank / kClusterColumns \* kBM \+ first_line", "first_line"),), (NUMBERS,), _GRID,
    ),
    "only_the_row_is_signalled": GemmMutant(
        "grid", "the other CTA of the column is not signalled that a slot of B is free",
        (Change(r"kClusterRows \+ kClusterColumns - 1\)", "kClusterColumns)"),),
        (Found("deadlock", WAIT, "load", "input_empty["),), _GRID,
    ),
    "the_column_is_not_waited_for": GemmMutant(
        "grid", "B is overwritten in the other CTA of the column, which may still read it",
        (Change(r"kClusterRows \+ kClusterColumns - 1\)", "kClusterColumns)"),
         Change(r"EmptySlots, kInputEmptyArrivals", "EmptySlots, kInputEmptyArrivals / 5 * 4")),
        (Found("race", "tma_load_multicast_to_3d", "load"),
         Found("race", "wgmma_m64n64k16_add_if", "consume"),
         Found("over-arrival", "tma_load_multicast_to_3d", "load"),
         Found("phase-lap", WAIT, "load"), Found("phase-lap", WAIT, "consume"),
         Found("deadlock", WAIT, "")),
        Problem(400, 600, 900),
    ),
    "stored_over_the_row_above": GemmMutant(
        "grid", "the lower row of the cluster stores where the upper one does",
        (Change(r"rank / kClusterColumns \* kBM \+ consumer", "consumer"),),
        (NUMBERS, Found("race", "tma_store_3d", ""), Found("race", "tma_store_3d", "transfer")),
        _GRID,
    ),
}  # fmt: skip

NARROW: Final[dict[str, GemmMutant]] = {
    "narrow_panel_stored_whole": GemmMutant(
        "narrow", "the last panel of a tile is stored with the columns of the next tile",
        (Change(r"done\.is_last\(\) \? out_last_map : out_map", "out_map"),),
        (NUMBERS, Found("uninitialised", "tma_store_3d", "transfer"),
         Found("race", "tma_store_3d", "transfer"), Found("race", "tma_store_3d", "")),
        Problem(200, 170, 64, beta=1.0),
    ),
    "narrow_panel_of_c_loaded_whole": GemmMutant(
        "narrow", "more bytes of C arrive for the last panel than its barrier expects",
        (Change(r"ahead\.is_last\(\) \? c_last_map : c_map", "c_map"),),
        (Found("over-arrival", "tma_load_3d", "transfer"),
         Found("deadlock", WAIT, "consume", "epi")),
        Problem(200, 170, 64, beta=1.0),
    ),
    "narrow_panel_of_c_expected_whole": GemmMutant(
        "narrow", "the last panel of C is waited for with the bytes of a whole one",
        (Change(r"ahead\.is_last\(\) \? kMmaRows \* kLastPanelColumns \* 2 : kEpiBytes",
                "kEpiBytes"),),
        (Found("deadlock", WAIT, "consume", "epi"),), Problem(200, 170, 64, beta=1.0),
    ),
}  # fmt: skip

_FEW_ROWS: Final = Problem(40, 300, 200, beta=1.0)
SWAPPED: Final[dict[str, GemmMutant]] = {
    "pieces_not_transposed": GemmMutant(
        "swapped", "rows of the sums are written as rows of the output",
        (Change(r"store_matrices_transposed\(address, output", "store_matrices(address, output"),
         Change(r"store_matrices_transposed\(uint32", "store_matrices(uint32"),
         Change(r"x4\.trans\.shared\.b16 \[%0\]", "x4.shared.b16 [%0]")),
        (NUMBERS,), _FEW_ROWS,
    ),
    "pieces_of_c_not_transposed": GemmMutant(
        "swapped", "C is read as if its rows were those of the sums",
        (Change(r"x4\.trans\.shared\.b16 \{", "x4.shared.b16 {"),), (NUMBERS,), _FEW_ROWS,
    ),
    "columns_of_the_first_consumer": GemmMutant(
        "swapped", "every warpgroup multiplies the first columns of B",
        (Change(r"\+ b_step\(0, column\)\)", "+ b_step(0, 0))"),), (NUMBERS,), _FEW_ROWS,
    ),
    "panels_of_the_first_consumer": GemmMutant(
        "swapped", "every transfer warp stores to the first columns",
        (Change(r"slot, first_column \+ done", "slot, done"),),
        (NUMBERS, Found("race", "tma_store_3d", ""), Found("race", "tma_store_3d", "transfer"),
         Found("unwritten-output", "", "")),
        _FEW_ROWS,
    ),
}  # fmt: skip

_LONG: Final = Problem(400, 200, 500)
SPLIT: Final[dict[str, GemmMutant]] = {
    "sums_of_the_peer_not_waited_for": GemmMutant(
        "split", "sums are added before those of the peer have arrived",
        (Change(line(r"mbarrier_wait_acquire_shared\(full, parity\)")),),
        (Found("race", "load_shared_chunk", "consume"),
         Found("race", "store_async_floats", "consume"),
         Found("uninitialised", "load_shared_chunk", "consume"), NUMBERS,
         Found("over-arrival", "", "")),
        _LONG,
    ),
    "sums_sent_over_those_not_read": GemmMutant(
        "split", "sums are sent before the peer has read the last ones",
        (Change(line(r"mbarrier_wait_acquire_shared\(base \+ kSumsEmpty[^;]*")),),
        (Found("race", "store_async_floats", "consume"),
         Found("race", "load_shared_chunk", "consume"),
         Found("over-arrival", "", ""), Found("phase-lap", "", ""), Found("deadlock", WAIT, ""),
         Found("deadlock", "mbarrier_wait_acquire_shared", "")),
        Problem(900, 200, 500),
    ),
    "reading_of_sums_not_signalled": GemmMutant(
        "split", "the peer is not signalled that its sums have been read",
        (Change(r"\n *if \(threadIdx\.x % 32 == 0\) mbarrier_arrive_release_shared\(peer[^;]*;"),),
        (Found("deadlock", "mbarrier_wait_acquire_shared", "consume", "sums_empty["),),
        Problem(900, 200, 300),
    ),
    "both_work_on_the_first_half": GemmMutant(
        "split", "both CTAs multiply the first half of k",
        (Change(r"Blocks\{half, problem\.num_blocks\(\)\}", "Blocks{0, half}"),), (NUMBERS,), _LONG,
    ),
    "a_turn_is_never_the_peers": GemmMutant(
        "split", "the first CTA adds up every tile, and the second's transfer warp waits",
        (Change(r"if \(\(tiles\+\+ \+ consumer\) % kSplitK == rank\)",
                "if (tiles++ >= 0 && rank == 0)"),),
        (Found("over-arrival", "mbarrier_arrive_expect_tx", "consume"), NUMBERS,
         Found("deadlock", "mbarrier_wait_acquire_shared", "consume")),
        _LONG,
    ),
}  # fmt: skip

_MANY: Final = Problem(600, 300, 200)
RING: Final[dict[str, GemmMutant]] = {
    "loaded_over_the_output": GemmMutant(
        "ring", "the loader fills the ring while the stores read the output from it",
        (Change(line(r"mbarrier_wait\(base \+ kRingFree, parity\)")),),
        (Found("race", "tma_load_3d", "load"), Found("race", "store_matrices", "consume"),
         Found("race", "tma_store_3d", "transfer")), _MANY,
    ),
    "output_over_blocks_that_are_read": GemmMutant(
        "ring", "a warpgroup writes its output where another one's products read",
        (Change(line(r"named_barrier_sync\(kRingBarrier[^;]*")),),
        (Found("race", "store_matrices", "consume"),
         Found("race", "wgmma_m64n128k16_add_if", "consume")), _MANY,
    ),
    "ring_free_after_the_first_panel": GemmMutant(
        "ring", "the loader is let go while other panels of the tile are in the ring",
        (Change(r"if \(done\.panel == 0 && done\.index < problem\.num_tiles &&",
                "if (done.panel == 1 && done.index + tile_step < problem.num_tiles &&"),),
        (Found("race", "tma_load_3d", "load"), Found("race", "store_matrices", "consume"),
         Found("race", "tma_store_3d", "transfer")), _MANY,
    ),
    "parity_of_the_tile_before": GemmMutant(
        "ring", "the loader takes the phase before for the one that it needs",
        (Change(r"uint32 parity = 1;", "uint32 parity = 0;"),),
        (Found("race", "tma_load_3d", "load"), Found("race", "store_matrices", "consume"),
         Found("race", "tma_store_3d", "transfer"), Found("phase-lap", WAIT, "load"),
         Found("deadlock", WAIT, "load", "ring_free[")), _MANY,
    ),
    "panels_past_the_ring": GemmMutant(
        "ring", "the output begins where the ring ends, and overwrites the barriers",
        (Change(r"return base \+ kEpiOffset \+", "return base + kEpiOffset + kInputFull +"),),
        (Found("barrier-misuse", "store_matrices", "consume"), Found("barrier-misuse", "", ""),
         Found("race", "store_matrices", "consume"), Found("deadlock", WAIT, ""),
         Found("out-of-bounds", "store_matrices", "consume")), _MANY,
    ),
    "freed_while_the_last_store_reads": GemmMutant(
        "ring of a pair", "with short ends the stores of a tile are not waited for",
        (Change(line(r"tma_store_wait_read\(\)") + r"(?=\n        // ring_free)"),),
        (Found("race", "tma_load_multicast_3d", "load"), Found("race", "tma_load_3d", "load"),
         Found("race", "store_matrices", "consume")), _MANY,
    ),
    "only_its_own_loader_is_let_go": GemmMutant(
        "ring of a pair", "the peer's loader waits for an arrival that does not come",
        (Change(r"cta < kCtaGroup; \+\+cta", "cta < 1; ++cta"),),
        (Found("deadlock", "mbarrier_wait_acquire_shared", "load", "ring_free["),
         Found("over-arrival", "mbarrier_arrive_release_shared", "transfer"),
         Found("race", "tma_load_multicast_3d", "load")), _MANY,
    ),
    "ring_of_the_peer_not_waited_for": GemmMutant(
        "ring of a pair", "half of A is sent into a ring that the peer's output is still in",
        (Change(r"kRingFree, kRingFreeArrivals", "kRingFree, kRingFreeArrivals / 2"),
         Change(r"map_to_cta\(base \+ kRingFree, cta\)",
                "map_to_cta(base + kRingFree, cluster_rank())"),
         Change(r"cta < kCtaGroup; \+\+cta", "cta < 1; ++cta")),
        (Found("race", "tma_load_multicast_3d", "load"), Found("race", "store_matrices", "consume"),
         Found("race", "tma_store_3d", "transfer")), _MANY,
    ),
}  # fmt: skip

_MOST: Final = {
    **UPSTREAM,
    **WAITS,
    **PAIRS,
    **FOURS,
    **GRIDS,
    **IN_TURN,
    **NARROW,
    **SWAPPED,
    **SPLIT,
}
MUTANTS: Final = {**_MOST, **RING}
