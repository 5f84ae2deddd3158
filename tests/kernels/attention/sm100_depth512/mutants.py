"""Mutants of the synchronisation in the kernel of depth 512 over a pair of CTAs on Blackwell."""

from __future__ import annotations

from typing import Any, Final, Literal

from tests.emulator.mutations.mutant import Edit
from tests.kernels.source_mutation import ANYWHERE, Found, Kernel, Mutant, kernel_of

_PAIR: Final = {"depth": 512, "cta_group": 2}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "causal": {**_PAIR, "mask": "causal"},
    # every growth of a maximum rescales, so most blocks do
    "rescaling": {**_PAIR, "rescale_threshold": 0.0},
}
THREE_BLOCKS: Final = "data/rising"
"""Rows in both CTAs. Blocks are walked from the last: nothing is rescaled."""
MORE_KEYS: Final = "more_keys/5x768"
"""Rows in the leader only; three blocks of ordinary numbers."""
RELEASE: Final = "      ring.consumer_release(e);\n"
LAST_RELEASE: Final = "    ring.consumer_release(e);\n"
LOW_OUTPUT: Final = "    output_lo.commit_mma(e);\n"
HIGH_OUTPUT: Final = "    output_hi.commit_mma(e);\n"
QUERY_KEY_LOOP: Final = (
    "#pragma unroll\n      for (uint32 at = 0; at < kBK0 * kElementBytes; at += kStepBytes)\n"
)
VALUE_LOOP: Final = "#pragma unroll\n      for (int32 key = 0; key < kBK1; key += kStepKeys) {\n"
VALUE_MMA: Final = "!first_block || part > 0 || key > 0, e);\n"
PEER_STORED: Final = "      mbarrier_arrive_release_cluster(leader_address<kCtaGroup>(po_lo));\n"
SCORES_LOADED: Final = (
    "    tensor_memory_wait_loads();\n"
    "    tcgen05_fence_before();  // orders them before the next product that goes there\n"
)


def _found(kind: str, place: str, who: str) -> Found:
    """Return a finding by words of its message that give the place."""
    return Found(kind, ANYWHERE, who, place)


def _mutant(
    about: str,
    edits: tuple[Edit, ...],
    found: tuple[Found, ...],
    case: str = THREE_BLOCKS,
    config: str = "causal",
    verdict: Literal["error", "review"] = "error",
) -> Mutant:
    return Mutant(config, about, edits, found, case, verdict)


