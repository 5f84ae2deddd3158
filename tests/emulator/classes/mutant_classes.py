"""Classes of bugs that a mutant of a larger kernel has; the corrected twin is the kernel itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class MutantClass:
    """``about`` is the mistake, ``effect`` what comes of it; ``mutants`` are kernel/name."""

    about: str
    effect: str
    mutants: tuple[str, ...]


MUTANT_CLASSES: Final = (
    MutantClass(
        "staging memory without a proxy fence before the TMA store",
        "The store takes what was there before.",
        ("gemm_sm90/store_fence", "gemm_sm100/store_fence", "attention_sm100/store_fence"),
    ),
    MutantClass(
        "an operand that threads wrote, without a proxy fence before the product",
        "The product takes what was there before: 86 of 100 runs differed on a B300.",
        ("gemm_sm90/operand_fence", "gemm_sm100/operand_fence"),
    ),
    MutantClass(
        "a stage that was read is loaded again without a proxy fence",
        "The copy may overtake loads that are still on their way.",
        ("generic_sm90/read_fence", "generic_sm100/read_fence"),
    ),
    MutantClass(
        "an accumulator is released without tcgen05.wait::ld",
        "The next product overwrites what the load has yet to take.",
        ("gemm_sm100/wait_loads",),
    ),
    MutantClass(
        "no tcgen05.fence beside the synchronisation of threads",
        "The order of tensor memory rests on the barrier alone, which the ISA does not promise.",
        ("gemm_sm100/fence_before", "gemm_sm100/fence_after", "gemm_sm100/fence_issuer"),
    ),
    MutantClass(
        "a store to tensor memory is announced without tcgen05.wait::st",
        "The product takes old weights, or adds to an output that is being rescaled.",
        ("attention_sm100/wait_weights", "attention_sm100/wait_rescaled"),
    ),
    MutantClass(
        "tensor memory is deallocated while other warps use it",
        "Columns of another CTA are overwritten, or its values read.",
        ("gemm_sm100/dealloc_early",),
    ),
    MutantClass(
        "the address of tensor memory is read before the barrier",
        "A warp works at an address that was not handed out.",
        ("gemm_sm100/address_early",),
    ),
    MutantClass(
        "a parity that does not follow the rounds of the ring",
        "A wait passes a round too early: stages are overwritten or read half full.",
        ("gemm_sm90/parity_by_step", "gemm_sm100/free_parity", "attention_sm100/ring_parity"),
    ),
    MutantClass(
        "a round is passed for its parity",
        "Undefined: it works while the hardware looks at the lowest bit only.",
        ("gemm_sm90/parity_unreduced",),
    ),
    MutantClass(
        "two roles count steps from different numbers",
        "Phases are off by one: a hang, or a stage read before it is full.",
        ("gemm_sm90/start_at_one",),
    ),
    MutantClass(
        "no barrier back from the consumer",
        "The producer laps the consumer and overwrites what it reads.",
        ("gemm_sm90/no_empty_wait", "gemm_sm100/no_free_wait", "attention_sm100/factor_reused"),
    ),
    MutantClass(
        "an arrival without expect_tx",
        "The phase completes before the bytes have come.",
        ("gemm_sm90/no_expect",),
    ),
    MutantClass(
        "more bytes are expected than come",
        "The barrier never completes.",
        ("gemm_sm90/twice_the_bytes", "pair_sm100/both_expect"),
    ),
    MutantClass(
        "a whole warp arrives where one thread should",
        "The barrier is phases ahead: stages are released early, or the kernel hangs.",
        ("gemm_sm90/all_arrive",),
    ),
    MutantClass(
        "a barrier counts others than arrive",
        "It completes when the first of them have arrived.",
        ("generic_sm90/count", "generic_sm100/count", "gemm_sm100/free_count"),
    ),
    MutantClass(
        "a stage is released before wgmma.wait_group",
        "The next copy overwrites an operand of a product under way.",
        ("gemm_sm90/release_first",),
    ),
    MutantClass(
        "a stage is released by a thread at the issue of tcgen05.mma, not by a commit",
        "The next copy overwrites an operand of a product under way.",
        ("gemm_sm100/arrive_for_commit",),
    ),
    MutantClass(
        "accumulators of wgmma are read without wait_group",
        "Sums that are not complete.",
        ("gemm_sm90/no_wgmma_wait",),
    ),
    MutantClass(
        "no wgmma.fence after registers of a product were written",
        "The product takes what was in the registers before.",
        ("gemm_sm90/no_wgmma_fence",),
    ),
    MutantClass(
        "staging memory is written while a store of the last tile reads it",
        "Rows of one tile in another.",
        ("gemm_sm90/staging_reused", "gemm_sm100/staging_reused"),
    ),
    MutantClass(
        "threads leave while their TMA store reads shared memory",
        "None seen: the SM keeps the memory until the store has read it.",
        ("gemm_sm90/no_store_wait",),
    ),
    MutantClass(
        "an accumulator is loaded before its products are complete",
        "Partial sums.",
        ("gemm_sm100/no_done_wait", "attention_sm100/no_outputs_wait"),
    ),
    MutantClass(
        "products add to what another role has not finished with",
        "An update is lost.",
        ("attention_sm100/no_rescaled_wait",),
    ),
    MutantClass(
        "one thread stores what other warps are still writing",
        "Rows of the last tile, or none.",
        ("gemm_sm90/no_store_barrier", "gemm_sm100/no_store_barrier"),
    ),
    MutantClass(
        "a barrier within the branch of one elected thread",
        "The kernel hangs.",
        ("gemm_sm90/elected_barrier",),
    ),
    MutantClass(
        "bar.arrive where all have to wait",
        "Threads go on before the others have come.",
        ("gemm_sm90/arrive_only",),
    ),
    MutantClass(
        "the compiler copies a barrier into both branches",
        "Lanes of a warp wait at two barriers: a hang.",
        ("gemm_sm90/barrier_doubled",),
    ),
    MutantClass(
        "an elected lane arrives for its warp without __syncwarp",
        "Other lanes still read or write what is handed on.",
        ("generic_sm90/no_syncwarp", "generic_sm100/no_syncwarp"),
    ),
    MutantClass(
        "no fence after mbarrier.init",
        "A copy or a peer signals a barrier that it does not see as initialised.",
        ("gemm_sm90/init_fence", "cluster_sm90/init_fence", "pair_sm100/init_fence"),
    ),
    MutantClass(
        "setmaxnreg asks for registers that nobody frees",
        "The increase blocks for ever.",
        (
            "gemm_sm90/no_dec", "gemm_sm90/dec_in_three_warps",
            "attention_sm100/no_dec", "attention_sm100/inc_too_many",
        ),
    ),
    MutantClass(
        "buffers that overlap by a wrong constant",
        "One overwrites the other.",
        ("gemm_sm90/overlap", "gemm_sm100/overlap", "attention_sm100/overlap"),
    ),
    MutantClass(
        "roles that disagree on the number of steps",
        "One waits for what the other never does.",
        (
            "gemm_sm90/producer_short", "gemm_sm100/epilogue_short",
            "attention_sm100/softmax_short",
        ),
    ),
    MutantClass(
        "an extra arrival on the path of an empty tile",
        "A phase is announced before there is anything in it.",
        ("attention_sm100/extra_arrival",),
    ),
    MutantClass(
        "an arrival at the wrong CTA's barrier",
        "The other CTA waits for ever, or goes on too early.",
        (
            "cluster_sm90/release_own_only", "pair_sm100/own_barrier", "pair_sm100/free_local",
            "pair_sm100/commit_one",
        ),
    ),
    MutantClass(
        "only one CTA expects the bytes of a multicast",
        "The others hang.",
        ("cluster_sm90/one_expects",),
    ),
    MutantClass(
        "a stage is used before it is full",
        "Whatever was there before goes into the result.",
        ("generic_sm90/no_full_wait", "generic_sm100/no_full_wait", "gemm_sm100/no_full_wait"),
    ),
    MutantClass(
        "a copy that nobody waits for is under way at the end",
        "It lands in the shared memory of the next CTA.",
        ("generic_sm90/consumer_short", "generic_sm100/consumer_short"),
    ),
    MutantClass(
        "tensor memory is not freed",
        "The next kernel's allocation waits for ever.",
        ("gemm_sm100/no_dealloc",),
    ),
    MutantClass(
        "fewer columns are allocated than are used",
        "Columns of another CTA are overwritten.",
        ("gemm_sm100/too_few_columns",),
    ),
    MutantClass(
        "nothing releases a stage",
        "The loader hangs when the ring is full.",
        ("gemm_sm100/no_commit",),
    ),
    MutantClass(
        "every lane of a warp issues the products",
        "The sum is 32 times too large.",
        ("gemm_sm100/all_lanes_issue",),
    ),
    MutantClass(
        "an address in tensor memory names another warp's lanes",
        "The warp gets its own quarter, whatever was meant.",
        ("gemm_sm100/quarter",),
    ),
    MutantClass(
        "scores over weights in the order of issue",
        "It rests on the queue of the tensor core, as FlashAttention-4 does.",
        ("attention_sm100/queue_order",),
    ),
    MutantClass(
        "barriers of a peer are used before it has initialised them",
        "Signals are lost: a hang now and then.",
        ("cluster_sm90/start_sync",),
    ),
    MutantClass(
        "a shared address without the CTA's rank",
        "All CTAs work in the memory of the first.",
        ("cluster_sm90/rank_lost",),
    ),
    MutantClass(
        "a CTA leaves while commits are on their way to its barriers",
        "They arrive at barriers of the CTA that comes next.",
        ("pair_sm100/no_drain", "attention_sm100/commit_last"),
    ),
)  # fmt: skip
