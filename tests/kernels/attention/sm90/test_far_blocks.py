"""Blocks so far from the query that a score function leaves nothing of their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel, FindingsError
from fa4gen.verify.memory import out_bits
from tests.kernels.source_mutation import Change, Kernel, kernel_of, program_of, ptx_of, verify

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
BASE = {
    "arch": "sm_90a", "dtype": "bf16", "depth": 64, "mask": "causal", "BN": 32,
    "BM": 128, "score": "score - 3.0 * (query - key)",
}  # fmt: skip
SQUARE = "tiles/square*"
FORMS = {
    "steep": {},
    "fp16": {"dtype": "fp16"},
    "slower": {"score": "score + 0.75 * (key - query)"},
    "rising": {"score": "score + 0.25 * (query - key)"},
    "a tensor": {
        "score": "score - slope[head] * (query - key)",
        "parameters": {"slope": {"dtype": "fp32", "shape": ["query_heads"]}},
    },
    "without overlap": {"overlap": False},
    "in turn": {"ping_pong": True},
    "ragged": {"batching": "ragged"},
}
# Far blocks begin within the tile, and beyond it; the first key outweighs what is taken from it.
FAR = Case("far/normal", 1, 2, 1, 200, 260)
NEAR = Case("far/near", 1, 2, 1, 200, 237)  # blocks that end 6 keys before the query
EDGE = Case("far/edge", 1, 2, 1, 200, 229)  # 30 keys before it: only some warps have something left
HIGH = Case("far/high", 1, 2, 1, 200, 260, data="dominant_first")
NEVER = Change(r"exponent < kVanishing\);", "false);")
MUTANTS = {
    "too early": (Change(r"kVanishing = -128\.f;", "kVanishing = -4.f; "), NEAR),
    "whatever the scores": (Change(r"\(largest \+ added", "(added"), HIGH),
    "by few scores": (Change(r"largest = scores\[0\];\n#pragma unroll\n    for \(int i = 1;",
                             "largest = scores[8];\n#pragma unroll\n    for (int i = 9;"), HIGH),
}  # fmt: skip
BROKEN = {
    "each warp for itself": Change(
        r"named_barrier_all\(kFarBarrier \+ place\.warpgroup, 128, exponent < kVanishing\)",
        "__all_sync(0xffffffffu, exponent < kVanishing)"),
    "one barrier for all": Change(r"kFarBarrier \+ place\.warpgroup", "kFarBarrier"),
    "values not waited for": Change(r"values\(\)\.wait_full\(\);(?=[^\n]*next step)", ""),
    "values not counted": Change(r"\+\+kv\.uses;\n      return;", "return;"),
    "values not released": Change(r"release\(previous_values\(\)\);\n    issue_scores\(\);\n"
                                  r"    wgmma_wait<0>\(\);\n    pin\(scores\);\n    release\(keys",
                                  "issue_scores();\n    wgmma_wait<0>();\n    pin(scores);\n"
                                  "    release(keys"),
    "output read too early": Change(r"step<false>\(tile, block, own\);\n    wgmma_wait<0>\(\);",
                                    "step<false>(tile, block, own);"),
}  # fmt: skip


def output_of(kernel: Kernel, case: Case, change: Any = None) -> Any:
    problem = AttentionFamily(kernel.plan).draw(case, 3)
    if change is not None:
        change(problem)
    run = EmulatedKernel(kernel.plan, program_of(ptx_of(kernel))).run(problem.memory)
    return out_bits(problem.memory, run)


def changed(kernel: Kernel, change: Change) -> Kernel:
    return kernel.with_code(change.apply(kernel.code))


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest) -> Kernel:
    return kernel_of({**BASE, **FORMS[request.param]})


@pytest.fixture(scope="module")
def steep() -> Kernel:
    return kernel_of(BASE)


@pytest.fixture(scope="module")
def exact() -> Kernel:
    """Maxima are those of each row: what is left out changes no bit."""
    return kernel_of({**BASE, "dtype": "fp16", "score": "score - 1.0 * (query - key)"})


@pytest.mark.parametrize("case", [SQUARE, "data/falling*", "batch/5*", "more_queries/*"])
def test_the_kernel_is_right(form: Kernel, case: str) -> None:
    verdict, _ = verify(form, case, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases >= 1


@pytest.mark.parametrize("case", [FAR, HIGH], ids=lambda case: case.name)
def test_what_vanishes_changes_no_bit(exact: Kernel, case: Case) -> None:
    whole = output_of(changed(exact, NEVER), case)
    np.testing.assert_array_equal(output_of(exact, case), whole)


@pytest.mark.parametrize("name", MUTANTS)
def test_what_does_not_vanish_is_not_left_out(exact: Kernel, name: str) -> None:
    change, case = MUTANTS[name]
    assert (output_of(changed(exact, change), case) != output_of(exact, case)).any()


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_is_found_by_the_emulator(steep: Kernel, name: str) -> None:
    output_of(steep, EDGE)
    with pytest.raises(FindingsError):
        output_of(changed(steep, BROKEN[name]), EDGE)


def test_a_score_that_is_no_number_is_not_left_out(exact: Kernel) -> None:
    def no_number(problem: Any) -> None:
        view = problem.memory.views["key"]
        view.bits(problem.memory.buffers[view.buffer])[0, 0] = 0x7E00

    quiet = Change(r"max_or_nan\(largest, scores\[i\]\)", "fmaxf(largest, scores[i])")
    is_nan = [
        np.isnan(output_of(kernel, FAR, no_number).view(np.float16)).all()
        for kernel in (exact, changed(exact, NEVER), changed(exact, quiet))
    ]
    assert is_nan == [True, True, False]


@pytest.mark.parametrize(
    ("keys", "skips"),
    [
        ({}, True),
        ({"score": "alibi"}, True),
        ({"mask": {"sliding_window": 300}}, False),
        ({"depth": 192, "value_depth": 128, "BN": "auto"}, False),
        ({"depth": 96}, False),
        ({"cta_group": 2}, False),
        ({"score": "score - 0.5 * abs(query - key)"}, False),
        ({"score": "score - 0.5 * key"}, False),
    ],
)
def test_which_kernels_leave_far_blocks_out(keys: dict[str, Any], skips: bool) -> None:
    config = load_mapping({"kernel": "attention", **BASE, **keys}, "probe").config
    plan: Any = build_plan(config)
    assert plan.skips_far_blocks == skips
    assert ("far_barrier" in dict(plan.named_barriers)) == skips
