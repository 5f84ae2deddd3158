"""Tiles of products with scales of blocks: what is tried, suits and is predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.bench.gemm_workload import GemmWorkload
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.tune import kernel_set
from fa4gen.tune.gemm_family import GEMM
from fa4gen.tune.kernel_set import open_set
from fa4gen.tune.model.chips import H200
from fa4gen.tune.model.gemm import GemmTile
from fa4gen.tune.search.timer import GpuTimer
from fa4gen.tune.tiles import HOPPER_GEMM
from tests.bench.fakes import COMPILED, put_on_numpy
from tests.bench.scaled_kernel import ScaledKernel

if TYPE_CHECKING:
    from pathlib import Path

SCALED: dict[str, Any] = {
    "kernel": "gemm",
    "arch": "sm_90a",
    "dtype": "fp8_e4m3",
    "scales": {"a": "1x128", "b": "128x128"},
}

TABLE = """\
base: few
chip: NVIDIA H200
decided_by: measurement
kernels: [few.yaml, many.yaml]
regions:
- {where: {m: [1, 64]}, kernel: few, problem: 16x256x512, us: 9.0}
- {where: {m: [65, 9999]}, kernel: many, problem: 4096x256x512, us: 20.0}
"""


def _plan(**keys: Any) -> Any:
    return build_plan(load_mapping({**SCALED, **keys}, name="scaled").config)


@pytest.mark.parametrize(
    ("keys", "scales"),
    [
        ({}, "block"),
        ({"BN": 96}, "blocks"),
        ({"BN": 192}, "blocks"),
        ({"scales": {"a": "1x128", "b": "1x128"}, "BN": 64}, "lines"),
        ({"swap_operands": True, "BM": 16}, "lines"),
        ({"scales": None}, "none"),
    ],
)
def test_the_model_knows_the_scales_of_columns(keys: dict[str, Any], scales: str) -> None:
    assert GemmTile.of(_plan(**keys)).scales == scales


def test_what_a_warpgroup_adds_takes_time() -> None:
    problem = GemmWorkload(4096, 4096, 7168, 1)
    ahead, in_turn, two_blocks = (
        GEMM.predict(_plan(**keys), problem, H200).us
        for keys in ({"BN": 128}, {"BN": 128, "multiply_ahead": False}, {"BN": 96})
    )
    assert ahead < in_turn
    assert ahead < two_blocks


@pytest.mark.parametrize("size", [(4096, 7168, 16384), (1024, 4096, 7168), (4096, 7168, 2048)])
def test_many_rows_have_128_rows_a_warpgroup(size: tuple[int, int, int]) -> None:
    """On an H200 tiles of 256 x 128 took 0.92 to 0.97 of the time of 128 x 128."""
    high, low = (
        GEMM.predict(_plan(**keys), GemmWorkload(*size), H200).us for keys in ({"BM": 256}, {})
    )
    assert high < 0.97 * low


def test_three_warpgroups_do_not_hide_two_blocks_of_columns() -> None:
    problem = GemmWorkload(4096, 24576, 1536)
    three = {"BM": 192, "num_consumer_warpgroups": 3}
    one, two = (
        GEMM.predict(_plan(**three, BN=columns), problem, H200).us / columns
        for columns in (128, 96)
    )
    assert one < two


def test_few_rows_have_weights_that_leave_first_and_a_divided_k() -> None:
    few, many = GemmWorkload(64, 4096, 7168, 1), GemmWorkload(4096, 4096, 7168, 1)
    divided = _plan(BM=64, BN=64, split_k=2, evict_first="b")
    assert GEMM.suits(divided, few)
    assert not GEMM.suits(divided, many)
    assert not GEMM.suits(_plan(swap_operands=True, BM=64), few)
    assert GEMM.suits(_plan(), many)


def test_tiles_that_are_tried_can_be_planned() -> None:
    tried = list(HOPPER_GEMM.variants(SCALED))
    assert len(tried) == len({tuple(sorted(tile.items())) for tile in tried})
    assert any(tile.get("split_k") == 2 for tile in tried)
    assert not any(tile.get("swap_operands") for tile in tried)


def test_candidates_are_timed_on_the_same_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fa4gen.runtime.gemm.GemmKernel", ScaledKernel)
    monkeypatch.setattr(ScaledKernel, "prepared", [])
    put_on_numpy(monkeypatch)
    plans = [_plan(BN=columns, name=f"wide_{columns}") for columns in (64, 128)]
    timer = GpuTimer(GEMM, "NVIDIA H200")
    rounds = timer.prepare([(plan, COMPILED) for plan in plans], GemmWorkload(64, 256, 512))
    assert (rounds.ours, rounds.left_out) == (("wide_64", "wide_128"), {})
    one, other = ScaledKernel.prepared
    for name in ("scale_a", "scale_b"):
        assert np.shares_memory(one[name], other[name])


def test_a_table_picks_by_shape_and_passes_scales(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = []

    def as_callable(plan: Any, _: bytes) -> Any:
        return lambda *arguments, **options: calls.append((plan.name, options))

    monkeypatch.setattr(kernel_set, "_compile", lambda one, **_: (one.plan, b""))
    monkeypatch.setattr(kernel_set, "as_callable", as_callable)
    for name, rows in (("few", 64), ("many", 128)):
        scaled = "scales: {a: 1x128, b: 128x128}"
        text = f"kernel: gemm\narch: sm_90a\ndtype: fp8_e4m3\n{scaled}\nBM: {rows}\nBN: 64\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    table = tmp_path / "scaled.tuning.yaml"
    table.write_text(TABLE)
    kernels = open_set(table)
    given = {"scale_a": "of a", "scale_b": "of b"}
    for rows in (16, 4096):
        kernels(np.empty((rows, 512), np.uint8), np.empty((512, 256), np.uint8), **given)
    assert calls == [("few", given), ("many", given)]


def test_a_call_with_packed_elements_is_the_problem_of_all_of_them() -> None:
    keys = {"arch": "sm_100a", "dtype": "fp4_e2m1", "scales": "nvfp4"}
    key = GEMM.call_key((np.empty((16, 256)), np.empty((256, 64))), {"scale_a": 1})
    assert GEMM.problem_of_call(_plan(**keys), key) == GemmWorkload(16, 64, 512)
    assert GEMM.problem_of_call(_plan(), key) == GemmWorkload(16, 64, 256)
