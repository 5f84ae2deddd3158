"""The program that times gradients of grouped weights: its tiles and lines, without a GPU."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import grouped_gradients
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.runtime.timing import Timing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", grouped_gradients.TILES)
def test_every_tile_has_a_plan(name: str) -> None:
    tile = grouped_gradients.TILES[name]
    config = {**grouped_gradients.PLAIN, "groups": "k_offsets", **tile}
    plan: Any = build_plan(load_mapping(config, "tile").config)
    assert plan.sums_by_group
    assert plan.num_stages >= 3


def test_a_line_has_the_fastest_tile_that_only_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = dict.fromkeys(grouped_gradients.TILES, 9.0)
    times |= {"128x192": 0.5, "128x256 added": 0.1, "torch_bf16": 1.0}
    fake = SimpleNamespace(
        launch=lambda kernel: lambda: None, others=lambda: {"torch_bf16": lambda: None}
    )
    monkeypatch.setattr(grouped_gradients, "Gradients", lambda problem: fake)
    monkeypatch.setattr(grouped_gradients, "compiled", lambda config, name: name)
    monkeypatch.setattr(
        grouped_gradients, "require_device", lambda arch: SimpleNamespace(name="a chip")
    )
    monkeypatch.setattr(
        grouped_gradients,
        "time_in_turn",
        lambda runs, protocol, rounds: {name: [Timing((times[name],))] for name in runs},
    )
    out = tmp_path / "out.jsonl"
    monkeypatch.setattr(sys, "argv", ["x", str(out), "--case", "4x8192", "--shape", "64x128"])
    grouped_gradients.main()
    (line,) = map(json.loads, out.read_text().splitlines())
    assert (line["problem"], line["kernel"]) == ("4x8192, 64x128", "128x192")
    assert (line["times_us"], line["peers_us"]) == ([500.0], {"torch_bf16": 1000.0})
    assert "torch_bf16 2.000" in capsys.readouterr().out
