"""Mutants of shipped kernels that show only at an edge of their plans: geometry, strides, state.

Each is tried on the cheapest of the emulator's cases that is at its edge, under one schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.verify.edges.shares import IDLE, JOINED
from fa4gen.verify.family import family_of
from tests.kernels.source_mutation import Change, mutated, shipped, verify

if TYPE_CHECKING:
    from fa4gen.verify.verdict import Verdict

WINDOW, CAUSAL, DECODE = "d64_window_sinks_bf16", "d128_causal_pingpong_bf16", "decode_d128_bf16"
SPLITS, ALIBI = "decode_d128_splits_bf16", "d128_alibi_causal_bf16"
LATENT = "fa4_decode_mla_bf16"
RAGGED = "d128_ragged_causal_bf16"
DOCUMENTS, LISTED = "d128_documents_bf16", "d128_documents_listed_bf16"
GROUP = "several groups of {}, the last not full"
APART = "strides that no other {} and axis has"
PARTS = "a block that one part of a tile sees and another hides"
RAISED = "sums scaled by no power of two"
ROUNDED = r"__uint_as_float(__float_as_uint(\1) + 0x8000u & 0xffff0000u)"
"""To bf16."""
WILD = "declared tensors with numbers of any size and sign"


@dataclass(frozen=True)
class EdgeMutant:
    """A changed kernel of ``config``, and the edge whose case has to fail in words that say why."""

    config: str
    edge: str
    changes: tuple[Change, ...]
    says: str = "numbers: "
    in_header: bool = False


def _one(config: str, edge: str, pattern: str, new: str, says: str = "numbers: ") -> EdgeMutant:
    return EdgeMutant(config, edge, (Change(pattern, new),), says)


MUTANTS = {
    "a_window_begins_a_key_late": _one(
        WINDOW, "begin of the inner tile one before a boundary",
        r"(begin_key = max\(0, first_row \+ diagonal - kWindowLeft)\)", r"\1 + 1)",
    ),
    "the_left_edge_is_not_masked_by_a_key": _one(
        WINDOW, "left mask of a part one past a boundary",
        r"(cuts_left =\s+block \* kBN < .*? - kWindowLeft)", r"\1 - 1",
    ),
    "the_right_edge_is_not_masked_by_a_key": _one(
        CAUSAL, "right mask of a part one before a boundary",
        r"(cuts_right = block \* kBN \+ kBN - 1 > [^;]*)", r"\1 + 1",
    ),
    "the_end_of_the_keys_is_not_masked": _one(
        "depth512_window_fp8", "keys that end in a block without an end of the mask",
        r"return cuts_right \|\| cuts_left \|\| ends;", "return cuts_right || cuts_left;",
    ),
    "what_inner_tiles_see_ends_a_key_early": _one(
        CAUSAL, "end of the inner tile one past a boundary",
        r"end = \(end_key \+ kBN - 1\) / kBN;",
        "end = (end_key - (last_row + 1 < problem.query_rows) + kBN - 1) / kBN;",
    ),
    "a_last_group_of_heads_is_taken_as_full": _one(
        CAUSAL, GROUP.format("heads"),
        r"min\(problem\.heads_per_group, (.*) - first_head\)", "problem.heads_per_group", "",
    ),
    "a_last_group_of_rows_is_taken_as_full": _one(
        "gemm_bf16_sm90", GROUP.format("row tiles"),
        r"min\(problem\.group_rows, problem\.row_tiles - first_row\)", "problem.group_rows", "",
    ),
    "a_last_group_of_rows_is_taken_as_full_on_sm100": _one(
        "gemm_bf16_pair", GROUP.format("row tiles"),
        r"min\(problem\.group_rows, problem\.row_tiles - first_row\)", "problem.group_rows", "",
    ),
    "a_counter_is_not_reset": _one(
        CAUSAL, APART.format("tensor"), r"tile_counter\[0\] = 0;", "",
        "tile_counter[0] is",
    ),
    "the_other_counter_is_not_reset": _one(
        CAUSAL, APART.format("tensor"), r"tile_counter\[1\] = 0;", "",
        "tile_counter[1] is",
    ),
    "a_ticket_is_not_reset": _one(
        SPLITS, "a tile of two pieces", r"\*ticket = 0;", "", "partials[",
    ),
    "an_offset_of_a_row_has_32_bits": _one(
        CAUSAL, "strides of 2^31 elements",
        r"row \* out\.row_stride \+", "static_cast<int32>(row * out.row_stride) +", "",
    ),
    "an_offset_of_a_head_has_32_bits": _one(
        CAUSAL, "strides of 2^31 elements",
        r"tile\.head \* out\.head_stride", "static_cast<int32>(tile.head * out.head_stride)", "",
    ),
    "heads_are_written_with_the_strides_of_rows": _one(
        CAUSAL, APART.format("tensor"), r"tile\.head \* out\.head_stride",
        "tile.head * out.row_stride", "",
    ),
    "all_batches_have_the_documents_of_the_first": _one(
        DOCUMENTS, WILD, r"terms\.batch = tile\.batch;", "terms.batch = 0;",
    ),
    "a_far_block_always_vanishes": _one(
        ALIBI, WILD, r"128, exponent < kVanishing\)", "128, true)",
    ),
    "a_unit_of_one_key_is_left_out": _one(
        DECODE, "keys end one past a boundary of a unit",
        r"end = \(end_key \+ kUnitKeys - 1\) / kUnitKeys;",
        "end = max(1, (end_key + kUnitKeys - 2) / kUnitKeys);", "",
    ),
    "a_unit_is_plain_a_key_early": _one(
        DECODE, "the keys that all rows see end one before a boundary of a block",
        r"end = max\(0, end_key\) / kUnitKeys;", "end = (max(0, end_key) + 1) / kUnitKeys;",
    ),
    "longer_shares_begin_where_others_do": _one(
        DECODE, "shares of different lengths",
        r"cta \* share \+ min\(cta, longer\)", "cta * share", "",
    ),
    "the_first_cta_without_a_share_has_one": _one(
        DECODE, IDLE, r"blockIdx\.x >= line\.ctas", "blockIdx.x > line.ctas", "",
    ),
    "the_first_pair_without_a_share_has_one": _one(
        LATENT, IDLE,
        r"blockIdx\.x / kCtaGroup >= line\.ctas", "blockIdx.x / kCtaGroup > line.ctas", "",
    ),
    "the_pieces_of_the_last_thread_are_left_out": _one(
        DECODE, JOINED, r"other < 1 << log;", "other < (1 << log) - 1;",
    ),
    "the_pieces_of_the_second_thread_are_left_out": _one(
        LATENT, JOINED, r"other = 1; other < 1 << log;", "other = 2; other < 1 << log;",
    ),
    "a_factor_of_joined_pieces_is_rounded": _one(
        DECODE, RAISED, r"own = (exp2_approx\(max - subtracted\))", rf"own = {ROUNDED}",
    ),
    "a_factor_of_older_sums_is_rounded": _one(
        CAUSAL, RAISED, r"factor\[r\] = (exp2_approx\(.*\));", rf"factor[r] = {ROUNDED};",
    ),
    "a_factor_of_older_sums_is_rounded_on_sm100": _one(
        "fa4_d128_causal_bf16", RAISED,
        r"const float factor = (receive\(\));", rf"const float factor = {ROUNDED};",
    ),
    "a_bit_of_a_list_is_ignored": _one(
        LISTED, PARTS, r"!\(entry >> part & 8\)", "!(entry & 8)",
    ),
    "the_other_bit_of_a_list_is_ignored": _one(
        LISTED, PARTS, r"!\(entry >> part & 1\)", "!(entry & 1)",
    ),
    "a_left_masked_block_does_not_rescale": _one(
        "d128_window_bf16", "maxima that grow in a block masked at the left",
        r"if \(!__any_sync\(0xffffffffu, exceeds\)\) return;",
        "if (kMasked || !__any_sync(0xffffffffu, exceeds)) return;",
    ),
    "rows_of_later_tiles_are_tied_as_those_before": _one(
        ALIBI, WILD, r"tie = kNotYetTied;", "if (tile.head < 2) tie = kNotYetTied;",
    ),
    "a_last_group_of_listed_heads_is_taken_as_full": _one(
        "d64_paged64_window_sinks_bf16", GROUP.format("heads"),
        r"min\(heads_per_group, query_heads - first_head\)", "heads_per_group", "",
    ),
    "buckets_are_those_of_short_sequences": _one(
        RAGGED, "a sequence with more blocks of keys than there are buckets",
        r"if \(work < 16\) return", "return", "",
    ),
    "a_last_group_of_a_sequence_is_taken_as_full": _one(
        RAGGED, GROUP.format("heads"),
        r"min\(heads_per_group, query_heads - first_head\)", "heads_per_group", "",
    ),
    "all_groups_of_a_sequence_begin_at_head_0": _one(
        RAGGED, GROUP.format("heads"),
        r"first_head = group \* heads_per_group;", "first_head = 0;", "",
    ),
    "all_groups_of_a_sequence_have_the_tiles_of_the_first": _one(
        RAGGED, GROUP.format("heads"), r"within -= group \* tiles \* heads_per_group;", "", "",
    ),
    "inner_groups_of_a_sequence_are_the_second": _one(
        RAGGED, GROUP.format("heads"),
        r"first_head = group \* heads_per_group;",
        "first_head = min(group, 1) * heads_per_group;", "",
    ),
    "an_offset_of_a_tile_without_keys_has_32_bits": _one(
        "fa4_d64_band_fp16", "a tile without keys at strides of 2^31 elements",
        r"int64 batch_stride;  // strides", "int32 batch_stride;  // strides", "",
    ),
    "few_sequences_are_listed": _one(
        RAGGED, "more sequences than threads list",
        r"first < batch; first \+=", "first < min(batch, kListThreads); first +=",
        "",
    ),
}  # fmt: skip
ALWAYS = {
    "buckets_are_those_of_short_sequences",
    "a_window_begins_a_key_late",
    "what_inner_tiles_see_ends_a_key_early",
    "a_last_group_of_heads_is_taken_as_full",
    "a_last_group_of_rows_is_taken_as_full",
    "a_counter_is_not_reset",
    "a_ticket_is_not_reset",
    "the_first_cta_without_a_share_has_one",
    "the_pieces_of_the_last_thread_are_left_out",
    "a_factor_of_joined_pieces_is_rounded",
    "a_factor_of_older_sums_is_rounded",
    "an_offset_of_a_row_has_32_bits",
    "all_batches_have_the_documents_of_the_first",
    "few_sequences_are_listed",
}
"""Made in every run; all of them with --many-seeds."""


@cache
def case_at(config: str, edge: str) -> str:
    """Return the cheapest of the emulator's cases at an edge."""
    plan = shipped(config).plan
    family = family_of(plan)
    found = [case for case in family.emulated_cases() if edge in family.reached(case)]
    assert found, f"no case of {config} is at the edge: {edge}"
    return min(found, key=family.cost).name


