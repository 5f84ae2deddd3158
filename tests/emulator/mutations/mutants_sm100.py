"""Mutants of the kernels for Blackwell."""

from __future__ import annotations

from typing import Final

from tests.emulator.mutations.mutant import Edit, Found, Mutant
from tests.emulator.mutations.mutants_sm90 import WAIT_EMPTY, generic

GEMM: Final = (
    Mutant(
        "store_fence", "gemm_sm100", "PF",
        "stores of the epilogue are not fenced for the TMA store",
        "B3 B7 B8", (Edit("      FENCE_PROXY_ASYNC();\n"),),
        (Found("missing-proxy-fence", "TMA_STORE(", "epilogue"),),
    ),
    Mutant(
        "operand_fence", "gemm_sm100", "PF", "an operand is patched by a store without a fence",
        "B6 B12",
        (Edit("          for (int k = 0; k < kDepth / 16; ++k) {\n",
              "          STORE_SHARED(stage, 0);\n"
              "          for (int k = 0; k < kDepth / 16; ++k) {\n"),),
        (Found("missing-proxy-fence", "MMA(", "issuer"),),
    ),
    Mutant(
        "wait_loads", "gemm_sm100", "TF", "an accumulator is released while it is being loaded",
        "B18 B19 B20", (Edit("      TMEM_WAIT_LOADS();\n"),),
        (Found("missing-tcgen05-wait", "MMA(", "issuer"),),
    ),
    Mutant(
        "fence_before", "gemm_sm100", "TF", "no tcgen05.fence before an accumulator is released",
        "B21", (Edit("      FENCE_BEFORE();\n      ARRIVE", "      ARRIVE"),),
        (Found("missing-tcgen05-fence", "MMA(", "issuer"),), "review",
    ),
    Mutant(
        "fence_after", "gemm_sm100", "TF", "no tcgen05.fence after the wait for an accumulator",
        "B21", (Edit("& 1);\n      FENCE_AFTER();", "& 1);"),),
        (Found("missing-tcgen05-fence", "TMEM_LOAD(", "epilogue"),), "review",
    ),
    Mutant(
        "fence_issuer", "gemm_sm100", "TF",
        "no tcgen05.fence after the wait for a free accumulator",
        "B21", (Edit("^ 1);\n        FENCE_AFTER();", "^ 1);"),),
        (Found("missing-tcgen05-fence", "MMA(", "issuer"),), "review",
    ),
    Mutant(
        "no_done_wait", "gemm_sm100", "WT",
        "an accumulator is loaded before its products are complete",
        "B20", (Edit("      WAIT(done + 8 * buffer, count / kAccumulators & 1);\n"),),
        (Found("uninitialised", "TMEM_LOAD(", "epilogue"), Found("race", "TMEM_LOAD(", "epilogue")),
    ),
    Mutant(
        "no_full_wait", "gemm_sm100", "WT", "a stage is multiplied before it is full",
        "", (Edit("          WAIT(full + 8 * slot, n / kStages & 1);\n"),),
        (Found("race", "MMA(", "issuer"), Found("uninitialised", "MMA(", "issuer")),
    ),
    Mutant(
        "arrive_for_commit", "gemm_sm100", "WT", "a stage is released at the issue of its products",
        "B55", (Edit("COMMIT(empty + 8 * slot)", "ARRIVE(empty + 8 * slot)"),),
        (Found("race", "TMA_LOAD(", "loader"),),
    ),
    Mutant(
        "staging_reused", "gemm_sm100", "WT", "staging memory is written while a store reads it",
        "B52 B56", (Edit("      if (threadIdx.x == 0) STORE_WAIT_READ();\n"),),
        (Found("race", "STORE_SHARED4(", "epilogue"),),
    ),
    Mutant(
        "no_free_wait", "gemm_sm100", "PH",
        "products overwrite an accumulator that is being loaded",
        "B59", (Edit("        WAIT(free + 8 * buffer, (count / kAccumulators & 1) ^ 1);\n"),),
        (Found("race", "MMA(", "issuer"),),
    ),
    Mutant(
        "free_parity", "gemm_sm100", "PH",
        "parity of the tile instead of the round of accumulators",
        "B24", (Edit("(count / kAccumulators & 1) ^ 1", "(count & 1) ^ 1"),),
        (Found("deadlock", "WAIT(free", "issuer"), Found("race", "MMA(", "issuer")),
    ),
    Mutant(
        "free_count", "gemm_sm100", "AC", "a barrier counts warps, all threads arrive",
        "B23", (Edit("BARRIER_INIT(free + 8 * slot, 128)", "BARRIER_INIT(free + 8 * slot, 4)"),),
        (Found("over-arrival", "ARRIVE(free", "epilogue"), Found("race", "MMA(", "issuer"),
         Found("deadlock", "WAIT(free", "issuer")),
    ),
    Mutant(
        "no_commit", "gemm_sm100", "AC", "nothing releases a stage",
        "", (Edit("          COMMIT(empty + 8 * slot);\n"),),
        (Found("deadlock", WAIT_EMPTY, "loader"),),
    ),
    Mutant(
        "all_lanes_issue", "gemm_sm100", "AC", "every lane of the warp issues the products",
        "", (Edit("if (threadIdx.x == 160)", "if (threadIdx.x >= 160)"),),
        (Found("race", "MMA(", "issuer"),),
    ),
    Mutant(
        "dealloc_early", "gemm_sm100", "TD", "tensor memory is freed while others use it",
        "B38",
        (Edit("  __syncwarp();\n  FENCE_BEFORE();\n  __syncthreads();\n", "  __syncwarp();\n"),),
        (Found("tensor-memory", "TMEM_DEALLOC(", "issuer"),),
    ),
    Mutant(
        "no_dealloc", "gemm_sm100", "TD", "tensor memory is not freed",
        "", (Edit("    TMEM_DEALLOC(1, columns, kTmemColumns);\n"),),
        (Found("tensor-memory", "TMEM_ALLOC(", "issuer"),),
    ),
    Mutant(
        "address_early", "gemm_sm100", "TD",
        "the address of tensor memory is read before the barrier",
        "B40",
        (Edit("  FENCE_BEFORE();\n  __syncthreads();\n  FENCE_AFTER();\n  u32 columns;\n"
              "  LOAD_SHARED_WORD(columns, base + kSlot);\n",
              "  u32 columns;\n  LOAD_SHARED_WORD(columns, base + kSlot);\n"
              "  FENCE_BEFORE();\n  __syncthreads();\n  FENCE_AFTER();\n"),),
        (Found("race", "TMEM_ALLOC(", "issuer"), Found("race", "LOAD_SHARED_WORD(", ""),
         Found("uninitialised", "LOAD_SHARED_WORD(", "")),
    ),
    Mutant(
        "too_few_columns", "gemm_sm100", "TD", "columns of one accumulator, two are used",
        "", (Edit("kTmemColumns = kAccumulators * kColumns", "kTmemColumns = kColumns"),),
        (Found("tensor-memory", "MMA(", "issuer"),),
    ),
    Mutant(
        "overlap", "gemm_sm100", "OV", "the accumulators overlap by half",
        "B36", (Edit("columns + buffer * kColumns", "columns + buffer * 32", 2),),
        (Found("race", "MMA(", "issuer"), Found("race", "TMEM_LOAD(", "epilogue")),
    ),
    Mutant(
        "quarter", "gemm_sm100", "OV", "a warp names lanes of tensor memory that belong to another",
        "", (Edit("(warp << 21)", "((warp ^ 1) << 21)"),),
        (Found("tensor-memory", "TMEM_LOAD(", "epilogue"),), "review",
    ),
    Mutant(
        "no_store_barrier", "gemm_sm100", "NS", "one thread stores what others are still writing",
        "B37", (Edit("      NAMED_BARRIER(2, 128);\n"),),
        (Found("race", "TMA_STORE(", "epilogue"),),
    ),
    Mutant(
        "epilogue_short", "gemm_sm100", "RO", "the epilogue leaves out the first tile",
        "B34",
        (Edit("    int count = 0;\n    for (int tile = blockIdx.x; tile",
              "    int count = 0;\n    for (int tile = blockIdx.x + 1; tile"),),
        (Found("tensor-memory", "TMEM_DEALLOC(", "issuer"), Found("deadlock", "WAIT(", "")),
    ),
)  # fmt: skip

