"""Results made up of round numbers, so that every figure that follows from them is known."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.bench.results import ConfigResult, Series, SizeResult
from fa4gen.bench.workload import make_workload

FACTS = {
    "arch": "sm_90a",
    "dtype": "bf16",
    "depth": 128,
    "mask": "causal",
}


def make_series(*medians: float) -> Series:
    return Series(medians, tuple(0.01 for _ in medians))


def make_size(rows: int, ours: float, read_bytes: int = 0, **peers: float) -> SizeResult:
    return SizeResult(
        size=make_workload(rows, 128),
        flop=1e11,
        ours=make_series(ours, ours * 1.1, ours * 0.9),
        peers={name: make_series(time) for name, time in peers.items()},
        left_out={},
        error=0.0023,
        distances=dict.fromkeys(peers, 0.003),
        read_bytes=read_bytes,
    )


def make_result(name: str = "k", **changes: Any) -> ConfigResult:
    sizes = (
        make_size(1024, 0.5, fa3=0.6, cudnn=0.4),
        make_size(2048, 0.5, fa3=0.4, cudnn=1.0),
        make_size(4096, 0.25, fa3=0.5),
    )
    values: dict[str, Any] = {
        "config": f"{name}.yaml",
        "name": name,
        "facts": FACTS,
        "sizes": sizes,
        "family": "attention",
    }
    return ConfigResult(**{**values, **changes})


@pytest.fixture(name="make_size")
def make_size_fixture():
    return make_size


@pytest.fixture(name="make_result")
def make_result_fixture():
    return make_result
