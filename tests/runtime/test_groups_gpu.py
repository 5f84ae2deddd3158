"""Products of groups of rows on a GPU: counts on the device, graphs, neighbours, the page."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fa4gen
from tests.runtime.gpu_arrays import random, to_gpu

pytestmark = pytest.mark.gpu

PAGE = Path(__file__).parents[2] / "docs/guide/grouped-products.md"
N, K, ROWS = 264, 200, 700
COUNTS = (100, 0, 37, 300, 1)
OTHER_COUNTS = (0, 250, 129, 3, 128)
TOLERANCE = 0.01
"""A share of the largest element: more than the rounding of bf16, far less than a wrong one."""


@pytest.fixture(scope="module")
def grouped() -> Any:
    return fa4gen.load("gemm_grouped_bf16_sm90")


@pytest.fixture(scope="module")
def masked() -> Any:
    keys = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "groups": "masked", "BM": 64}
    return fa4gen.load({**keys, "name": "gpu_masked"})


def weights(groups: int = len(COUNTS)) -> tuple[Any, Any]:
    """Return B (groups, k, n) on the host, and on the GPU with k contiguous."""
    host = random(groups, N, K, seed=1)
    return host.swapaxes(1, 2), to_gpu(host).swapaxes(1, 2)


def offsets_of(counts: tuple[int, ...], first: int = 5) -> Any:
    return (first + np.cumsum((0, *counts))).astype(np.int32)


def check(out: Any, a: Any, b: Any, offsets: Any) -> None:
    """Check each group's rows, and that no other row was written."""
    got = out.get().astype(np.float64)
    written = np.zeros(len(got), np.bool_)
    for group, (begin, end) in enumerate(itertools.pairwise(offsets)):
        expected = a[begin:end].astype(np.float64) @ b[group].astype(np.float64)
        written[begin:end] = True
        if expected.size:
            most = abs(expected).max()
            np.testing.assert_allclose(got[begin:end], expected, atol=TOLERANCE * most)
    assert np.isnan(got[~written]).all()


def poisoned() -> Any:
    return to_gpu(np.full((ROWS, N), np.nan, random(1).dtype))


def test_groups_of_any_rows(grouped: Any) -> None:
    a, (b, on_gpu) = random(ROWS, K), weights()
    for counts in (COUNTS, OTHER_COUNTS, (0,) * len(COUNTS)):
        out, offsets = poisoned(), offsets_of(counts)
        grouped(to_gpu(a), on_gpu, row_offsets=to_gpu(offsets), out=out)
        check(out, a, b, offsets)


def test_a_captured_graph_replays_with_other_counts(grouped: Any) -> None:
    import cupy

    a, (b, on_gpu) = random(ROWS, K), weights()
    a_on_gpu, out, offsets = to_gpu(a), poisoned(), to_gpu(offsets_of(COUNTS))
    launch = grouped.prepare(a_on_gpu, on_gpu, row_offsets=offsets, out=out)
    launch()
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        stream.begin_capture()
        launch()
        graph = stream.end_capture()
    for counts in (OTHER_COUNTS, COUNTS):
        others = offsets_of(counts, first=0)
        with stream:
            offsets.set(others)
            out.data.memset_async(0xFF, out.nbytes)  # NaN
        graph.launch(stream)
        stream.synchronize()
        check(out, a, b, others)


def test_masked_groups(masked: Any) -> None:
    most = 130
    a, (b, on_gpu) = random(len(COUNTS), most, K), weights()
    counts = np.array((130, 0, 64, 65, 1), np.int32)
    out = to_gpu(np.full((len(COUNTS), most, N), np.nan, a.dtype))
    masked(to_gpu(a), on_gpu, row_counts=to_gpu(counts), out=out)
    got = out.get().astype(np.float64)
    for group, count in enumerate(counts):
        expected = a[group, :count].astype(np.float64) @ b[group].astype(np.float64)
        if count:
            most_of = abs(expected).max()
            np.testing.assert_allclose(got[group, :count], expected, atol=TOLERANCE * most_of)
        assert np.isnan(got[group, count:]).all()


def test_neighbours_change_no_bit(grouped: Any) -> None:
    a, (b, on_gpu) = random(ROWS, K), weights()
    offsets = offsets_of(COUNTS)
    expected = grouped(to_gpu(a), on_gpu, row_offsets=to_gpu(offsets)).get()
    for group, value in ((3, np.nan), (0, np.inf)):
        begin, end = offsets[group : group + 2]
        rows, filled = np.full_like(a, value), np.full((len(COUNTS), N, K), value, a.dtype)
        rows[begin:end], filled[group] = a[begin:end], b[group].T
        others = to_gpu(filled).swapaxes(1, 2)
        out = grouped(to_gpu(rows), others, row_offsets=to_gpu(offsets)).get()
        same = out[begin:end].view(np.uint16) == expected[begin:end].view(np.uint16)
        assert same.all()


def test_as_many_groups_as_a_call_may_have(grouped: Any) -> None:
    counts = tuple(int(count) for count in np.random.default_rng(0).integers(0, 3, 512))
    a, (b, on_gpu) = random(5 + sum(counts) + 9, K), weights(512)
    offsets = offsets_of(counts)
    out = to_gpu(np.full((len(a), N), np.nan, a.dtype))
    grouped(to_gpu(a), on_gpu, row_offsets=to_gpu(offsets), out=out)
    check(out, a, b, offsets)


def test_torch_code_of_the_page_runs() -> None:
    torch = pytest.importorskip("torch", reason="no PyTorch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    page = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(compile(code, "grouped-products.md", "exec"), {})
