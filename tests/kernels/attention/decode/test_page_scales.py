# ruff: noqa: E501 (a mutant is on the line of its name)
"""Decode with a scale for each page and key head: mutants of which scale is used, and for what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from tests.kernels.attention.launches import ShownMutant, failures, output_of
from tests.kernels.source_mutation import Change, kernel_of

KEYS: dict[str, Any] = {
    "depth": 192,
    "mask": "causal",
    "pack_heads": True,
    "kv_dtype": "fp8_e4m3",
    "kv_scale": "page",
    "keys": "paged",
}
LENGTHS = ((2, 300), (2, 145))
# A CTA has several blocks of a tile, and a warp's keys of a block two pages of 16.
PAGES = Case("test/pages", 2, 4, 2, 2, 300, lengths=LENGTHS, multiprocessors=2)
FAR = Case("test/far", 2, 4, 2, 2, 300, lengths=LENGTHS, multiprocessors=2, far_scales=True)


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("page_size", "more"),
    [
        (16, {}),
        pytest.param(64, {"softcap": 5.0, "sinks": True}, id="softcap"),
        pytest.param(32, {"mask": {"sliding_window": 100}, "dtype": "fp16"}, id="window"),
        pytest.param(128, {"split_keys": {"keys": 128}, "depth": 256}, id="splits"),
        pytest.param(16, {"depth": 64, "packed_rows": 16}, id="64", marks=pytest.mark.seeds),
        pytest.param(256, {"depth": 96}, id="96", marks=pytest.mark.seeds),
    ],
)
@pytest.mark.parametrize("case", [PAGES, FAR], ids=["near", "far"])
def test_two_launches_on_a_workspace_are_right(
    page_size: int, more: dict[str, Any], case: Case
) -> None:
    kernel = kernel_of({**KEYS, "arch": "sm_90a", "page_size": page_size, **more})
    assert failures(kernel, case) == []


MUTANTS = {
    "scales of another page": (PAGES, Change(r"static_cast<int64>\(pages\[i\]\)", "static_cast<int64>(pages[i] ^ 1)")),
    "scales of another head": (PAGES, Change(r"key_heads \+ key_head;", "key_heads + (key_head ^ 1);")),
    "scale of the keys for values": (PAGES, Change(r"descales\.of_values\(place\)", "descales.of_keys(place)")),
    "scale of the values for keys": (PAGES, Change(r"descales\.of_keys\(place\)", "descales.of_values(place)")),
    "scales of the block before": (PAGES, Change(r"look_up\(pages, unit \+ kBlockUnits\)", "look_up(pages, unit)")),
    "scales of the first block": (PAGES, Change(r"\n *load_scales\(pages\);(?=\n *multiply_values)", "")),
    "scales of the next block": (PAGES, Change(r"(exponentiate\(scores, probabilities\);)(\n *load_scales\(pages\);)", r"\2\1")),
    "scales of the warp's first page": (PAGES, Change(r"return 16 \* m \* kPartPages / kPartKeys;", "return 0;")),
    "scales of another sequence": (PAGES, Change(r"page_table = page_table_of\(problem, tile\.sequence\)", "page_table = page_table_of(problem, tile.sequence ^ 1)")),
    "entries past the end": (PAGES, Change(r"key < key_rows \? page_table\.entries\[key / kPageSize\] : -1", "page_table.entries[key / kPageSize]")),
    "sum with the scale of values": (PAGES, Change(r" \* scales\.inverse_power\(page_of\(m\)\)", "", 2)),
    "values without their factor": (PAGES, Change(r"p\[0\] \* factor, p\[1\] \* factor", "p[0], p[1]")),
    "values without their power of two": (PAGES, Change(r"static_cast<float>\(scales\.exponent\(page\)\)", "0.f")),
    "keys without their scale": (PAGES, Change(r"scale_log2 \* scales\.key\[page\]", "scale_log2")),
    "power of two of a page of zeros": (FAR, Change(r">> 23\) - 127 : 0;", ">> 23) - 127 : -127;")),
}  # fmt: skip
QUICK = ("scales of another page", "scale of the keys for values", "scales of the block before")

SHOWN = {
    name: ShownMutant({**KEYS, "arch": "sm_90a", "page_size": 16}, change, case)
    for name, (case, change) in MUTANTS.items()
}


@pytest.mark.emulate
def test_scales_of_pages_that_are_no_sequences_do_not_count() -> None:
    """Scales of page 0, too, do not stand for entries past the end of a sequence."""
    kernel = kernel_of({**KEYS, "arch": "sm_90a", "page_size": 16})
    family = AttentionFamily(kernel.plan)
    for seed in range(200):
        problem = family.draw(PAGES, seed)
        scales = problem.memory.views["value_descale"]
        drawn = scales.bits(problem.memory.buffers[scales.buffer]).view(np.float32)
        if np.isnan(drawn[0]).all():
            break
    assert np.isnan(drawn[0]).all()
    assert np.isnan(drawn).sum() == 3 * drawn.shape[1]
    before = output_of(problem, kernel)
    drawn[np.isnan(drawn)] = 7
    np.testing.assert_array_equal(output_of(problem, kernel), before)
    change = Change(
        r"page_table\.entries\[key / kPageSize\] : -1", "page_table.entries[key / kPageSize] : 0"
    )
    drawn[0] = np.nan
    wrong = output_of(problem, kernel.with_code(change.apply(kernel.code)))
    assert (wrong != before).any()
