"""Traces made by hand, with gaps that are known."""

from __future__ import annotations

from typing import Any

BLOCK = 100.0
UNIT, WORKER, ISSUER = 0, 1, 2
BUSY = {"exp2": 64.0, "issue": 16.0}


def event(
    track: int, name: str, kind: str, begin: float, length: float, **args: Any
) -> dict[str, Any]:
    return {
        "name": name, "cat": kind, "ph": "X", "ts": begin, "dur": length, "pid": 0, "tid": track,
        "args": args,
    }  # fmt: skip


def track(number: int, title: str, **facts: Any) -> dict[str, Any]:
    args = {"name": title, **facts}
    return {"name": "thread_name", "ph": "M", "pid": 0, "tid": number, "args": args}


def attention(blocks: int) -> dict[str, Any]:
    """Each block of 100 cycles: QK for 40, a gap of 10, PV for 30 in two parts, a gap of 20.

    In the first gap the issuer waits for ``weights``, in the second one for half of the time. The
    worker computes for 60 cycles and waits for 40.
    """
    shared = {"a": "shared memory", "issuer": 12, "shared": 640.0}
    tensor = {"a": "tensor memory", "issuer": 12, "shared": 320.0}
    events = [
        track(UNIT, "tensor core", unit="tensor core"),
        track(WORKER, "warp  0 softmax", warp=0, role="softmax"),
        track(ISSUER, "warp 12 issuer", warp=12, role="issuer"),
    ]
    for number in range(blocks):
        at = number * BLOCK
        events += [
            event(UNIT, "product", "tensor", at, 40.0, d=0, **shared),
            event(UNIT, "product", "tensor", at + 50, 15.0, d=128, **tensor),
            event(UNIT, "product", "tensor", at + 65, 15.0, d=128, **tensor),
            event(WORKER, "exp2", "exp2", at, 60.0, at="kernel.cu:7", **BUSY),
            event(WORKER, "wait for scores", "wait", at + 60, 40.0),
            event(ISSUER, "issue", "issue", at, 35.0, issue=4.0),
            event(ISSUER, "wait for weights", "wait", at + 35, 15.0),
            event(ISSUER, "wait for keys", "wait", at + 90, 10.0),
        ]
    return {"traceEvents": events, "otherData": {"target": 100}}
