from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fa4gen.bench.batches import Batch
from fa4gen.bench.layout import cache_scales, lay_out
from fa4gen.bench.workload import make_workload
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.key_sources import Keys, key_source_of

UNEVEN = Batch("uneven", (3, 1), (5, 40))


def plan(batching: str = "dense", keys: Keys = "dense", **facts: Any) -> Any:
    return SimpleNamespace(
        name="probe",
        is_ragged=batching == "ragged",
        is_paged=keys == "paged",
        keys=keys,
        key_source=key_source_of(keys, has_lengths=False, page_size=facts.get("page_size")),
        key_lengths=keys == "paged" or facts.get("key_lengths", False),
    )


def test_dense_tensors_have_no_tables() -> None:
    layout = lay_out(plan(), make_workload(Batch("x", (2, 2), (7, 7)), 256, 128))
    assert (layout.query, layout.key) == ((2, 2, 16, 256), (2, 7, 8, 256))
    assert layout.value == (2, 7, 8, 128)
    assert layout.tables == {}


def test_sequences_one_after_the_other() -> None:
    layout = lay_out(plan("ragged", "ragged"), make_workload(UNEVEN, 64))
    assert (layout.query, layout.key) == ((4, 64, 64), (45, 8, 64))
    tables = {name: table.tolist() for name, table in layout.tables.items()}
    assert tables == {"query_offsets": [0, 3, 4], "key_offsets": [0, 5, 45]}
    key = np.arange(45 * 8).reshape(45, 8, 1)
    assert layout.key_rows(key, 1, 2)[0, :, 0, 0].tolist() == [8 * (5 + i) + 2 for i in range(40)]
    query = np.arange(4 * 64).reshape(4, 64, 1)
    assert layout.query_rows(query, 1, 9).tolist() == [[[[3 * 64 + 9]]]]


def test_pages_are_shuffled_and_found_again() -> None:
    layout = lay_out(plan("ragged", "paged", page_size=16), make_workload(UNEVEN, 64), seed=3)
    assert layout.key == (1 + 3, 16, 8, 64)
    table, lengths = layout.tables["page_table"], layout.tables["key_lengths"]
    assert table.shape == (2, 3)
    assert lengths.tolist() == [5, 40]
    used = [table[0, 0], *table[1]]
    assert sorted(used) == [0, 1, 2, 3]
    assert used != sorted(used)
    cache = np.zeros((4, 16, 8, 1), np.int64)
    for place, page in enumerate(table[1]):
        cache[page, :, 5, 0] = 16 * place + np.arange(16)
    assert layout.key_rows(cache, 1, 5)[0, :, 0, 0].tolist() == list(range(40))


def test_lengths_of_dense_keys() -> None:
    layout = lay_out(plan(key_lengths=True), make_workload(Batch("x", (3, 3), (5, 9)), 64))
    assert layout.key == (2, 9, 8, 64)
    assert layout.tables["key_lengths"].tolist() == [5, 9]
    tensor = np.zeros((2, 9, 8, 1))
    assert layout.key_rows(tensor, 0, 0).shape == (1, 5, 1, 1)
    assert layout.query_rows(np.zeros((2, 3, 64, 1)), 1, 63).shape == (1, 3, 1, 1)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (UNEVEN, "the sequences of uneven have different numbers of query rows, which needs"),
        (Batch("tail", (2, 2), (5, 6)), "the sequences of tail have different numbers of keys"),
    ],
)
def test_a_dense_kernel_takes_equal_sequences(batch: Batch, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        lay_out(plan(), make_workload(batch, 64))


@pytest.mark.parametrize(("kv_scale", "rows"), [("head", 2), ("page", 6)])
def test_a_cache_of_fp8_comes_with_its_scales(kv_scale: str, rows: int) -> None:
    config = {
        "kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128, "mask": "causal",
        "pack_heads": True, "keys": "paged", "page_size": 16, "kv_dtype": "fp8_e4m3",
        "kv_scale": kv_scale,
    }  # fmt: skip
    kernel = build_plan(load_mapping(config, "probe").config)
    layout = lay_out(kernel, make_workload(Batch("x", (1, 1), (48, 40)), 128))
    scales = cache_scales(kernel, layout)
    assert {name: array.shape for name, array in scales.items()} == {
        "key_descale": (rows, 8), "value_descale": (rows, 8)
    }  # fmt: skip


def test_prefill_over_a_cache_has_the_scales_of_its_pages() -> None:
    config = {
        "kernel": "attention", "arch": "sm_90a", "dtype": "fp8_e4m3", "depth": 128,
        "batching": "ragged", "keys": "paged", "page_size": 16, "kv_scale": "page",
    }  # fmt: skip
    kernel = build_plan(load_mapping(config, "probe").config)
    layout = lay_out(kernel, make_workload(Batch("x", (30, 40), (48, 40)), 128))
    assert {name: array.shape for name, array in cache_scales(kernel, layout).items()} == {
        "key_descale": (6, 8), "value_descale": (6, 8)
    }  # fmt: skip


def test_other_tensors_have_no_scales() -> None:
    config = {"kernel": "attention", "arch": "sm_100a", "depth": 128, "dtype": "fp8_e4m3"}
    kernel = build_plan(load_mapping(config, "probe").config)
    layout = lay_out(kernel, make_workload(Batch("x", (2, 2), (7, 7)), 128))
    assert cache_scales(kernel, layout) == {}
