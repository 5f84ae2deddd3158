# ruff: noqa: E501 (a mutant is on the line of its name)
"""Attention in fp8 on Hopper: mutants of transposition, order of keys, scales, maxima and fences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel, FindingsError
from fa4gen.verify.judge import judge
from tests.kernels.attention.launches import ShownMutant
from tests.kernels.source_mutation import Change, kernel_of, line, program_of, ptx_of

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

KEYS: dict[str, Any] = {
    "arch": "sm_90a",
    "dtype": "fp8_e4m3",
    "depth": 64,
    "mask": "causal",
    "BN": 96,
}
# Two batches of two key heads with scales of their own, four blocks of keys: slots are used again.
SCALED = Case("test/scaled", 2, 4, 2, 40, 330)
LOW = Case("test/low", 1, 1, 1, 64, 263, data="all_logits_low")
# A row alone: of a warp's rows, any rescales all.
LARGE = Case("test/large", 2, 8, 2, 1, 430, data="large_logits")


def findings(kernel: Kernel, case: Case) -> list[str]:
    """Return verify's findings about a case."""
    problem = AttentionFamily(kernel.plan).draw(case, 7)
    emulated = EmulatedKernel(kernel.plan, program_of(ptx_of(kernel)))
    try:
        first, second = (emulated.run(problem.memory) for _ in range(2))
    except FindingsError as error:
        return [str(error)]
    found, _ = judge(problem.memory, first, second, problem.reference(np))
    return [failure.message for failure in found]


@pytest.mark.emulate
@pytest.mark.parametrize("case", [SCALED, LOW, LARGE], ids=lambda case: case.name)
def test_the_kernel_without_a_change_is_right(case: Case) -> None:
    assert findings(kernel_of(KEYS), case) == []


@pytest.mark.emulate
@pytest.mark.parametrize(
    "keys",
    [
        {"depth": 96, "BN": 96},
        {"depth": 128, "BN": 128, "batching": "ragged", "keys": "paged", "page_size": 16},
        {"depth": 128, "value_depth": 64, "BN": 32, "overlap": False, "rescale_threshold": 0},
        {"rescale_threshold": 8.4},  # no room to scale probabilities by a power of two
        {"depth": 64, "BN": 192, "softcap": 30.0, "sinks": True, "out_dtype": "fp16"},
        {"promote_every": 1},
        {"value_major": "keys", "depth": 96},
        {"value_major": "keys", "mask": "documents", "blocks": "listed"},
        {"value_major": "keys", "depth": 192, "BN": 128, "promote_every": 1},
        {"score": "alibi"},
        {"score": "score - 0.5 * (query - key)"},
        {"mask": {"sliding_window": 100}, "sinks": True},
        {"mask": {"sliding_window": 100}, "score": "alibi"},
        {"mask": {"chunked": 128}},
        {"mask": "documents"},
        {"mask": "documents", "blocks": "listed"},
        {"mask": "documents", "blocks": "listed", "score": "score * 2"},
        {"mask": "key <= query and (query - key) % 3 == 0"},
        {"key_lengths": True},
        {"value_major": "keys", "BN": 128, "overlap": False, "value_depth": 128},
        {"promote_every": 2, "depth": 192, "BN": 32, "rescale_threshold": 0},
        pytest.param({"depth": 256, "tile_heads": 2}, marks=pytest.mark.seeds),
    ],
    ids=str,
)
def test_other_panels_and_features_are_right(keys: dict[str, Any]) -> None:
    kernel = kernel_of({**KEYS, **keys})
    heads = max(2, kernel.plan.tile_heads)
    case = Case("test/features", 1, heads, 1, 40, kernel.plan.BN + 70)
    if kernel.plan.has_tile_lengths or kernel.plan.declared_tensors:
        cases = AttentionFamily(kernel.plan).emulated_cases()
        [case, *_] = [c for c in cases if c.query_rows > 30 and c.key_rows > kernel.plan.BN]
    assert findings(kernel, case) == []


