"""multimem on one device: an address stands for one place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.emulator.kernel import clean, launch

PLACE = (
    "mov.u32 %r0, %tid.x; mul.wide.u32 %d4, %r0, 16; add.u64 %d5, %d0, %d4; add.u64 %d6, %d1, %d4;"
)


def launched(text: str, source: np.ndarray, target: np.ndarray, **options: Any):
    return launch(PLACE + text, source, target, **options)


@pytest.mark.parametrize(
    ("form", "registers"),
    [
        ("global.add.v4.f32", "{%r1, %r2, %r3, %r4}"),
        ("relaxed.sys.global.add.v4.bf16x2", "{%r1, %r2, %r3, %r4}"),
        ("weak.global.max.acc::f32.v4.f16x2", "{%r1, %r2, %r3, %r4}"),
        ("acquire.gpu.min.v4.e4m3x4", "{%r1, %r2, %r3, %r4}"),
    ],
)
def test_the_reduction_of_one_value_is_the_value(form: str, registers: str) -> None:
    source = np.random.default_rng(1).integers(0, 1 << 32, (32, 4), np.uint32)
    target = np.zeros_like(source)
    text = f"multimem.ld_reduce.{form} {registers}, [%d5]; st.global.v4.b32 [%d6], {registers};"
    report = launched(text, source, target)
    assert report.verdict is Verdict.CLEAN, str(report)
    np.testing.assert_array_equal(target, source)


@pytest.mark.parametrize(
    ("form", "operand", "words"),
    [
        ("weak.global.v4.f32", "{%r1, %r2, %r3, %r4}", 4),
        ("release.sys.global.u32", "%r1", 1),
        ("v2.bf16x2", "{%r1, %r2}", 2),
    ],
)
def test_stores(form: str, operand: str, words: int) -> None:
    source = np.random.default_rng(2).integers(0, 1 << 32, (32, 4), np.uint32)
    target = np.zeros_like(source)
    text = f"ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%d5]; multimem.st.{form} [%d6], {operand};"
    report = launched(text, source, target)
    assert report.verdict is Verdict.CLEAN, str(report)
    np.testing.assert_array_equal(target[:, :words], source[:, :words])
    assert not target[:, words:].any()


def test_reductions_by_all_threads_in_one_place() -> None:
    counts, sums = np.zeros(4, np.uint32), np.zeros(2, np.float32)
    text = """
    add.u32 %r1, %r0, 1; cvt.rn.f32.u32 %r2, %r0;
    multimem.red.release.sys.global.add.u32 [%d0], %r1;
    multimem.red.relaxed.gpu.max.u32 [%d0+4], %r0;
    multimem.red.global.or.b32 [%d0+8], %r1;
    multimem.red.global.add.v2.f32 [%d1], {%r2, %r2};
    """
    clean("mov.u32 %r0, %tid.x;" + text, counts, sums)
    assert counts.tolist() == [528, 31, 63, 0]
    assert sums.tolist() == [496, 496]


def test_sums_of_pairs() -> None:
    total = np.zeros(2, ml_dtypes.bfloat16)
    text = "mov.b32 %r1, 0x40003f80; multimem.red.add.bf16x2 [%d0], %r1;"
    clean(text, total)
    assert total.astype(float).tolist() == [32, 64]


def test_weak_accesses_race() -> None:
    text = "multimem.st.global.u32 [%d0], %r0; multimem.ld_reduce.global.add.u32 %r1, [%d0];"
    report = launched(text, np.zeros(4, np.uint32), np.zeros(4, np.uint32))
    assert "race" in [finding.kind for finding in report.findings]
