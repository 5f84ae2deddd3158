"""The program that compares products with scales of blocks, on NumPy with kernels by definition."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import scaled_products

from fa4gen.bench.peers import LeftOutError, Peer, Peers
from fa4gen.designs.build import build_plan
from fa4gen.runtime.timing import Timing
from tests.bench.fakes import COMPILED, put_on_numpy
from tests.bench.scaled_kernel import ScaledKernel

if TYPE_CHECKING:
    from pathlib import Path


class Absent(Peer):
    name = "cublas"

    def prepare(self, plan: Any, operands: Any) -> Any:
        raise LeftOutError("it is absent")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run the program; its n-th callable takes n milliseconds."""
    monkeypatch.setattr("fa4gen.runtime.gemm.GemmKernel", ScaledKernel)
    monkeypatch.setattr(ScaledKernel, "prepared", [])
    put_on_numpy(monkeypatch)

    def take_turns(runs: Any, protocol: Any, *, rounds: int) -> Any:
        return {
            name: tuple(Timing((number + 1.0,)) for _ in range(rounds))
            for number, name in enumerate(runs)
        }

    for name, value in (
        (
            "compile_config",
            lambda one: SimpleNamespace(plan=build_plan(one.config), kernel=COMPILED),
        ),
        ("find_gemm_peers", lambda: Peers((Absent(),), ())),
        ("require_device", lambda _: SimpleNamespace(name="NVIDIA H200")),
        ("time_in_turn", take_turns),
    ):
        monkeypatch.setattr(scaled_products, name, value)

    def main(*arguments: str) -> list[dict[str, Any]]:
        out = tmp_path / "out.jsonl"
        monkeypatch.setattr(sys, "argv", ["scaled_products.py", str(out), *arguments])
        scaled_products.main()
        return [json.loads(line) for line in out.read_text().splitlines()]

    return main


def test_tiles_are_timed_on_the_same_operands(run: Any, capsys: Any) -> None:
    (line,) = run("--shape", "40x256x512")
    assert (line["problem"], line["kernel"], line["times_us"]) == ("40x256x512", "64x32", [1000.0])
    assert set(line["details"]["tiles_us"]) == set(scaled_products.FEW_TILES)
    assert list(line["peers_us"]) == ["64x32 transposed scales", "without scales"]
    assert "40x256x512: cublas left out: it is absent" in capsys.readouterr().out


def test_tiles_may_be_given(run: Any) -> None:
    (line,) = run("--shape", "40x256x512", "--tile", "BM=64,BN=64", "--tile", "BM=128,BN=64")
    assert list(line["details"]["tiles_us"]) == ["BM=64,BN=64", "BM=128,BN=64"]


def test_shapes_are_drawn(run: Any) -> None:
    shapes = list(scaled_products.drawn(20, 1))
    assert len({shape.at for shape in shapes}) == 20
    assert all(shape.k % 128 == 0 and shape.n % 16 == 0 for shape in shapes)


def test_a_wrong_kernel_ends_the_program(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def double(scales: dict[str, Any]) -> None:
        for one in scales.values():
            one *= 2

    monkeypatch.setattr(ScaledKernel, "mistake", staticmethod(double))
    with pytest.raises(SystemExit, match="is wrong"):
        run("--shape", "40x256x512", "--tile", "BM=64,BN=64")