MUTANTS: Final[dict[str, Mutant]] = {
    "probabilities_not_signalled": _mutant(
        "the peer's softmax does not arrive on PO_lo",
        (Edit(PEER_STORED, "\n"),),
        (_found("deadlock", "po_lo", "mma"),), "size/1",
    ),
    "factor_released_early": _mutant(
        "C is released before the factor is read",
        (Edit("    scales_in.wait();\n", "    scales_in.wait();\n    scales_in.release();\n"),
         Edit("threadIdx.x % 128)));\n    scales_in.release();", "threadIdx.x % 128)));")),
        (_found("race", "write of scale", "softmax"),),
    ),
    "factor_not_acquired": _mutant(
        "a factor is written though the one before has not been read",
        (Edit("    scales_out.acquire();\n"),),
        (_found("race", "write of scale", "softmax"),
         _found("phase-lap", "c_producer", "correction")),
    ),
    "key_released_early": _mutant(
        "a part of K is released before its products are issued",
        (Edit(QUERY_KEY_LOOP, RELEASE + QUERY_KEY_LOOP),
         Edit("part > 0 || at > 0, e);\n" + RELEASE, "part > 0 || at > 0, e);\n")),
        (_found("race", "overwrites kv", "load"), _found("race", "reads kv", "mma")),
    ),
    "value_released_early": _mutant(
        "a part of V is released before its products are issued",
        (Edit(VALUE_LOOP, RELEASE + VALUE_LOOP), Edit("      }\n" + RELEASE, "      }\n")),
        (_found("race", "overwrites kv", "load"), _found("race", "reads kv", "mma")),
    ),
    "value_released_halfway": _mutant(
        "a part of V is released after half of its products",
        (Edit(VALUE_MMA, VALUE_MMA + "        if (key == kBK1 / 2) ring.consumer_release(e);\n"),
         Edit("      }\n" + RELEASE, "      }\n")),
        (_found("race", "overwrites kv", "load"), _found("race", "reads kv", "mma")),
    ),
    "value_released_after_the_output": _mutant(
        "the CTAs may be gone when the last release of V arrives there",
        (Edit("      }\n" + RELEASE,
              "      }\n      if (part + 1 < kNumPvStages) ring.consumer_release(e);\n"),
         Edit(LOW_OUTPUT, LOW_OUTPUT + LAST_RELEASE),
         Edit(HIGH_OUTPUT, HIGH_OUTPUT + LAST_RELEASE)),
        (_found("early-exit", "signals mbarrier kv_consumer", ""),),
    ),
    "tensor_memory_freed_early": _mutant(
        "tensor memory is freed before the peer is done",
        (Edit("  cluster_sync_aligned();  // until here the peer's products, commits and arrivals "
              "reach this CTA\n"),),
        (_found("tensor-memory", "is freed", "mma"),
         _found("tensor-memory", "not all allocated", "")), "size/64",
    ),
    "probabilities_overwritten": _mutant(
        "P is stored though P.V_hi of the block before may still read it",
        (Edit("    mbarrier_wait(p_v_done, products.phase);\n"),),
        (_found("race", "write of probabilities", "softmax"),
         _found("race", "reads probabilities", "mma")),
    ),
    "probabilities_not_released": _mutant(
        "the peer's arrival on PO_lo releases to its own CTA only",
        (Edit(PEER_STORED, "      mbarrier_arrive_leader<kCtaGroup>(po_lo);\n"),),
        (_found("race", "probabilities[0] of rank 1", "mma"),),
    ),
    "probabilities_not_fenced": _mutant(
        "no proxy fence between the stores of P and the products",
        (Edit("    fence_proxy_async_shared();  // this thread's part of P, before the products "
              "read it\n"),),
        (_found("missing-proxy-fence", "probabilities", "mma"),), "size/64",
    ),
    # PO_lo, arrived on later by the same threads, keeps the products away: what is left is a fence
    "scores_released_early": _mutant(
        "S is released before its loads are complete",
        (Edit(SCORES_LOADED + "    scores_in.release();\n",
              SCORES_LOADED.splitlines(keepends=True)[1] + "    scores_in.release();\n"
              "    tensor_memory_wait_loads();\n"),),
        (Found("missing-tcgen05-fence", "read by the warp of softmax", "mma"),), verdict="review",
    ),
    "scores_not_waited_for": _mutant(
        "scores are used before their loads are complete",
        (Edit(SCORES_LOADED, SCORES_LOADED.splitlines(keepends=True)[1]),),
        (Found("missing-tcgen05-wait", "read by the warp of softmax", ""),), "size/64",
    ),
    "output_not_waited_for": _mutant(
        "O is rescaled while P.V is being added",
        (Edit("    half.wait();\n    tcgen05_fence_after();  // orders loads and stores of the "
              "output after that product\n"),),
        (_found("race", "tensor memory", "correction"), _found("race", "tensor memory", "mma"),
         _found("phase-lap", "po_", "mma")),
        MORE_KEYS, "rescaling",
    ),
    "rescaled_output_not_waited_for": _mutant(
        "P.V_hi does not wait for the correction",
        (Edit("    output_hi.acquire();\n    tcgen05_fence_after();\n"),),
        (_found("race", "tensor memory", "correction"), _found("race", "tensor memory", "mma")),
        MORE_KEYS, "rescaling",
    ),
    "rescaled_output_not_stored": _mutant(
        "O is handed over before the stores of its rescaled columns are complete",
        (Edit("  tensor_memory_wait_stores();\n}", "}"),),
        (Found("missing-tcgen05-wait", "by the warp of correction", "mma"),),
        MORE_KEYS, "rescaling",
    ),
    "first_arrival_dropped": _mutant(
        "the correction does not arrive on PO_hi before the first block",
        (Edit("  mbarrier_arrive_leader<kCtaGroup>(mbars.po_hi_mbar());\n"),),
        (_found("deadlock", "po_hi", "mma"),), "size/1",
    ),
    "blocks_of_a_cta": _mutant(
        "each CTA counts the blocks of its own rows, not of the pair's",
        (Edit("visible_blocks(problem, tile.first_row - rank * kBM, kCtaGroup * kBM)",
              "visible_blocks(problem, tile.first_row, kBM)"),),
        (_found("deadlock", "kv_", "load"),), "gqa/3",
    ),
    "half_of_the_bytes": _mutant(
        "the leader expects its own bytes only",
        (Edit("mbarrier_arrive_expect_tx(barrier, kCtaGroup * bytes)",
              "mbarrier_arrive_expect_tx(barrier, bytes)"),),
        (_found("deadlock", "kv_producer", "mma"), _found("race", "reads kv", "mma"),
         _found("uninitialised", "reads kv", "mma")), "size/64",
    ),
    "queries_overwritten": _mutant(
        "queries are loaded where the output before is still being stored from",
        (Edit("      tma_store_wait_read();\n      mbarrier_arrive(base + kQueryEmpty);",
              "      mbarrier_arrive(base + kQueryEmpty);"),),
        (_found("race", "overwrites query", "load"),), "tiles/many",
    ),
}  # fmt: skip
ALWAYS: Final = (
    "probabilities_not_signalled",
    "factor_released_early",
    "value_released_halfway",
    "tensor_memory_freed_early",
    "probabilities_not_released",
)
"""Made in every run; all of them with --many-seeds."""


def depth512(config: str) -> Kernel:
    """The unchanged kernel of one of ``CONFIGS``."""
    return kernel_of(CONFIGS[config])


def edited(kernel: Kernel, edits: tuple[Edit, ...]) -> Kernel:
    """The kernel with its source changed; AssertionError where an edit does not fit any more."""
    code = kernel.code
    for edit in edits:
        code = edit.apply(code)
    return kernel.with_code(code)