PAIR: Final = (
    Mutant(
        "init_fence", "pair_sm100", "IN", "no fence after the initialisation of barriers",
        "B5", (Edit("    FENCE_BARRIER_INIT();\n"),),
        (Found("missing-init-fence", "TMA_LOAD_PAIR(", ""),), "review",
    ),
    Mutant(
        "dealloc_sync", "pair_sm100", "TD", "tensor memory is freed before the peer is done",
        "B38 B39",
        (Edit("reach this CTA until here\n  CLUSTER_SYNC();", "reach\n  __syncthreads();"),),
        (Found("early-exit", "ARRIVE_AT(free", ""), Found("tensor-memory", "TMEM_DEALLOC(", "")),
    ),
    Mutant(
        "half_the_bytes", "pair_sm100", "AC", "bytes of one CTA are expected where both signal",
        "B28", (Edit("2 * kStageBytes);", "kStageBytes);"),),
        (Found("race", "MMA_PAIR(", "issuer"), Found("deadlock", "WAIT_CLUSTER(full", "issuer")),
    ),
    Mutant(
        "both_expect", "pair_sm100", "AC", "both CTAs expect the bytes of the pair",
        "B29", (Edit("if (rank == 0) EXPECT", "EXPECT"),),
        (Found("over-arrival", "EXPECT(", "loader"), Found("deadlock", "WAIT_CLUSTER(", "")),
    ),
    Mutant(
        "own_barrier", "pair_sm100", "CL",
        "the odd CTA signals its own barrier, not the even one's",
        "B49", (Edit("full + 8 * slot & kEven", "full + 8 * slot", 2),),
        (Found("deadlock", "WAIT_CLUSTER(full", "issuer"),),
    ),
    Mutant(
        "free_local", "pair_sm100", "CL", "the odd CTA's epilogue arrives at its own barrier",
        "B49", (Edit("ARRIVE_AT(free, 0)", "ARRIVE(free)"),),
        (Found("deadlock", "WAIT_CLUSTER(free", "issuer"),),
    ),
    Mutant(
        "commit_one", "pair_sm100", "CL", "a commit releases the stage of one CTA only",
        "B49",
        (Edit("COMMIT_PAIR(empty + 8 * slot)",
              'asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64'
              ' [%0];" ::"r"(empty + 8 * slot) : "memory")'),),
        (Found("deadlock", "WAIT_CLUSTER(empty", "loader"),),
    ),
    Mutant(
        "no_drain", "pair_sm100", "CL",
        "a CTA leaves while commits are on their way to its barriers",
        "",
        (Edit("      for (int i = 0; i < kStages; ++i, ++n) "
              "WAIT_CLUSTER(empty + 8 * (n % kStages), (n / kStages & 1) ^ 1);\n"),
         # commits of a thread complete in order: one that is waited for must not come last
         Edit("          COMMIT_PAIR(empty + 8 * slot);\n        }\n        COMMIT_PAIR(done);\n",
              "          if (step == steps - 1) COMMIT_PAIR(done);\n"
              "          COMMIT_PAIR(empty + 8 * slot);\n        }\n")),
        (Found("early-exit", "COMMIT_PAIR(empty", ""),),
    ),
)  # fmt: skip

