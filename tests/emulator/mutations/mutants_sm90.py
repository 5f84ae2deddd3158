"""Mutants of the kernels for Hopper, and of the one kernel that both architectures run."""

from __future__ import annotations

from typing import Final

from tests.emulator.mutations.mutant import Edit, Found, Mutant

WAIT_FULL = "WAIT(full + 8 * slot"
WAIT_EMPTY = "WAIT(empty + 8 * slot"

GEMM: Final = (
    Mutant(
        "store_fence", "gemm_sm90", "PF", "stores of the epilogue are not fenced for the TMA store",
        "B3 B7 B8", (Edit("      FENCE_PROXY_ASYNC();\n"),),
        (Found("missing-proxy-fence", "TMA_STORE(", "consumer"),),
    ),
    Mutant(
        "operand_fence", "gemm_sm90", "PF", "an operand is patched by a store without a fence",
        "B11",
        (Edit("        WGMMA_FENCE();\n",
              "        if (leader) STORE_SHARED(stage + consumer * kABytes / 2, 0);\n"
              "        NAMED_BARRIER(5 + consumer, 128);\n        WGMMA_FENCE();\n"),),
        (Found("missing-proxy-fence", "WGMMA(", "consumer"),),
    ),
    Mutant(
        "parity_by_step", "gemm_sm90", "PH", "parity of the step instead of the ring's round",
        "B24", (Edit("n / kStages & 1);", "n & 1);"),),
        (Found("race", "WGMMA(", "consumer"), Found("over-arrival", "EXPECT(", "producer"),
         Found("race", "TMA_LOAD(", "producer"), Found("deadlock", WAIT_FULL, "consumer")),
    ),
    Mutant(
        "parity_unreduced", "gemm_sm90", "PH", "a round is passed for its parity",
        "B28", (Edit("n / kStages & 1);", "n / kStages);"),),
        (Found("barrier-misuse", WAIT_FULL, "consumer"),), "review",
    ),
    Mutant(
        "start_at_one", "gemm_sm90", "PH", "consumers count steps from one, the producer from zero",
        "B25", (Edit("staging = base + kStaging + consumer * kStagingBytes;\n    int n = 0;",
                     "staging = base + kStaging + consumer * kStagingBytes;\n    int n = 1;"),),
        (Found("deadlock", WAIT_FULL, "consumer"), Found("race", "WGMMA(", "consumer"),
         Found("over-arrival", "ARRIVE(empty", "consumer")),
    ),
    Mutant(
        "no_empty_wait", "gemm_sm90", "PH", "the producer laps the consumers",
        "B59", (Edit("          WAIT(empty + 8 * slot, (n / kStages & 1) ^ 1);\n"),),
        (Found("over-arrival", "EXPECT(", "producer"), Found("race", "TMA_LOAD(", "producer")),
    ),
    Mutant(
        "no_expect", "gemm_sm90", "AC", "an arrival that expects no bytes",
        "B27", (Edit("EXPECT(full + 8 * slot, kStageBytes)", "ARRIVE(full + 8 * slot)"),),
        (Found("race", "WGMMA(", "consumer"),),
    ),
    Mutant(
        "half_the_bytes", "gemm_sm90", "AC", "bytes of one operand are expected, two are loaded",
        "B28", (Edit("EXPECT(full + 8 * slot, kStageBytes)", "EXPECT(full + 8 * slot, kABytes)"),),
        (Found("deadlock", WAIT_FULL, "consumer"),),
    ),
    Mutant(
        "twice_the_bytes", "gemm_sm90", "AC", "twice the bytes that are loaded are expected",
        "B29",
        (Edit("EXPECT(full + 8 * slot, kStageBytes)", "EXPECT(full + 8 * slot, 2 * kStageBytes)"),),
        (Found("deadlock", WAIT_FULL, "consumer"),),
    ),
    Mutant(
        "all_arrive", "gemm_sm90", "AC", "all threads of a consumer arrive for its one",
        "B30 B31", (Edit("if (leader) ARRIVE(empty", "ARRIVE(empty"),),
        (Found("over-arrival", "ARRIVE(empty", "consumer"),
         Found("deadlock", WAIT_FULL, "consumer")),
    ),
    Mutant(
        "release_first", "gemm_sm90", "WT", "a stage is released before the wait for its product",
        "B55",
        (Edit("        // the product before this one is complete: its stage is free\n"
              "        WGMMA_WAIT(d, 1);\n"
              "        if (leader && step > 0) ARRIVE(empty + 8 * ((n - 1) % kStages));\n",
              "        if (leader && step > 0) ARRIVE(empty + 8 * ((n - 1) % kStages));\n"
              "        WGMMA_WAIT(d, 1);\n"),),
        (Found("race", "TMA_LOAD(", "producer"),),
    ),
    Mutant(
        "no_wgmma_wait", "gemm_sm90", "WT", "accumulators are read without waiting for the product",
        "B53", (Edit("      WGMMA_WAIT(d, 0);\n"),),
        (Found("wgmma-registers", "PACK(", ""),),
    ),
    Mutant(
        "no_wgmma_fence", "gemm_sm90", "WT", "no wgmma.fence after the accumulators were written",
        "B54", (Edit("        WGMMA_FENCE();\n"),),
        (Found("missing-wgmma-fence", "WGMMA(", ""),),
    ),
    Mutant(
        "staging_reused", "gemm_sm90", "WT", "staging memory is written while a store reads it",
        "B52 B56", (Edit("      if (leader) STORE_WAIT_READ();\n"),),
        (Found("race", "STORE_SHARED(", "consumer"),),
    ),
    Mutant(
        "no_store_wait", "gemm_sm90", "WT", "threads leave while a TMA store reads shared memory",
        "", (Edit("    if (leader) STORE_WAIT();\n"),),
        (Found("early-exit", "TMA_STORE(", "consumer"),), "isa",
    ),
    Mutant(
        "no_store_barrier", "gemm_sm90", "NS", "one thread stores what others are still writing",
        "B37", (Edit("      NAMED_BARRIER(3 + consumer, 128);\n"),),
        (Found("race", "TMA_STORE(", "consumer"),),
    ),
    Mutant(
        "elected_barrier", "gemm_sm90", "NS", "a barrier within the branch of one thread",
        "B44", (Edit("      NAMED_BARRIER(3 + consumer, 128);",
                     "      if (leader) NAMED_BARRIER(3 + consumer, 128);"),),
        (Found("partial-warp", "NAMED_BARRIER(3", "consumer"),),
    ),
    Mutant(
        "barrier_shared", "gemm_sm90", "NS",
        "two warpgroups use one named barrier, each for itself",
        "B42", (Edit("NAMED_BARRIER(3 + consumer, 128);", "NAMED_BARRIER(3, 128);"),),
        (Found("barrier-misuse", "NAMED_BARRIER(3, 128)", "consumer"),),
    ),
    Mutant(
        "arrive_only", "gemm_sm90", "NS", "threads arrive at a named barrier and do not wait",
        "B43", (Edit("NAMED_BARRIER(1 + consumer, 128);",
                     'asm volatile("bar.arrive %0, 128;" ::"r"(1 + consumer) : "memory");'),),
        (Found("race", "STORE_SHARED(", "consumer"),),
    ),
    Mutant(
        "barrier_doubled", "gemm_sm90", "NS", "the compiler copies a barrier into both branches",
        "B41",
        (Edit("bar.sync \t0;",
              "{ .reg .pred first; .reg .b32 lane; mov.u32 lane, %laneid; "
              "setp.eq.u32 first, lane, 0; @first bra ONE; bar.sync 0; bra JOIN; "
              "ONE: bar.sync 0; JOIN: }"),),
        (Found("partial-warp", "__syncthreads();", ""),), stage="ptx",
    ),
    Mutant(
        "init_fence", "gemm_sm90", "IN", "no fence after the initialisation of barriers",
        "B5", (Edit("    FENCE_BARRIER_INIT();\n"),),
        (Found("missing-init-fence", "TMA_LOAD(", "producer"),), "review",
    ),
    Mutant(
        "init_barrier", "gemm_sm90", "IN",
        "barriers are used before they are known to be initialised",
        "", (Edit("  __syncthreads();\n"),),
        (Found("race", WAIT_FULL, "consumer"), Found("barrier-misuse", WAIT_FULL, "consumer")),
    ),
    Mutant(
        "no_dec", "gemm_sm90", "RG", "the producer keeps the registers that the consumers ask for",
        "B58", (Edit("    SET_REGISTERS(dec, 40);\n"),),
        (Found("deadlock", "SET_REGISTERS(inc, 232)", "consumer"),),
    ),
    Mutant(
        "dec_in_three_warps", "gemm_sm90", "RG", "one warp of the producer skips setmaxnreg",
        "B58",
        (Edit("    SET_REGISTERS(dec, 40);", "    if (threadIdx.x < 96) SET_REGISTERS(dec, 40);"),),
        (Found("deadlock", "SET_REGISTERS(inc, 232)", "consumer"),),
    ),
    Mutant(
        "overlap", "gemm_sm90", "OV", "the staging memory begins within the last stage",
        "B36",
        (Edit("kStaging = kStages * kStageBytes", "kStaging = (kStages - 1) * kStageBytes"),),
        (Found("race", "STORE_SHARED(", "consumer"), Found("race", "TMA_LOAD(", "producer"),
         Found("barrier-misuse", "TMA_LOAD(", "producer")),
    ),
    Mutant(
        "producer_short", "gemm_sm90", "RO", "the producer loads one step fewer than is multiplied",
        "B26 B33 B34",
        (Edit("for (int step = 0; step < steps; ++step, ++n) {\n"
              "          const int slot", "for (int step = 1; step < steps; ++step, ++n) {\n"
              "          const int slot"),),
        (Found("deadlock", WAIT_FULL, "consumer"),),
    ),
)  # fmt: skip