def messages(verdict: Verdict) -> str:
    failures = [failure for case in verdict.cases for failure in case.failures]
    return "\n".join(f"{failure.check}: {failure.message}" for failure in failures)


def check_reported(name: str, seed: int) -> None:
    mutant = MUTANTS[name]
    kernel = mutated(shipped(mutant.config), mutant)
    verdict, _ = verify(kernel, case_at(mutant.config, mutant.edge), seed)
    assert verdict.num_cases == 1
    assert not verdict.passed, f"{name} passes under seed {seed}"
    assert mutant.says in messages(verdict)


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.seeds]) for name in MUTANTS],
)
def test_a_mutant_is_reported(name: str) -> None:
    check_reported(name, 0)


@pytest.mark.compile
def test_what_is_not_mutated_passes() -> None:
    unlike: dict[str, Any] = {}
    for mutant in MUTANTS.values():
        unlike.setdefault(mutant.config, set()).add(case_at(mutant.config, mutant.edge))
    for config in (CAUSAL, SPLITS):
        for case in unlike[config]:
            verdict, _ = verify(shipped(config), case, 0)
            assert verdict.passed, messages(verdict)


PEAKS = (
    ("d512_dense_bf16", r"low\[0\] = fmaxf\(low\[0\], scores\[i\]\)", "low[0] = low[0]"),
    ("d192_128_ragged_causal_bf16", r"high\[0\] = fmaxf\(high\[0\], scores\[i \+ 4\]\)", ""),
    (
        "depth512_window_fp16",
        r"fmaxf\(fmaxf\(largest\[0\], largest\[1\]\), fmaxf\(largest\[2\], largest\[3\]\)\)",
        "fmaxf(fmaxf(largest[0], largest[1]), largest[2])",
    ),
    ("d512_dense_bf16", r"low\[1\] = (fmaxf\(low\[1\], scores\[i \+ 2\]\))", f"low[1] = {ROUNDED}"),
    (
        "fa4_decode_d128_tree_paged64_bf16",
        r"result\.max = (fmaxf\(result\.max, weight\[w\]\))",
        f"result.max = {ROUNDED}",
    ),
)
"""Kernels that leave some scores out of a row's maximum, or round it to bf16."""


@pytest.mark.compile
def test_a_kernel_that_spins_is_given_up() -> None:
    """A search that never narrows down to one sequence."""
    change = Change(r"while \(high - low > 1\)", "while (high - low >= 1)")
    mutant = EdgeMutant("decode_d128_rows16_lengths_fp16", "", (change,))
    verdict, _ = verify(mutated(shipped(mutant.config), mutant), "size/1", 0)
    assert "step-limit" in messages(verdict)


@pytest.mark.compile
@pytest.mark.parametrize(("config", "pattern", "new"), PEAKS, ids=lambda one: one[:20])
def test_a_maximum_that_is_not_the_largest_score_is_reported(config, pattern, new) -> None:
    mutant = EdgeMutant(config, "", (Change(pattern, new),))
    for seed in (0, 1):
        verdict, _ = verify(mutated(shipped(config), mutant), "data/peaks", seed)
        assert "numbers: " in messages(verdict)
