"""The figures of a whole kernel: attention as FlashAttention-4 arranges it, written by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from fa4gen.emulator.timeline.figures import Figures, measure, read_events
from fa4gen.emulator.timeline.picture import draw
from tests.emulator.mutations.harness import original
from tests.emulator.mutations.kernels import KERNELS, attention_data

BLOCKS = 12
KERNEL = KERNELS["attention_sm100"]

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Any:
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    data = attention_data(256, BLOCKS * 128, 128, bfloat16)(0)
    report = KERNEL.launch(original(KERNEL), data, checks=False, trace=path)
    assert report.verdict.value == "clean"
    assert KERNEL.is_right(data)
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def figures(trace) -> Figures:
    return measure(read_events(trace))


def test_every_resource_is_used_as_the_arithmetic_says(figures) -> None:
    """Two tiles of 128 queries, 128 keys a block, depth 128."""
    m, n, d = 256, 128, 128
    assert figures.blocks == BLOCKS - 1 - BLOCKS // 4
    assert figures.limits["tensor core"] == pytest.approx(4 * m * n * d / 8192)
    assert figures.limits["exp2"] == pytest.approx(m * n / 16, rel=0.03)
    operands = 2 * (2 * 128 * d * 2) + 2 * n * d * 2
    assert figures.limits["operands in shared memory"] == pytest.approx(operands * n / 128 / 128)
    assert figures.limits["TMA"] == pytest.approx(2 * n * d * 2 / 64, rel=0.15)


def test_no_resource_is_used_for_longer_than_there_is_time(figures) -> None:
    assert max(figures.limits.values()) <= figures.cycles_per_block
    assert 0.5 < figures.tensor_busy < 0.9
    busy = figures.tensor_busy * figures.cycles_per_block
    assert busy == pytest.approx(figures.limits["tensor core"])
    total = figures.end - figures.begin
    assert figures.gaps.total == pytest.approx((1 - figures.tensor_busy) * total, rel=0.02)


def test_the_roles_have_the_names_of_the_kernel(trace, figures) -> None:
    names = ["softmax 0", "softmax 1", "correction", "issuer", "loader"]
    assert [role.name for role in figures.roles] == names
    for role in figures.roles:
        assert sum(role.kinds.values()) == pytest.approx(1, abs=0.02)
    svg = draw(trace, title="attention")
    assert all(f">{name}</text>" in svg for name in (*names, "tensor core", "TMA"))


def test_the_trace_is_the_same_each_time(trace, tmp_path) -> None:
    data = attention_data(256, BLOCKS * 128, 128, bfloat16)(0)
    KERNEL.launch(original(KERNEL), data, checks=False, trace=tmp_path / "again.json", seed=3)
    again = json.loads((tmp_path / "again.json").read_text())
    np.testing.assert_allclose(
        [one["ts"] for one in trace["traceEvents"] if one["ph"] == "X"],
        [one["ts"] for one in again["traceEvents"] if one["ph"] == "X"],
        rtol=0.1,
    )