WAIT, COMMIT = (
    r"\n *transposed\.wait_empty\(\);[^\n]*",
    r"if \(first_lane\) transposed\.commit\(\);",
)
READ = r"\n *rows\.release_if\(first_lane\);"
MUTANTS = {
    "wrong half of 32 columns": (Change(r"\(half \^ swizzle_of", "(half ^ 1 ^ swizzle_of"), SCALED),
    "even and odd columns exchanged": (Change(r"16 \? 0x7531 : 0x6420", "16 ? 0x6420 : 0x7531"), SCALED),
    "columns of lanes not exchanged": (Change(r"threadIdx\.x & 16 \? 0x7531 : 0x6420", "0x6420"), SCALED),
    "keys of 16 bits": (Change(r"pack_e4m3\(e\[0\], e\[1\], e\[4\], e\[5\]\)", "pack_e4m3(e[0], e[1], e[2], e[3])"), SCALED),
    "order forgotten for the last keys": (Change(r"8 \* \(i / 2\) \+ 2 \* \(i % 2\)", "8 * (i / 2) + 2 * (chunk == kBN / 32 - 1 ? 1 - i % 2 : i % 2)"), SCALED),
    "loaded before the words are stored": (Change(r"words\[i % kInFlight\],", "words[(i + 1) % kInFlight],"), SCALED),
    "columns written to the next ones": (Change(r"step / kPanels \* 32", "(step / kPanels ^ 1) * 32"), SCALED),
    "a group of keys left out": (Change(r"group < kBN / 16;", "group < kBN / 16 - 1;"), SCALED),
    "panel of the first keys alone": (Change(r"group / kGroupsPerPanel \*", "0 *"), SCALED),
    "scale of the neighbour's head": (Change(r"\+ head / heads_per_key_head;", "+ (head / heads_per_key_head ^ 1);"), SCALED),
    "scale of another batch": (Change(r"return batch \*", "return (batch ^ 1) *"), SCALED),
    "scale of the keys for values": (Change(r"value_descale = descales\.of_values", "value_descale = descales.of_scores"), SCALED),
    "output without its scale": (Change(r"\n *inverse\[r\] \*= value_descale;"), SCALED),
    "power of two left in the logarithm": (Change(r"scale_log2 - kProbabilityShift \+ log2_approx", "scale_log2 + log2_approx"), SCALED),
    "rescaled too late": (Change(r"<= kRescaleThreshold\)", "<= 4.f * kRescaleThreshold)"), LARGE),
    "values not waited for": (Change(line(r"rows\.wait_full\(\)")), SCALED),
    "written while it is read": (Change(WAIT), SCALED),
    "read while it is written": (Change(rf"({WAIT})((?:\n[^\n]*)*?)(\n *){COMMIT}", r"\1\3if (first_lane) transposed.commit();\2"), SCALED),
    "rows released early": (Change(rf"({WAIT})((?:\n[^\n]*)*?){READ}", r"\1\n      rows.release_if(first_lane);\2"), SCALED),
    "no fence after the transposition": (Change(r"\n *fence_proxy_async_shared\(\);\n *__syncwarp\(\);", "\n      __syncwarp();"), SCALED),
    "lanes not met": (Change(r"(fence_proxy_async_shared\(\);)\n *__syncwarp\(\);", r"\1"), SCALED),
}  # fmt: skip
PROMOTED = {
    "promoted sums not rescaled": (Change(r"\n *if \(promoted\) rescale_sums\([^\n]*"), LARGE),
    "promoted twice": (Change(r"(y \+ output\[2 \* i \+ 1\]\);\n *\}\n *\}\n) *zero_output\(\);", r"\1"), SCALED),
    "sums of the tile before": (Change(r"\n *query_phase &= 1;"), SCALED),
    "only the last sums kept": (Change(r"\n *query_phase \|= 2;"), SCALED),
    "sums begin with what is there": (Change(r"if \(!has_promoted\(\)\) \{", "if (false) {"), SCALED),
    "last blocks not promoted": (Change(r"\n *collect_sums\(\);"), SCALED),
    "promoted while P.V runs": (Change(r"(\n *finish_value\(\);)(\n *issue_scores\(\);)((?:\n[^\n]*)*?)(\n *if \(block % kPromoteEvery[^\n]*)", r"\4\1\2\3"), SCALED),
}  # fmt: skip
LINES = {
    "pairs sent to the other lane": (Change(r"swapped \^ 1, 4\)", "swapped, 4)"), SCALED),
    "pairs of the other keys sent": (Change(r"lane % 2 \? odd : even", "even"), SCALED),
    "pairs in the order of arrival": (Change(r"lane < 2 \? 0x5410 : 0x1054", "0x5410"), SCALED),
    "keys of the first panel alone": (Change(r"block \* kBN \+ key, head", "block * kBN, head"), SCALED),
    "lines not waited for": (Change(line(r"values\(\)\.wait_full\(\)") + r"(?=\n    const uint32 value)"), SCALED),
}  # fmt: skip
QUICK = (
    "pairs in the order of arrival",
    "wrong half of 32 columns",
    "scale of the neighbour's head",
    "no fence after the transposition",
)

PROMOTING = {**KEYS, "promote_every": 1, "num_pv_chunks_in_flight": 0}
SHOWN = {
    name: ShownMutant(KEYS, change, case, findings) for name, (change, case) in MUTANTS.items()
}  # type: ignore[arg-type]
SHOWN |= {
    name: ShownMutant(PROMOTING, change, case, findings)  # type: ignore[arg-type]
    for name, (change, case) in PROMOTED.items()
}
SHOWN |= {
    name: ShownMutant({**KEYS, "value_major": "keys"}, change, case, findings)  # type: ignore[arg-type]
    for name, (change, case) in LINES.items()
}
