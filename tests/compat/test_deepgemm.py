"""DeepGEMM's kernels for Blackwell in the emulator, from checkouts that the user names."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from fa4gen.emulator import Report, Severity
from tests.compat import deepgemm
from tests.compat.judging import judge_runs, summary

pytestmark = [pytest.mark.compat, pytest.mark.compile]

COMMON = ("isa: early-exit", "review: tensor-memory")
PAIRS = (*COMMON, "error: early-exit", "error: race", "isa: tensor-memory")
# what an error says; all others are new
DEFECTS = (
    ("early-exit", "tcgen05.commit"),
    ("race", "read of dynamic shared"),
    ("race", "tcgen05.cp reads dynamic shared"),
)


@pytest.fixture(scope="module")
def tools() -> deepgemm.Checkouts:
    missing = deepgemm.missing()
    if missing:
        pytest.skip(f"no checkout of deepseek-ai/DeepGEMM, NVIDIA/cutlass in {', '.join(missing)}")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc is there to compile DeepGEMM")
    return deepgemm.Checkouts.named(nvcc)


def _random(rng: np.random.Generator, dtype: Any, *shape: int) -> NDArray[Any]:
    return rng.standard_normal(shape).astype(dtype)


def _judge(
    run: Callable[[str], tuple[dict[str, NDArray[Any]], Report]],
    right: Mapping[str, NDArray[np.float64]],
    bounds: Mapping[str, float],
    documented: Collection[str],
) -> None:
    """Right numbers under every schedule, and of each schedule no less than what is documented."""

    def once(schedule: str) -> tuple[dict[str, NDArray[Any]], list[Report]]:
        arrays, report = run(schedule)
        assert set(summary([report])) == set(documented), f"{schedule}: {report}"
        for one in report.findings:
            named = any(one.kind == kind and text in one.message for kind, text in DEFECTS)
            assert named or one.severity is not Severity.ERROR, str(one)
        return arrays, [report]

    kinds = {error: [one.split()[1] for one in documented if one.startswith("error") == error]
             for error in (True, False)}  # fmt: skip
    judge_runs(once, right, bounds=bounds, known=kinds[False], defects=kinds[True])


@pytest.mark.parametrize("pairs", [False, True], ids=["alone", "pairs"])
def test_bf16(tools: deepgemm.Checkouts, pairs: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = (_random(rng, ml_dtypes.bfloat16, rows, 256) for rows in (512, 384))
    product = deepgemm.Product(pairs, 128)

    def run(schedule: str) -> tuple[dict[str, NDArray[Any]], Report]:
        out = np.full((512, 384), np.nan, a.dtype)
        report = product.launch(tools, (a, b), out, schedule=schedule)
        return {"out": out}, report

    right = a.astype(np.float64) @ b.astype(np.float64).T
    _judge(run, {"out": right}, {"out": 2**-8}, PAIRS if pairs else COMMON)


def test_bf16_added_in_float32(tools: deepgemm.Checkouts) -> None:
    rng = np.random.default_rng(5)
    a, b = (_random(rng, ml_dtypes.bfloat16, 256, 512) for _ in range(2))
    before = _random(rng, np.float32, 256, 256)

    def run(schedule: str) -> tuple[dict[str, NDArray[Any]], Report]:
        out = before.copy()
        report = deepgemm.added_in_pairs(tools, a, b, out, schedule=schedule)
        return {"out": out}, report

    right = before + a.astype(np.float64) @ b.astype(np.float64).T
    _judge(run, {"out": right}, {"out": 1e-6}, (*PAIRS, "isa: missing-tcgen05-wait"))


@pytest.mark.parametrize(
    ("pairs", "groups"), [(False, (128, 128)), (True, (128, 32))], ids=["alone", "pairs"]
)
def test_fp8_with_scales(tools: deepgemm.Checkouts, pairs: bool, groups: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    a, b = (_random(rng, ml_dtypes.float8_e4m3fn, 256, 512) for _ in range(2))
    powers = [rng.integers(-3, 4, (256, 512 // group)) for group in groups]
    product = deepgemm.Product(pairs, 128, groups)

    def run(schedule: str) -> tuple[dict[str, NDArray[Any]], Report]:
        out = np.full((256, 256), np.nan, ml_dtypes.bfloat16)
        report = product.launch(tools, (a, b, *powers), out, schedule=schedule)
        return {"out": out}, report

    wide = [
        deepgemm.scaled(values, power, group)
        for values, power, group in zip((a, b), powers, groups, strict=True)
    ]
    # a second word of scales takes the columns of the first
    documented = (*PAIRS, "isa: race") if 32 in groups else COMMON
    _judge(run, {"out": wide[0] @ wide[1].T}, {"out": 2**-8}, documented)


def test_summed_over_a_batch(tools: deepgemm.Checkouts) -> None:
    rng = np.random.default_rng(3)
    a, b = (_random(rng, ml_dtypes.bfloat16, 4, 128, 256) for _ in range(2))
    before = _random(rng, np.float32, 128, 128)

    def run(schedule: str) -> tuple[dict[str, NDArray[Any]], Report]:
        out = before.copy()
        report = deepgemm.batch_summed(tools, a, b, out, split=8, schedule=schedule)
        return {"out": out}, report

    products = np.einsum("smk,snk->mn", a.astype(np.float64), b.astype(np.float64))
    _judge(run, {"out": before + products}, {"out": 1e-6}, COMMON)


def test_before_a_normalisation(tools: deepgemm.Checkouts) -> None:
    rng = np.random.default_rng(4)
    a = _random(rng, ml_dtypes.bfloat16, 128, 1024)
    b = _random(rng, np.float32, 32, 1024)

    def run(schedule: str) -> tuple[dict[str, NDArray[Any]], Report]:
        out = np.full((2, 128, 32), np.nan, np.float32)
        squares = np.full((2, 128), np.nan, np.float32)
        report = deepgemm.before_normalisation(tools, a, b, out, squares, schedule=schedule)
        return {"out": out.sum(0), "squares": squares.sum(0)}, report

    wide = a.astype(np.float64)
    _judge(
        run,
        {"out": wide @ b.astype(np.float64).T, "squares": (wide**2).sum(1)},
        {"out": 2**-11, "squares": 1e-6},
        (*COMMON, "review: missing-tcgen05-fence", "review: uninitialised"),
    )
