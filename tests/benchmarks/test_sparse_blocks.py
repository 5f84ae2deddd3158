"""The benchmark of sparse blocks: what it makes of the times of its rounds."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import measured
import short_parts
import sparse_blocks

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SIZE, HALF = 128, 131072
TIMES = {
    "d128_dense_bf16": [2.0, 2.0, 4.0],
    "1.0": [2.5, 2.5, 2.5],
    "1.0 listing": [0.01, 0.01, 0.01],
    "0.5": [1.25, 1.25, 1.25],
    "0.5 listing": [0.01, 0.01, 0.02],
    "0.5 making": [0.005, 0.005, 0.005],
    "0.5 flex_attention": [2.5, 2.5, 2.5],
}
BLOCKS = {"1.0": 2 * HALF, "0.5": HALF}


def test_figures_are_medians_over_rounds() -> None:
    found = sparse_blocks.figures(SIZE, TIMES, BLOCKS)
    assert found["0.5"] == {
        "ms": 1.25,
        "tflops": round(4 * 128 * HALF * SIZE**2 / 1.25e9, 1),
        "of_dense": 0.8,
        "of_all": 1.0,
        "listing": 0.008,
        "making": 0.004,
        "flex_attention": 2.0,
    }
    assert not {"making", "flex_attention"} & found["1.0"].keys()


def test_its_file_becomes_lines_and_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program without a GPU: sizes take their turns in no time."""
    cuda = SimpleNamespace(
        get_device_name=lambda: "NVIDIA H200",
        current_stream=lambda: SimpleNamespace(cuda_stream=0),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    runs = dict.fromkeys(TIMES, lambda: None)
    monkeypatch.setattr(sparse_blocks, "runs_of", lambda size, densities, flex: (runs, BLOCKS))
    monkeypatch.setattr(sparse_blocks, "SIZES", {SIZE: "d128_blocks128_bf16"})
    monkeypatch.setattr(sparse_blocks, "host_us", lambda run: 43.0)

    def time_in_turn(runs: Any, *_: Any, **__: Any) -> Any:
        return {name: [SimpleNamespace(median_ms=ms) for ms in TIMES[name]] for name in runs}

    monkeypatch.setattr(sparse_blocks, "time_in_turn", time_in_turn)
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["sparse_blocks.py", str(out), "--flex"])
    sparse_blocks.main()
    lines = measured.lines_of(json.loads(out.read_text()), chip="", date="", commit="abc")
    assert [line["problem"] for line in lines] == [
        "128 x 128, density 1.0",
        "128 x 128, density 0.5",
    ]
    half = lines[1]
    assert (half["kernel"], half["chip"]) == ("d128_blocks128_bf16", "NVIDIA H200")
    assert half["times_us"] == [1250.0] * 3
    assert half["peers_us"] == {
        "d128_dense_bf16": 2000.0,
        "all blocks": 2500.0,
        "listing": 10.0,
        "making": 5.0,
        "flex_attention": 2500.0,
    }
    assert half["details"]["blocks"] == HALF
    path = tmp_path / short_parts.SPARSE
    path.parent.mkdir(parents=True)
    path.write_text(measured.text_of(lines))
    row = short_parts.sparse(tmp_path).splitlines()[3]
    assert row.endswith("| 0.800 | 1.000 | 2.00 | 10.0 | 5.0 | 43 |")