CLUSTER: Final = (
    Mutant(
        "init_fence", "cluster_sm90", "IN", "no fence after the initialisation of barriers",
        "B5", (Edit("    FENCE_BARRIER_INIT();\n"),),
        (Found("missing-init-fence", "TMA_LOAD_MULTICAST(", "producer"),), "review",
    ),
    Mutant(
        "start_sync", "cluster_sm90", "CL", "barriers of the peer are used before it is ready",
        "", (Edit("  CLUSTER_SYNC();\n\n  if", "  __syncthreads();\n\n  if"),),
        (Found("race", "TMA_LOAD_MULTICAST(", "producer"),
         Found("barrier-misuse", "TMA_LOAD_MULTICAST(", "producer")),
    ),
    Mutant(
        "end_sync", "cluster_sm90", "CL",
        "a CTA leaves while its peer still arrives at its barriers",
        "", (Edit("at its barriers\n  CLUSTER_SYNC();", "at its barriers"),),
        (Found("early-exit", "ARRIVE_AT(", ""),),
    ),
    Mutant(
        "release_own_only", "cluster_sm90", "CL", "both arrivals go to the CTA's own barrier",
        "B49",
        (Edit("ARRIVE_AT(empty + 8 * slot, threadIdx.x)", "ARRIVE_AT(empty + 8 * slot, rank)"),),
        (Found("race", "TMA_LOAD_MULTICAST(", "producer"), Found("race", "WGMMA(", "consumer"),
         Found("deadlock", WAIT_FULL, "consumer")),
    ),
    Mutant(
        "one_expects", "cluster_sm90", "CL", "only the first CTA expects the bytes of a multicast",
        "B32", (Edit("          EXPECT(", "          if (rank == 0) EXPECT("),),
        (Found("deadlock", WAIT_FULL, "consumer"),),
    ),
    Mutant(
        "own_half", "cluster_sm90", "AC", "the half that the peer sends is not expected",
        "B28",
        (Edit("EXPECT(full + 8 * slot, kStageBytes)",
              "EXPECT(full + 8 * slot, kStageBytes - kBBytes / 2)"),),
        (Found("deadlock", WAIT_FULL, "consumer"),),
    ),
    Mutant(
        "rank_lost", "cluster_sm90", "CL", "addresses without the CTA's rank name the first CTA",
        "", (Edit("base = SHARED(memory), ", "base = SHARED(memory) & 0xffffff, "),),
        (Found("race", "TMA_LOAD(", "producer"), Found("deadlock", WAIT_FULL, "consumer")),
    ),
)  # fmt: skip


