"""Kernels with masks, scores and sinks of each kind: right, and mistakes show in the numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fa4gen.verify.inputs import KINDS
from tests.kernels.source_mutation import (
    Change,
    assert_numbers_differ,
    assert_right,
    kernel_of,
)

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
Keys = dict[str, Any]
FP16: dict[str, Keys] = {
    "hopper": {"arch": "sm_90a", "dtype": "fp16", "depth": 64},
    "blackwell": {"arch": "sm_100a", "dtype": "fp16", "depth": 64},
}
BF16: dict[str, Keys] = {name: {**keys, "dtype": "bf16"} for name, keys in FP16.items()}
PAIRS: dict[str, Keys] = {
    f"{name} 512": {**keys, "depth": 512, "cta_group": 2} for name, keys in BF16.items()
}
HOPPER: dict[str, Keys] = {"hopper": FP16["hopper"]}
FULL = "tiles/square"
"""Rows of whole warpgroups, which see all of the first blocks, and random numbers."""
FALLING = "data/falling"
"""Maxima rise at every block."""
MORE_KEYS = "more_keys/5x*"
"""Few rows, the last of more keys, that see all of the first blocks, but for documents: also a
tree's tokens after their context."""
TIED: Keys = {"dtype": "bf16", "mask": "causal", "score": "alibi"}
"""Both rows of a thread share what a column adds to their exponents."""


@dataclass(frozen=True)
class Feature:
    """Kernels of ``designs`` with ``keys``: the cases in which they are right, and mistakes.

    Each of ``changes`` shows in the numbers of ``wrong``, the cases of ``right`` where it is empty.
    Those of ``few`` are mistakes in functions that designs share: not tried at depth 512, which is
    slow to compile.
    """

    keys: Keys
    designs: dict[str, Keys]
    right: tuple[str, ...]
    changes: dict[str, Change] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    few: dict[str, Change] = field(default_factory=dict)


