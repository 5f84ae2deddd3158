# ruff: noqa: E501 (a mutant is on the line of its name)
"""Prefill in fp8 with a scale for each page and key head: one cache with decode's, and mutants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily, DrawnAttention
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel
from fa4gen.verify.memory import read_out
from fa4gen.verify.rounding import to_bits
from tests.kernels.attention.launches import ShownMutant
from tests.kernels.attention.sm90.test_fp8 import findings
from tests.kernels.source_mutation import Change, kernel_of, program_of, ptx_of

PAGED: dict[str, Any] = {
    "arch": "sm_90a",
    "depth": 64,
    "mask": "causal",
    "keys": "paged",
    "page_size": 64,
    "kv_scale": "page",
}
KEYS = {**PAGED, "dtype": "fp8_e4m3"}
DECODE = {**PAGED, "dtype": "bf16", "kv_dtype": "fp8_e4m3", "pack_heads": True}
LENGTHS = ((40, 640), (40, 333))
# Five blocks of 128 keys: the slots of scales are used again. The last keys of a sequence are a tail.
PAGES = Case("test/pages", 2, 4, 2, 40, 640, lengths=LENGTHS)
COUNTING = replace(PAGES, name="test/counting", data="counting")
FAR = replace(PAGES, name="test/far", far_scales=True)
# Sequences of one page each, some of which are zeros alone.
ZEROS = Case("test/zeros", 8, 4, 2, 3, 60, lengths=((3, 60),) * 8, far_scales=True)
CASES = (PAGES, COUNTING, FAR, ZEROS)


@pytest.mark.emulate
@pytest.mark.parametrize(
    "more",
    [
        {},
        pytest.param({"page_size": 16, "batching": "ragged", "depth": 128}, id="16"),
        pytest.param({"page_size": 256, "softcap": 30.0, "sinks": True}, id="softcap"),
        pytest.param({"page_size": 32, "mask": {"sliding_window": 100}, "BN": 96}, id="window"),
        pytest.param({"mask": "none", "promote_every": 1, "out_dtype": "fp16"}, id="promoted"),
        pytest.param({"BM": 192, "rescale_threshold": 0, "overlap": False}, id="warpgroups"),
        pytest.param({"depth": 256, "page_size": 32}, id="256", marks=pytest.mark.seeds),
    ],
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pages_with_scales_of_their_own_are_right(more: dict[str, Any], case: Case) -> None:
    assert findings(kernel_of({**KEYS, **more}), case) == []


@pytest.mark.emulate
@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.name)
def test_decode_and_prefill_read_one_cache(case: Case) -> None:
    """Each is right within its own bounds, and they are no further apart than both together."""
    prefill, decode = kernel_of(KEYS), kernel_of(DECODE)
    case = replace(case, descales=("key", "value"), query_rows=2, lengths=((2, 640), (2, 333)))
    of_prefill = AttentionFamily(prefill.plan).draw(case, 7)
    of_decode = _with_cache_of(AttentionFamily(decode.plan).draw(case, 7), of_prefill)
    outputs, room = [], 0.0
    for kernel, drawn in ((prefill, of_prefill), (decode, of_decode)):
        after = EmulatedKernel(kernel.plan, program_of(ptx_of(kernel))).run(drawn.memory)
        reference = drawn.reference(np)
        _, wrong = reference.compare(drawn.memory, after, np)
        assert not wrong
        outputs.append(read_out(drawn.memory, after))
        room += reference.bounds.frobenius * float(np.linalg.norm(reference.exact.out))
    assert float(np.linalg.norm(outputs[0] - outputs[1])) <= room


def _with_cache_of(own: DrawnAttention, other: DrawnAttention) -> DrawnAttention:
    """Return a problem of decode with another's cache, bit for bit, and the values of its query."""
    mine = {name: own.memory.views[name] for name in ("query", "out", "lse")}
    views = {**other.memory.views, **mine}
    buffers = {**other.memory.buffers, **{name: own.memory.buffers[name] for name in mine}}
    bits = mine["query"].bits(buffers["query"])
    bits[...] = to_bits(other.inputs.query, "bf16").reshape(bits.shape)
    scale = other.memory.softmax_scale
    memory = replace(own.memory, views=views, buffers=buffers, softmax_scale=scale)
    return replace(own, inputs=other.inputs, memory=memory)


MUTANTS = {
    "scales of the neighbouring page": (PAGES, Change(r"static_cast<int64>\(rows\.page\) \* key_heads", "static_cast<int64>(rows.page ^ 1) * key_heads")),
    "scales of the neighbouring head": (PAGES, Change(r"\* key_heads \+ key_head;", "* key_heads + (key_head ^ 1);")),
    "scale of the values forgotten in the tail": (PAGES, Change(r"is_page && value \?", "is_page && value && rows.page != rows.table.entries[(rows.key_rows - 1) / kPageSize] ?")),
    "scales of a block's first page": (PAGES, Change(r"scales \+ box \* kPageScaleBytes", "scales")),
    "scale of the keys for values": (PAGES, Change(r"value \? value\[place\]", "key ? key[place]")),
    "scale of the values for keys": (PAGES, Change(r"key \? key\[place\]", "value ? value[place]")),
    "keys without their scale": (PAGES, Change(r"weight_log2 \* page\[0\]", "weight_log2")),
    "values without their scale": (PAGES, Change(r"(fmaf\(scores\[i\], weight, )page\[1\]\)", r"\g<1>0.f)")),
    "sum with the scale of values": (PAGES, Change(r"s\[j( \+ \d)?\], inverse, ", r"s[j\1], 1.f, ", 4)),
    "sum with the scale of the chunk before": (PAGES, Change(r"(page_scales\(\) \+ )box( \* kPageScaleBytes \+ 8)", r"\1max(box - 1, 0)\2")),
    "scale of a query's neighbour": (PAGES, Change(r"\+ head / heads_per_key_head;", "+ (head / heads_per_key_head ^ 1);")),
    "queries without their scale": (PAGES, Change(r"softmax_scale_log2 \* descale;", "softmax_scale_log2;")),
    "pages of zeros count": (ZEROS, Change(r"p\[j\] &= mask;", "p[j] &= mask | 0xffffffff;")),
    "pages of zeros set maxima": (FAR, Change(r"is_zero \? kZeroScaleLog2", "is_zero ? 40.f")),
    "scales in as many slots as keys": (PAGES, Change(r"kNumScaleSlots = 4;", "kNumScaleSlots = 2;")),
    "scales written after the keys are expected": (PAGES, Change(r"\n *__syncwarp\(\);(?=  // all scales are there)", "")),
    "lanes not met before the release": (PAGES, Change(r"\n *__syncwarp\(\);(?=  // every lane has read the scales)", "")),
}  # fmt: skip
QUICK = (
    "scales of the neighbouring page",
    "scales of the neighbouring head",
    "scale of the values forgotten in the tail",
    "scales in as many slots as keys",
)
SHOWN = {
    name: ShownMutant(KEYS, change, case, findings)  # type: ignore[arg-type]
    for name, (case, change) in MUTANTS.items()
}
