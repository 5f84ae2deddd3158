from __future__ import annotations

import json

import pytest

from fa4gen.bench.report import (
    config_table,
    host_table,
    results_data,
    summary_table,
)
from fa4gen.bench.results import HostTimes
from fa4gen.bench.run import BenchOptions
from fa4gen.bench.workload import mask_word
from fa4gen.errors import Problem


def data(results):
    document = results_data(
        results,
        BenchOptions((1024, 2048, 4096), rounds=3, seed=7, family="attention"),
        date="2026-11-21T12:00:00+00:00",
        gpu={"name": "NVIDIA H200"},
        versions={"torch": "2.11.0"},
        notes=("fa3 left out: why",),
    )
    return json.loads(json.dumps(document, allow_nan=False))


def test_the_table_of_a_config(make_result) -> None:
    table = config_table(make_result())
    assert table.title == "k: bf16, depth 128, causal; TFLOP/s"
    assert table.columns == (
        "rows", "batch", "ours", "fa3", "cudnn", "ours/fa3", "ours/cudnn", "ours/best", "best peer",
        "spread",
    )  # fmt: skip
    assert table.rows[0] == (
        "1k", "16", "200", "167", "250", "1.200", "0.800", "0.800", "cudnn", "20.0 %"
    )  # fmt: skip
    assert table.rows[2][3:9] == ("200", "-", "2.000", "-", "2.000", "fa3")
    assert table.rows[3] == (
        "geometric mean", "", "", "", "", "1.243", "1.265", "1.086", "", ""
    )  # fmt: skip
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_table_with_one_peer_or_none(make_result, make_size) -> None:
    one = config_table(make_result(sizes=(make_size(1024, 0.5, fa3=1.0),)))
    assert one.columns == ("rows", "batch", "ours", "fa3", "ours/fa3", "spread")
    assert one.rows[-1] == ("geometric mean", "", "", "", "2.000", "")
    none = config_table(make_result(sizes=(make_size(1024, 0.5),)))
    assert none.columns == ("rows", "batch", "ours", "spread")
    assert len(none.rows) == 1


def test_the_table_where_memory_sets_the_speed(make_result, make_size) -> None:
    size = make_size(1, 0.5, read_bytes=2 * 10**9, fa3=0.6, floor=0.4)
    result = make_result(sizes=(size,), facts={**make_result().facts, "packed_rows": 8})
    table = config_table(result)
    assert table.title == "k: bf16, depth 128, causal, tiles of 8 packed rows; GB/s"
    assert table.columns[2:] == ("ours", "fa3", "floor", "ours/fa3", "ours/floor", "spread")
    assert table.rows[0][2:7] == ("4000", "3333", "5000", "1.200", "0.800")
    found = data([result])["configs"][0]["sizes"][0]
    assert found["read_bytes"] == 2 * 10**9
    assert found["peers"]["floor"]["gb_per_s"] == 5000.0
    assert found["best_peer"] == "fa3"
    assert "gb_per_s" not in data([make_result()])["configs"][0]["sizes"][0]["ours"]


def test_the_summary(make_result, make_size) -> None:
    short = make_result("short", sizes=(make_size(2048, 1.0, fa3=1.5),))
    table = summary_table([make_result(), short])
    assert table.columns == ("ours / best peer", "1k", "2k", "4k", "geometric mean")
    assert table.rows == (
        ("k", "0.800", "0.800", "2.000", "1.086"),
        ("short", "-", "1.500", "-", "1.500"),
    )
    assert summary_table([make_result(sizes=(make_size(1024, 1.0),))]) is None


def test_the_json_document(make_result) -> None:
    document = data([make_result()])
    assert document["gpu"]["name"] == "NVIDIA H200"
    assert document["protocol"]["rounds"] == 3
    assert document["protocol"]["seed"] == 7
    assert document["notes"] == ["fa3 left out: why"]
    (config,) = document["configs"]
    assert config["depth"] == 128
    assert config["geometric_means"] == {"fa3": 1.2429, "cudnn": 1.2649, "best": 1.0858}
    size = config["sizes"][0]
    assert size["ours"]["tflops"] == 200.0
    assert size["ours"]["round_medians_ms"] == [0.5, 0.55, 0.45]
    assert size["ours"]["round_spreads"] == [0.01, 0.01, 0.01]
    assert size["ratios"] == {"fa3": 1.2, "cudnn": 0.8, "best": 0.8}
    assert size["best_peer"] == "cudnn"
    assert size["distances"] == {"fa3": 0.003, "cudnn": 0.003}


def test_a_config_that_was_not_measured_is_in_the_document(make_result) -> None:
    broken = make_result("broken", sizes=(), facts={}, problems=(Problem("does not compile"),))
    document = data([broken])
    assert document["configs"][0]["problems"] == ["does not compile"]
    assert document["configs"][0]["geometric_means"] == {}


def test_masks_in_words() -> None:
    assert mask_word({"mask": "none"}) == "dense"
    window = {"mask": "sliding_window", "window_left": 1023, "window_right": 0}
    assert mask_word(window) == "window 1024"
    assert mask_word({**window, "window_right": 7}) == "window 1023+1+7"


def test_our_own_kernel_through_the_vendored_launcher_is_no_competitor(make_result, make_size):
    size = make_size(1024, 0.5, fa3=0.6, vendored=0.4)
    assert size.best_peer == "fa3"
    assert size.ratio("vendored") == pytest.approx(0.8)
    assert make_size(1024, 0.5, vendored=0.4).best_peer is None
    alone = make_result(sizes=(make_size(1024, 0.5, vendored=0.4),))
    assert summary_table([alone]) is None


def test_the_host_time_of_launches(make_result) -> None:
    assert host_table([make_result()]) is None
    assert "host_us" not in data([make_result()])["configs"][0]
    result = make_result(host_us=HostTimes(15.0, 7.0, 5.25, 2.5, 1.75, 2.25))
    table = host_table([make_result("other"), result])
    assert table is not None
    assert table.rows == (("k", "15.00", "7.00", "5.25", "2.50", "1.75", "2.25"),)
    assert data([result])["configs"][0]["host_us"]["vendored_prepared"] == 2.5