ATTENTION: Final = (
    Mutant(
        "store_fence", "attention_sm100", "PF", "outputs are not fenced for the TMA store",
        "B60", (Edit("          FENCE_PROXY_ASYNC();\n"),),
        (Found("missing-proxy-fence", "TMA_STORE(", "correction"),),
    ),
    Mutant(
        "wait_weights", "attention_sm100", "TF",
        "weights are announced while they are being stored",
        "B17", (Edit("      TMEM_WAIT_STORES();\n      FENCE_BEFORE", "      FENCE_BEFORE"),),
        (Found("missing-tcgen05-wait", "MMA_A_IN_TMEM(", "issuer"),),
    ),
    Mutant(
        "wait_rescaled", "attention_sm100", "TF",
        "outputs are announced while they are being stored",
        "B17", (Edit("            TMEM_WAIT_STORES();\n"),),
        (Found("missing-tcgen05-wait", "MMA_A_IN_TMEM(", "issuer"),),
    ),
    Mutant(
        "no_rescaled_wait", "attention_sm100", "WT",
        "products add to outputs that are being rescaled",
        "B51", (Edit("            if (n > 0) WAIT(base + kRescaled + 8 * i, n - 1 & 1);\n"),),
        (
            Found("race", "MMA_A_IN_TMEM(", "issuer"),
            Found("deadlock", "WAIT(base + kOutputs", "correction"),  # lapped twice: a phase missed
        ),
    ),
    Mutant(
        "queue_order", "attention_sm100", "WT",
        "scores overwrite weights in the order of issue (as FlashAttention-4 does)",
        "", (Edit("            if (n >= 0) WAIT(base + kOutputs + 8 * i, n & 1);\n"),),
        (Found("race", "MMA(", "issuer"),), "isa",
    ),
    Mutant(
        "commit_last", "attention_sm100", "WT", "the CTA may end before the last release arrives",
        "", (
            Edit(
                "            if (i == 1) COMMIT(empty + 8 * value_slot);\n"
                "            COMMIT(base + kOutputs + 8 * i);",
                "            COMMIT(base + kOutputs + 8 * i);\n"
                "            if (i == 1) COMMIT(empty + 8 * value_slot);",
            ),
        ),
        (Found("early-exit", "COMMIT(empty + 8 * value_slot", ""),), "isa",
    ),
    Mutant(
        "no_outputs_wait", "attention_sm100", "WT",
        "outputs are loaded before products are complete",
        "B20", (Edit("        WAIT(base + kOutputs + 8 * i, n - 1 & 1);\n"),),
        (Found("tensor-memory", "TMEM_DEALLOC(", "issuer"),
         Found("race", "TMEM_LOAD(", "correction"),
         Found("uninitialised", "TMEM_LOAD(", "correction")),
    ),
    Mutant(
        "factor_reused", "attention_sm100", "PH",
        "the last factor comes before the one before was read",
        "B59", (Edit("    WAIT(base + kFactorEmpty + 8 * i, blocks - 1 & 1 ^ 1);\n"),),
        (Found("race", "STORE_SHARED(", "softmax"), Found("race", "LOAD_SHARED(", "correction"),
         Found("deadlock", "WAIT(base + kFactorFull", "correction")),
    ),
    Mutant(
        "extra_arrival", "attention_sm100", "RO", "outputs are announced once before there are any",
        "B35",
        (Edit("    for (int n = 1; n <= blocks; ++n) {\n",
              "    ARRIVE(base + kRescaled);\n    for (int n = 1; n <= blocks; ++n) {\n"),),
        (Found("race", "MMA_A_IN_TMEM(", "issuer"), Found("race", "TMEM_LOAD(", "correction"),
         Found("deadlock", "WAIT(base + kRescaled", "issuer")),
    ),
    Mutant(
        "softmax_short", "attention_sm100", "RO", "softmax takes one block fewer than the others",
        "B34 B45",
        (Edit("    for (int n = 0; n < blocks; ++n) {\n      WAIT(base + kScores",
              "    for (int n = 0; n < blocks - 1; ++n) {\n      WAIT(base + kScores"),),
        (Found("deadlock", "WAIT(base + k", "issuer"),),
    ),
    Mutant(
        "inc_too_many", "attention_sm100", "RG", "warpgroups ask for more registers than there are",
        "B58", (Edit("SET_REGISTERS(inc, 176)", "SET_REGISTERS(inc, 208)"),),
        (Found("deadlock", "SET_REGISTERS(inc, 208)", "softmax"),),
    ),
    Mutant(
        "no_dec", "attention_sm100", "RG", "one warpgroup keeps its registers",
        "B58", (Edit("    SET_REGISTERS(dec, 88);\n"),),
        (Found("deadlock", "SET_REGISTERS(inc, 176)", "softmax"),),
    ),
    Mutant(
        "overlap", "attention_sm100", "OV", "outputs overlap the scores of the other tile",
        "B36", (Edit("kOutputColumns = 256", "kOutputColumns = 192"),),
        (Found("race", "MMA(", "issuer"), Found("race", "MMA_A_IN_TMEM(", "issuer")),
    ),
    Mutant(
        "ring_parity", "attention_sm100", "PH", "parity of the block instead of the ring's round",
        "B24", (Edit("WAIT(full + 8 * value_slot, value / kStages & 1)",
                     "WAIT(full + 8 * value_slot, n & 1)"),),
        (Found("race", "MMA_A_IN_TMEM(", "issuer"), Found("deadlock", "WAIT(full", "issuer")),
    ),
)  # fmt: skip

MUTANTS: Final = (*GEMM, *PAIR, *ATTENTION, *generic("generic_sm100"))
