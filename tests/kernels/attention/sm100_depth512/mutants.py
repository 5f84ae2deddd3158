"""Mutants of the synchronisation in the kernel of depth 512 over a pair of CTAs on Blackwell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.emulator.mutations.mutant import Edit
from tests.kernels.source_mutation import Kernel, kernel_of, verify

CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "causal": {"mask": "causal"},
    # every growth of a maximum rescales, so most blocks do
    "rescaling": {"rescale_threshold": 0.0},
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


@dataclass(frozen=True)
class Found:
    """A finding: its kind, words of its message that give the place, and the role."""

    kind: str
    place: str
    who: str


@dataclass(frozen=True)
class Mutant:
    """One of ``found`` must be among the findings on ``case``, whatever the schedule."""

    about: str
    edits: tuple[Edit, ...]
    found: tuple[Found, ...]
    case: str = THREE_BLOCKS
    config: str = "causal"
    verdict: str = "error"


MUTANTS: Final[dict[str, Mutant]] = {
    "probabilities_not_signalled": Mutant(
        "the peer's softmax does not arrive on PO_lo",
        (Edit(PEER_STORED, "\n"),),
        (Found("deadlock", "po_lo", "mma"),), "size/1",
    ),
    "factor_released_early": Mutant(
        "C is released before the factor is read",
        (Edit("    scales_in.wait();\n", "    scales_in.wait();\n    scales_in.release();\n"),
         Edit("threadIdx.x % 128)));\n    scales_in.release();", "threadIdx.x % 128)));")),
        (Found("race", "write of scale", "softmax"),),
    ),
    "factor_not_acquired": Mutant(
        "a factor is written though the one before has not been read",
        (Edit("    scales_out.acquire();\n"),),
        (Found("race", "write of scale", "softmax"),
         Found("phase-lap", "c_producer", "correction")),
    ),
    "key_released_early": Mutant(
        "a part of K is released before its products are issued",
        (Edit(QUERY_KEY_LOOP, RELEASE + QUERY_KEY_LOOP),
         Edit("part > 0 || at > 0, e);\n" + RELEASE, "part > 0 || at > 0, e);\n")),
        (Found("race", "overwrites kv", "load"), Found("race", "reads kv", "mma")),
    ),
    "value_released_early": Mutant(
        "a part of V is released before its products are issued",
        (Edit(VALUE_LOOP, RELEASE + VALUE_LOOP), Edit("      }\n" + RELEASE, "      }\n")),
        (Found("race", "overwrites kv", "load"), Found("race", "reads kv", "mma")),
    ),
    "value_released_halfway": Mutant(
        "a part of V is released after half of its products",
        (Edit(VALUE_MMA, VALUE_MMA + "        if (key == kBK1 / 2) ring.consumer_release(e);\n"),
         Edit("      }\n" + RELEASE, "      }\n")),
        (Found("race", "overwrites kv", "load"), Found("race", "reads kv", "mma")),
    ),
    "value_released_after_the_output": Mutant(
        "the CTAs may be gone when the last release of V arrives there",
        (Edit("      }\n" + RELEASE,
              "      }\n      if (part + 1 < kNumPvStages) ring.consumer_release(e);\n"),
         Edit(LOW_OUTPUT, LOW_OUTPUT + LAST_RELEASE),
         Edit(HIGH_OUTPUT, HIGH_OUTPUT + LAST_RELEASE)),
        (Found("early-exit", "signals mbarrier kv_consumer", ""),),
    ),
    "tensor_memory_freed_early": Mutant(
        "tensor memory is freed before the peer is done",
        (Edit("  cluster_sync_aligned();  // until here the peer's products, commits and arrivals "
              "reach this CTA\n"),),
        (Found("tensor-memory", "is freed", "mma"),
         Found("tensor-memory", "not all allocated", "")), "size/64",
    ),
    "probabilities_overwritten": Mutant(
        "P is stored though P.V_hi of the block before may still read it",
        (Edit("    mbarrier_wait(p_v_done, products.phase);\n"),),
        (Found("race", "write of probabilities", "softmax"),
         Found("race", "reads probabilities", "mma")),
    ),
    "probabilities_not_released": Mutant(
        "the peer's arrival on PO_lo releases to its own CTA only",
        (Edit(PEER_STORED, "      mbarrier_arrive_leader<kCtaGroup>(po_lo);\n"),),
        (Found("race", "probabilities[0] of rank 1", "mma"),),
    ),
    "probabilities_not_fenced": Mutant(
        "no proxy fence between the stores of P and the products",
        (Edit("    fence_proxy_async_shared();  // this thread's part of P, before the products "
              "read it\n"),),
        (Found("missing-proxy-fence", "probabilities", "mma"),), "size/64",
    ),
    # PO_lo, arrived on later by the same threads, keeps the products away: what is left is a fence
    "scores_released_early": Mutant(
        "S is released before its loads are complete",
        (Edit(SCORES_LOADED + "    scores_in.release();\n",
              SCORES_LOADED.splitlines(keepends=True)[1] + "    scores_in.release();\n"
              "    tensor_memory_wait_loads();\n"),),
        (Found("missing-tcgen05-fence", "read by the warp of softmax", "mma"),), verdict="review",
    ),
    "scores_not_waited_for": Mutant(
        "scores are used before their loads are complete",
        (Edit(SCORES_LOADED, SCORES_LOADED.splitlines(keepends=True)[1]),),
        (Found("missing-tcgen05-wait", "read by the warp of softmax", ""),), "size/64",
    ),
    "output_not_waited_for": Mutant(
        "O is rescaled while P.V is being added",
        (Edit("    half.wait();\n    tcgen05_fence_after();  // orders loads and stores of the "
              "output after that product\n"),),
        (Found("race", "tensor memory", "correction"), Found("race", "tensor memory", "mma"),
         Found("phase-lap", "po_", "mma")),
        MORE_KEYS, "rescaling",
    ),
    "rescaled_output_not_waited_for": Mutant(
        "P.V_hi does not wait for the correction",
        (Edit("    output_hi.acquire();\n    tcgen05_fence_after();\n"),),
        (Found("race", "tensor memory", "correction"), Found("race", "tensor memory", "mma")),
        MORE_KEYS, "rescaling",
    ),
    "rescaled_output_not_stored": Mutant(
        "O is handed over before the stores of its rescaled columns are complete",
        (Edit("  tensor_memory_wait_stores();\n}", "}"),),
        (Found("missing-tcgen05-wait", "by the warp of correction", "mma"),),
        MORE_KEYS, "rescaling",
    ),
    "first_arrival_dropped": Mutant(
        "the correction does not arrive on PO_hi before the first block",
        (Edit("  mbarrier_arrive_leader<kCtaGroup>(mbars.po_hi_mbar());\n"),),
        (Found("deadlock", "po_hi", "mma"),), "size/1",
    ),
    "blocks_of_a_cta": Mutant(
        "each CTA counts the blocks of its own rows, not of the pair's",
        (Edit("visible_blocks(problem, tile.first_row - rank * kBM, kCtaGroup * kBM)",
              "visible_blocks(problem, tile.first_row, kBM)"),),
        (Found("deadlock", "kv_", "load"),), "gqa/3",
    ),
    "half_of_the_bytes": Mutant(
        "the leader expects its own bytes only",
        (Edit("mbarrier_arrive_expect_tx(barrier, kCtaGroup * bytes)",
              "mbarrier_arrive_expect_tx(barrier, bytes)"),),
        (Found("deadlock", "kv_producer", "mma"), Found("race", "reads kv", "mma"),
         Found("uninitialised", "reads kv", "mma")), "size/64",
    ),
    "queries_overwritten": Mutant(
        "queries are loaded where the output before is still being stored from",
        (Edit("      tma_store_wait_read();\n      mbarrier_arrive(base + kQueryEmpty);",
              "      mbarrier_arrive(base + kQueryEmpty);"),),
        (Found("race", "overwrites query", "load"),), "tiles/many",
    ),
}  # fmt: skip


def depth512(config: str) -> Kernel:
    """The unchanged kernel of one of ``CONFIGS``."""
    return kernel_of({"depth": 512, "cta_group": 2, **CONFIGS[config]})


def edited(kernel: Kernel, edits: tuple[Edit, ...]) -> Kernel:
    """The kernel with its source changed; AssertionError where an edit does not fit any more."""
    code = kernel.code
    for edit in edits:
        code = edit.apply(code)
    return kernel.with_code(code)


def failure(mutant: Mutant, seed: int) -> str:
    """Return the error in the report on a mutant under ``seed``; "" if it is as expected."""
    verdict, reports = verify(edited(depth512(mutant.config), mutant.edits), mutant.case, seed)
    assert verdict.num_cases == 1
    report = reports[-1]
    if report.verdict.value != mutant.verdict:
        return f"{report.verdict.value} instead of {mutant.verdict}: {report}"
    for found in mutant.found:
        for finding in report.findings:
            if (
                finding.kind == found.kind
                and found.place in finding.message
                and found.who in finding.who
            ):
                return ""
    return f"none of {mutant.found} in {report}"
