"""Decode in a captured graph: lengths and the page table are read when it is replayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fa4gen
from tests.runtime.gpu_arrays import random, to_gpu
from tests.runtime.test_attention_gpu import reference

pytestmark = pytest.mark.gpu

CONFIG: dict[str, Any] = {
    "kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128, "mask": "causal",
    "pack_heads": True,
}  # fmt: skip
SOURCES: dict[str, dict[str, Any]] = {
    "lengths": {"key_lengths": True},
    "pages": {"keys": "paged", "page_size": 64},
}
PAGE, PAGES, SEQUENCES = 64, 40, 3
KEYS = PAGE * PAGES
LENGTHS = ((KEYS, 1, 700), (64, KEYS, KEYS), (0, 2, 1999), (KEYS, 1, 700))
"""The lengths of the sequences, replay by replay; the first ones come back."""


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rows", [8, 64])
@pytest.mark.parametrize("split_keys", ["auto", {"keys": 512}])
def test_a_captured_call_follows_its_lengths(rows: int, source: str, split_keys: Any) -> None:
    import cupy

    keys = {"packed_rows": rows, "split_keys": split_keys, **SOURCES[source]}
    kernel: Any = fa4gen.load({**CONFIG, **keys, "name": f"graph_{rows}"})
    query = random(SEQUENCES, 2, 8, 128, seed=1)
    key, value = (random(SEQUENCES, KEYS, 2, 128, seed=2 + i) for i in range(2))
    lengths = to_gpu(np.array(LENGTHS[0], np.int32))
    more: dict[str, Any] = {"key_lengths": lengths}
    stored = [key, value]
    if source == "pages":
        table = np.random.default_rng(5).permutation(SEQUENCES * PAGES).astype(np.int32)
        stored = [np.empty_like(x).reshape(-1, PAGE, 2, 128) for x in (key, value)]
        for pages, x in zip(stored, (key, value), strict=True):
            pages[table] = x.reshape(-1, PAGE, 2, 128)
        more["page_table"] = to_gpu(table.reshape(SEQUENCES, PAGES))
    launch = kernel.prepare(to_gpu(query), *map(to_gpu, stored), **more)
    launch()
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        launch()
        graph = stream.end_capture()
    outputs = []
    for counts in LENGTHS:
        lengths.set(np.array(counts, np.int32))
        launch.out.data.memset_async(0xFF, launch.out.nbytes)
        cupy.cuda.Device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        outputs.append(launch.out.get())
        for i, count in enumerate(counts):
            part = (query[i : i + 1], key[i : i + 1, :count], value[i : i + 1, :count])
            expected = reference(*part, scale=128**-0.5, causal=True)[0][0]
            np.testing.assert_allclose(outputs[-1][i].astype(np.float64), expected, atol=0.03)
        launch()  # the same call without the graph
        cupy.cuda.Device().synchronize()
        assert np.array_equal(launch.out.get().view(np.uint16), outputs[-1].view(np.uint16))
    assert np.array_equal(outputs[0].view(np.uint16), outputs[-1].view(np.uint16))
