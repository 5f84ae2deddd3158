"""FlashAttention-4's forward and backward, as its own host code launches it, in the emulator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.judging import CuteRecorder, judge
from tests.compat.references import attention, gradients

pytestmark = pytest.mark.compat

# what docs/measurements/emulator-findings.md lists
KNOWN = {
    "sm_90a": {"illegal-instruction"},
    "sm_100a": {
        "cancelled-cluster",
        "illegal-instruction",
        "missing-tcgen05-fence",
        "missing-tcgen05-wait",
        "partial-warp",
        "race",
    },
}


def case(arch: str, depth: int, rows: int, keys: int, mask: str, **more: Any) -> Any:
    name = "-".join([arch, f"d{depth}", f"{rows}x{keys}", mask, *map(str, more)])
    options = {"dtype": "bfloat16", **more}
    return pytest.param(
        {"arch": arch, "depth": depth, "rows": rows, "keys": keys, "mask": mask, **options}, id=name
    )


@pytest.mark.parametrize(
    "problem",
    [
        case("sm_100a", 64, 384, 384, "causal"),
        case("sm_100a", 64, 256, 200, "none", dtype="float16"),
        case("sm_100a", 128, 256, 512, "causal"),
        case("sm_100a", 128, 300, 300, "causal", dtype="float16"),
        case("sm_100a", 128, 512, 384, "none"),
        case("sm_100a", 128, 128, 256, "causal", heads=4, key_heads=2),
        case("sm_100a", 128, 256, 256, "causal", heads=3, key_heads=3, clc=True),
        case("sm_100a", 256, 256, 384, "causal"),
        case("sm_100a", 256, 256, 256, "none"),
        case("sm_90a", 64, 256, 384, "causal"),
        case("sm_90a", 128, 256, 256, "causal"),
        case("sm_90a", 128, 200, 300, "none", dtype="float16"),
        case("sm_90a", 256, 128, 256, "causal"),
    ],
)
def test_forward(cute: CuteRecorder, problem: dict[str, Any]) -> None:
    recording = cute(what="attention", **problem)
    q, k, v = (recording.values(name) for name in "qkv")
    out, lse = attention(q, k, v, problem["mask"])
    precision = 2**-8 if problem["dtype"] == "bfloat16" else 2**-11
    judge(
        recording,
        {"out": out, "lse": lse},
        bounds={"out": precision, "lse": 1e-5},
        known=KNOWN[problem["arch"]],
    )


BACKWARD = {
    "sm_90a": KNOWN["sm_90a"] | {"race"},
    "sm_100a": KNOWN["sm_100a"] | {"barrier-misuse", "early-exit"},
}
# of pairs of CTAs; 256 has kernels of its own
DEFECTS = {128: {"early-exit", "race"}, 256: {"race"}}


@pytest.mark.parametrize(
    "problem",
    [
        case("sm_100a", 64, 256, 256, "causal"),
        case("sm_100a", 64, 200, 300, "none", dtype="float16"),
        case("sm_100a", 128, 256, 256, "causal"),
        case("sm_100a", 128, 128, 200, "none", heads=2, key_heads=1),
        case("sm_100a", 256, 128, 256, "causal"),
        case("sm_90a", 64, 256, 256, "causal", deterministic=True),
        case("sm_90a", 128, 200, 300, "none", dtype="float16"),
        case("sm_90a", 128, 128, 128, "causal", heads=2, key_heads=1),
    ],
)
def test_backward(cute: CuteRecorder, problem: dict[str, Any]) -> None:
    recording = cute(what="backward", **problem)
    given = (recording.values(name) for name in ("q", "k", "v", "dout"))
    dq, dk, dv = gradients(*given, mask=problem["mask"])
    precision = 2**-7 if problem["dtype"] == "bfloat16" else 2**-10
    defects = DEFECTS.get(problem["depth"], set()) if problem["arch"] == "sm_100a" else set()
    errors = judge(
        recording,
        {"dq": dq, "dk": dk, "dv": dv},
        bounds=dict.fromkeys(("dq", "dk", "dv"), precision),
        known=BACKWARD[problem["arch"]],
        defects=defects,
    )
    assert errors == defects
