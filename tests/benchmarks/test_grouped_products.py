"""The program that compares grouped products: its problems, tiles and lines, without a GPU."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import grouped_problems
import grouped_products
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.runtime import gemm as runtime
from fa4gen.runtime.gemm_schedule import GemmSize
from fa4gen.runtime.timing import Timing

if TYPE_CHECKING:
    from pathlib import Path

SETS = {
    "bf16 many": ("bf16", grouped_problems.MANY_TILES),
    "bf16 few": ("bf16", grouped_problems.FEW_TILES),
    "bf16 fewest": ("bf16", grouped_problems.FEWEST_TILES),
    "fp8 many": ("fp8", grouped_problems.SCALED_MANY),
    "fp8 few": ("fp8", grouped_problems.SCALED_FEW),
    "fp8 fewest": ("fp8", grouped_problems.FEWEST_TILES),
}


@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("name", SETS)
def test_every_tile_has_a_plan(name: str, groups: str) -> None:
    dtype, tiles = SETS[name]
    for tile in tiles.values():
        config = grouped_problems.config_of(dtype, groups, tile)
        plan: Any = build_plan(load_mapping(config, "tile").config)
        assert (plan.groups, bool(plan.scales)) == (groups, dtype == "fp8")


def test_groups_are_drawn_once_and_for_all() -> None:
    draws = grouped_problems.draws()
    assert draws == grouped_problems.draws()
    assert draws["4x8192"] == (8192,) * 4
    uneven = draws["32, 512 drawn"]
    assert (len(uneven), sum(uneven), min(uneven), max(uneven)) == (32, 512, 0, 105)
    problem = grouped_problems.Problem("a", (3, 0, 5), 8, 8)
    assert (problem.offsets, problem.rows) == ([0, 3, 3, 8], 8)


@pytest.mark.parametrize(
    ("rows", "dtype", "tile"),
    [(8192, "bf16", "256x128"), (64, "bf16", "64x256"), (16, "fp8", "swapped 16x64")],
)
def test_tiles_fit_the_rows_of_a_group(rows: int, dtype: str, tile: str) -> None:
    problem = grouped_problems.Problem("a", (rows, rows), 4096, 7168)
    assert tile in grouped_problems.tiles_for(problem, dtype)


class FakeOperands:
    """Operands whose launches do nothing."""

    def __init__(self, problem: Any, dtype: str, groups: str) -> None:
        self.out = SimpleNamespace(fill_=lambda value: None)

    def launch(self, kernel: Any, most_ctas: int | None = None) -> Any:
        return lambda: None

    def error(self) -> float:
        return 1e-3

    def peers(self) -> dict[str, Any]:
        return {"torch_bf16": lambda: None}

    def dense(self) -> dict[str, Any]:
        return {"one B": lambda: None}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run the program; its n-th callable takes n milliseconds."""

    def take_turns(runs: Any, protocol: Any, *, rounds: int) -> Any:
        return {name: (Timing((number + 1.0,)),) for number, name in enumerate(runs)}

    for name, value in (
        ("Operands", FakeOperands),
        ("compiled", lambda config, name: None),
        ("require_device", lambda _: SimpleNamespace(name="NVIDIA H200")),
        ("time_in_turn", take_turns),
    ):
        monkeypatch.setattr(grouped_products, name, value)

    def main(*arguments: str) -> list[dict[str, Any]]:
        out = tmp_path / "out.jsonl"
        monkeypatch.setattr(sys, "argv", ["grouped_products.py", str(out), *arguments])
        grouped_products.main()
        return [json.loads(line) for line in out.read_text().splitlines()]

    return main


def test_a_line_has_times_and_what_they_mean(run: Any, tmp_path: Path) -> None:
    ratios = tmp_path / "ratios.json"
    line = {"part": "grouped", "groups": "64x64", "n": 4096, "k": 7168, "torch_bf16_us": 1200.0,
            "deepgemm_bf16_us": 1000.0}  # fmt: skip
    ratios.write_text(json.dumps({"lines": [line]}))
    (found,) = run("--case", "64x64", "--shape", "4096x7168", "--tile", "BM=64,BN=128", "--ratios",
                   str(ratios))  # fmt: skip
    assert (found["problem"], found["kernel"]) == ("64x64, 4096x7168", "BM=64,BN=128")
    assert found["times_us"] == [1000.0]
    assert found["peers_us"] == {"torch_bf16": 2000.0, "one B": 3000.0}
    assert found["details"]["deepgemm_estimated_us"] == pytest.approx(2000 / 1.2, abs=0.01)
    assert found["details"]["gbytes_s"] == pytest.approx(3850, rel=0.01)


def test_fewer_ctas_take_turns_with_as_many_as_run(run: Any) -> None:
    arguments = ("--case", "4x8192", "--shape", "4096x7168", "--tile", "BM=256", "--ctas", "128")
    (found,) = run(*arguments)
    assert list(found["details"]["tiles_us"]) == ["BM=256", "BM=256, 128 CTAs"]


def test_a_launch_has_no_more_ctas_than_are_allowed() -> None:
    config = grouped_problems.config_of("bf16", "offsets", {})
    plan: Any = build_plan(load_mapping(config, "tile").config)
    size = GemmSize(4, 32768, 4096, 7168)
    with grouped_products.fewer_ctas(128):
        assert runtime.plan_gemm_schedule(plan, size, 132).grid == 128
    assert runtime.plan_gemm_schedule(plan, size, 132).grid == 132


def test_a_wrong_tile_ends_the_program(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeOperands, "error", lambda self: 1.0)
    with pytest.raises(SystemExit, match=r"64x64, 64x256: an error of 1"):
        run("--case", "64x64", "--shape", "4096x7168")