def generic(kernel: str) -> tuple[Mutant, ...]:
    """Mutants of the kernel that reads its stages by ordinary loads."""
    return (
        Mutant(
            "read_fence", kernel, "PW",
            "a stage that was read is overwritten without a proxy fence",
            "B1 B2 B9 B16", (Edit("    FENCE_PROXY_ASYNC();\n"),),
            (Found("proxy-war", "BULK_LOAD(", "producer"),),
        ),
        Mutant(
            "no_syncwarp", kernel, "NS", "one lane releases what its warp still reads",
            "B15 B22", (Edit("    __syncwarp();\n"),),
            (Found("race", "BULK_LOAD(", "producer"),),
        ),
        Mutant(
            "count", kernel, "AC", "a barrier counts one arrival, each of four warps arrives",
            "B23",
            (Edit("BARRIER_INIT(empty + 8 * slot, 4)", "BARRIER_INIT(empty + 8 * slot, 1)"),),
            (Found("deadlock", WAIT_EMPTY, "producer"),
             Found("over-arrival", "ARRIVE(", "consumer"),
             Found("race", "BULK_LOAD(", "producer")),
        ),
        Mutant(
            "no_full_wait", kernel, "WT", "a stage is read before it is full",
            "", (Edit("    WAIT(full + 8 * slot, n / kStages & 1);\n"),),
            (Found("race", "LOAD_SHARED4(", "consumer"),
             Found("uninitialised", "LOAD_SHARED4(", "consumer"),
             Found("race", "BULK_LOAD(", "producer")),
        ),
        Mutant(
            "consumer_short", kernel, "RO", "the last block is loaded and nobody waits for it",
            "",
            (Edit("for (int n = 0; n < blocks; ++n) {\n    const",
                  "for (int n = 0; n < blocks - 1; ++n) {\n    const"),),
            (Found("early-exit", "BULK_LOAD(", ""),),
        ),
    )  # fmt: skip


MUTANTS: Final = (*GEMM, *CLUSTER, *generic("generic_sm90"))