FEATURES = {
    "chunks": Feature(
        {"mask": {"chunked": 200}}, FP16,
        # The last 30 rows are of the second chunk: the first block of keys is hidden from them
        # alone.
        ("chunked/70x230",),
        {
            "a block is skipped": Change(r"/ kBN, end\)", "/ kBN + 1, end)"),
            "a block counts as full": Change(r"cuts_left \|\| ", ""),
            "a chunk begins a key early": Change(
                r"(column|key) < (first(\[\w+\(i\)\])?)", r"\1 + 1 < \2"
            ),
        },
    ),
    "score": Feature(
        {
            "mask": "key <= query and document[batch, query] == document[batch, key]",
            "score": "score - slope[head] * (query - key)",
            "parameters": {
                "slope": {"dtype": "fp32", "shape": ["query_heads"]},
                "document": {"dtype": "int32", "shape": ["batch", "keys"]},
            },
        },
        FP16, (MORE_KEYS,),
        {
            "another head's slope": Change(r"given_slope_at\(problem, tile\.head\)",
                                           "given_slope_at(problem, tile.head - 1)"),
            "the slope is not divided by the scale": Change(r"inverse_scale \* given", "given"),
            "a score moves a key": Change(r"static_cast<float>\(column\)",
                                          "static_cast<float>(column + 1)"),
        },
    ),
    # A number common to a row's scores is added to its maximum, where no key is hidden.
    "by column": Feature(
        {"mask": "causal", "score": "alibi"}, HOPPER, (FULL,),
        {
            "a row's share is that of the row above": Change(r"ahead \+ 8 \* r", "ahead"),
            "a score moves a column": Change(r"kLastColumn - fragment_column\(i\)",
                                             "kLastColumn + 1 - fragment_column(i)"),
            "a block's keys are those of the one before": Change(
                r"ahead - block \* kBN, shift", "ahead - (block + 1) * kBN, shift"
            ),
            "a row's share is not in its exponents": Change(r" - shift\[0\]\)", ")"),
            "a lane's columns are the first lane's": Change(
                r"(ahead = [^;]*)2 \* \(threadIdx\.x % 4\)", r"\g<1>0"
            ),
        },
    ),
    "tied rows": Feature(
        TIED, HOPPER, (FULL, FALLING, "data/rising", "rings/1x*"),
        {
            "rows are another distance apart": Change(
                r"rows\.max\[0\] \+ added_at\(terms, 8\.f\)",
                "rows.max[0] + added_at(terms, 7.f)",
            ),
            "scores stay where maxima rise": Change(
                r"exponents\[i\] -= by\[fragment_row\(i\)\];", ";"
            ),
            "the raised row's sums stay": Change(r"exp2_approx\(lowered\[1\]\)", "1.f"),
            "what is taken from exponents is not in the log-sum-exp": Change(
                r"scale_log2 \+ kRescaleThreshold \+ log2", "scale_log2 + log2"
            ),
            "it is not taken before rows are tied": Change(
                r"scale_log2 \+ kRescaleThreshold;", "scale_log2;"
            ),
            "a block's keys are those of the one before": Change(
                r"ahead - block \* kBN, rows", "ahead - (block + 1) * kBN, rows"
            ),
        },
        (FULL, FALLING, "data/peaks"),
    ),
    "sinks": Feature(
        {"mask": "causal", "sinks": True}, {**BF16, **PAIRS},
        # All rows of the first but one see no key; two heads have sinks of their own in the second.
        ("more_queries/200x1", "layout/packed"),
        {"the sink of the first head": Change(r"sinks\[(done_)?tile\.head\] \*", "sinks[0] *")},
        ("size/1",),  # two heads with a row and a key each
        {
            "counted twice": Change(
                r"1\.f \+ exp2_approx\(sink_log2 - sum_log2\)",
                r"1.f + 2.f * exp2_approx(sink_log2 - sum_log2)",
            ),
            "not in powers of two": Change(r"(sinks\[(done_)?tile\.head\]) \* kLog2E", r"\1"),
            "left out of the log-sum-exp": Change(
                r"add_sink\(sum_log2, sink_log2\) \* kLn2", "sum_log2 * kLn2"
            ),
        },
    ),
    "max logits": Feature(
        {"mask": "causal", "max_logits": True}, {**BF16, **PAIRS},
        ("data/all_logits_low", "data/falling"),
        {
            "those of the first head": Change(
                r"given_max_logits \+ tile\.head", "given_max_logits", times=1
            ),
            "in powers of two": Change(r"\* scale_log2 \* kLn2\);", "* scale_log2);"),
            "rows past the last count": Change(
                r"row < problem\.query_rows \? ((role\.)?largest(\[0\])?) : negative_infinity\(\)",
                r"\1",
            ),
            "one lane counts": Change(
                r"lanes = 16(; lanes > 0; lanes /= 2\)\s+(own|largest) = fmaxf)", r"lanes = 0\1"
            ),
        },
        ("data/all_logits_low", "gqa/3", FULL),
        {
            "that of the last block": Change(
                r"(rows\.)?largest(\[r\])? = (kFirst \? largest\[r\] : )?"
                r"fmaxf\((rows\.)?largest(\[r\])?, (own|largest\[r\])\)",
                r"\1largest\2 = \6",
            ),
            "the maximum that lags": Change(r"(rows|role)\.largest(,| :)", r"\1.max\2"),
            "no number is negative": Change(
                r"setp\.lt\.s32 is_negative", "setp.gt.s32 is_negative"
            ),
            "negative ones in the order of others": Change(r"global\.min\.u32", "global.max.u32"),
        },
    ),
    # A name that stands for an expression.
    "documents, alibi": Feature({"mask": "documents", "score": "alibi"}, BF16, (MORE_KEYS,)),
    "tree, relative_bias": Feature(
        {"mask": "tree", "score": {"relative_bias": 40}}, BF16, (MORE_KEYS,)
    ),
    "prefix, softcap": Feature({"mask": "prefix", "softcap": 20.0}, BF16, (MORE_KEYS,)),
    "dilated, sinks": Feature({"mask": {"dilated": 4}, "sinks": True}, BF16, (MORE_KEYS,)),
    # Where no row sees a key, Hopper's pairs walk a block past the last one.
    "no keys": Feature({"mask": "documents"}, PAIRS, ("empty/no_keys",)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "case"),
    [
        pytest.param({**keys, **feature.keys}, case, id=f"{name}: {design}, {case}")
        for name, feature in FEATURES.items()
        for design, keys in feature.designs.items()
        for case in feature.right
    ],
)
def test_the_kernel_is_right(keys: Keys, case: str) -> None:
    assert_right(kernel_of(keys), case)


@pytest.mark.parametrize(
    ("keys", "change", "cases"),
    [
        pytest.param(
            {**keys, **feature.keys}, change, feature.wrong or feature.right,
            id=f"{name}: {design}, {mistake}",
        )
        for name, feature in FEATURES.items()
        for design, keys in feature.designs.items()
        for mistake, change in {
            **feature.changes, **({} if keys["depth"] == 512 else feature.few),
        }.items()
    ],
)  # fmt: skip
def test_a_mistake_is_found_in_the_numbers(
    keys: Keys, change: Change, cases: tuple[str, ...]
) -> None:
    assert_numbers_differ(kernel_of(keys), change, cases)


def parting(draft: Any) -> None:
    """Every other eight rows see 160 powers of two more in the first keys, which come last."""
    rows = np.arange(draft.query.shape[1])
    draft.query[..., 0] = np.where(rows % 16 < 8, 0, 30)[None, :, None]
    draft.key[..., 0] = np.where(np.arange(draft.key.shape[1]) < 100, 30, 0)[None, :, None]


PARTS = 6
"""A seed with a slope so small that the first keys count for the rows that see more in them."""


def test_tied_rows_part_where_one_sees_far_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "rising", parting)
    kernel = kernel_of({**FP16["hopper"], **TIED})
    assert_right(kernel, "data/rising", PARTS)
    for change in (
        Change(r"stay \? both : raised\[r\]", "both"),
        Change(r"kLowest = -60\.f", "kLowest = -1000.f"),
        Change(
            r"return __all_sync\(0xffffffffu, static_cast<int32>\(both\) < 0\);", "return true;"
        ),
        Change(r"signs\[0\] & signs\[1\] & signs\[2\] & signs\[3\]", "signs[0] & signs[1]"),
    ):
        assert_numbers_differ(kernel, change, ("data/rising",), PARTS)
