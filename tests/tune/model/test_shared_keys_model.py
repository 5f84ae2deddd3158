"""The model of kernels whose CTAs share the keys, against what was measured on an H200."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fa4gen.cli.main import main
from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.tune.family import family_called
from fa4gen.tune.model.chips import H200

MEASURED = Path(__file__).parents[3] / "benchmarks/results/decode_h200.jsonl"
ATTENTION = family_called("attention")


def predicted(problem: str, **keys: Any) -> Any:
    given = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
    plan = build_plan(config_from_data({**given, "pack_heads": True, **keys}, "k"))
    return ATTENTION.predict(plan, ATTENTION.parse_problem(problem), H200)


def test_agrees_with_measurements() -> None:
    ratios = []
    for line in map(json.loads, MEASURED.read_text(encoding="utf-8").splitlines()):
        row = line["details"]
        if line["at"] != ["results"]:
            continue
        word = f"{row['batch']}x{row['heads']}/{row['key_heads']}x{row['rows']}x{row['keys']}"
        keys = row["batch"] * row["key_heads"] * row["keys"]
        us = keys * 2 * row["depth"] * 2 / row["fa4gen"] / 1e3
        found = predicted(word, depth=row["depth"], packed_rows=row["packed_rows"], mask="causal")
        ratios.append(found.us / us)
    ratios.sort()
    assert len(ratios) == 25
    assert 0.96 <= ratios[12] <= 1.04
    assert ratios[1] >= 0.83  # the first: four tiles of each key head at depth 256, 0.76
    assert ratios[-1] <= 1.14


def test_the_fullest_cta_sets_the_time() -> None:
    """20 sequences of 8 key heads are 160 tiles for 132 CTAs: shares are even, splits are not."""
    shares = ("auto", {"keys": 4096})
    even, splits = (predicted("20x32/8x1x8192", split_keys=split).us for split in shares)
    assert splits > 1.1 * even


def test_a_window_is_all_that_is_read() -> None:
    wide, narrow = (
        predicted("16x32/8x1x32768", mask={"sliding_window": window}) for window in (32768, 4096)
    )
    assert narrow.memory_us < wide.memory_us / 7
    assert (wide.bound, wide.waves, wide.ctas) == ("memory", 1, 132)


@pytest.mark.parametrize("config", ["decode_d128_paged64_bf16", "d128_ragged_causal_bf16"])
def test_explain_and_tune_know_them(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", config, "--problem", "32x64/8x1x8192"]) == 0
    assert f"{config} " in capsys.readouterr().out
    tune = ["tune", config, "--problem", "32x64/8x1x8192", "--no-measure", "--out", "kernels"]
    assert main(tune) == 0
    assert (tmp_path / "kernels" / f"{config}.tuning.yaml").exists()
