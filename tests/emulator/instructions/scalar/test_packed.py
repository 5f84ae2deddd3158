"""Packed instructions: both halves are what the single instruction, which is tested, gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.instructions.scalar.test_floating_point import samples
from tests.emulator.lanes import execute, refused

HALVES = {"f16": ("h", "r", np.uint16), "bf16": ("h", "r", np.uint16), "f32": ("r", "d", np.uint32)}


def check(name, kind, count, single=None):
    """``name`` has a place for the type: ``fma.rn.{}``."""
    cls, wide, dtype = HALVES[kind]
    columns = [np.array(samples(kind, 70 + n), dtype) for n in range(count)]
    operands = ", ".join(f"%{{0}}{n}" for n in range(1, count + 1))
    text = f"{{1}} %{{0}}9, {operands};"
    rows = {f"{cls}{n}": column for n, column in enumerate(columns, 1)}
    one = execute(text.format(cls, (single or name).format(kind)), f"{cls}9", **rows)
    word = np.uint64 if kind == "f32" else np.uint32
    rows = {f"{wide}{n}": column.view(word) for n, column in enumerate(columns, 1)}
    two = execute(text.format(wide, name.format(kind + "x2")), f"{wide}9", **rows)
    np.testing.assert_array_equal(two.view(dtype), one)


FORMS = [
    *(("f32", f"{op}.{mode}{ftz}.{{}}", 3 if op == "fma" else 2)
      for op in ("add", "sub", "mul", "fma") for mode in ("rn", "rz", "rm", "rp")
      for ftz in ("", ".ftz")),
    *((kind, f"{op}.rn.{{}}", 3 if op == "fma" else 2)
      for kind in ("f16", "bf16") for op in ("add", "sub", "mul", "fma")),
    ("f16", "add.ftz.sat.{}", 2),
    ("f16", "fma.rn.ftz.{}", 3),
    ("f16", "fma.rn.sat.{}", 3),
    ("f16", "fma.rn.ftz.relu.{}", 3),
    ("bf16", "fma.rn.relu.{}", 3),
    *((kind, f"{op}{form}.{{}}", 2)
      for kind in ("f16", "bf16") for op in ("min", "max")
      for form in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs")),
    ("f16", "max.ftz.NaN.{}", 2),
    *((kind, f"{op}.{{}}", 1) for kind in ("f16", "bf16") for op in ("abs", "neg")),
    ("f16", "neg.ftz.{}", 1),
    ("f16", "ex2.approx.{}", 1),
    ("bf16", "ex2.approx.ftz.{}", 1),
    ("f16", "tanh.approx.{}", 1),
    ("bf16", "tanh.approx.{}", 1),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "count"), FORMS)
def test_both_halves(kind, name, count):
    check(name, kind, count)


def test_known_pairs():
    one_two, three_four = 0x40003C00, 0x44004200  # f16: low 1, high 2; low 3, high 4
    rows = {"r1": np.uint32(one_two), "r2": np.uint32(three_four)}
    assert execute("add.f16x2 %r3, %r1, %r2;", "r3", **rows)[0] == 0x46004400  # 4 and 6
    assert execute("sub.f16x2 %r3, %r1, 0x3C003C00;", "r3", **rows)[0] == 0x3C000000
    pair = np.float32([1.5, -2.0]).view(np.uint64)
    found = execute("fma.rn.f32x2 %d2, %d1, %d1, %d1;", "d2", d1=pair).view(np.float32)
    assert found.tolist() == [3.75, 2.0]


def test_destination_may_be_a_source():
    pair = np.float32([1.5, -2.0]).view(np.uint64)
    other = np.float32([0.25, 8.0]).view(np.uint64)
    found = execute("fma.rn.f32x2 %d1, %d1, %d2, %d1;", "d1", d1=pair, d2=other)
    assert found.view(np.float32).tolist() == [1.875, -18.0]


def test_what_does_not_exist():
    for text in (
        "add.sat.bf16x2 %r1, %r2, %r3;",
        "add.rz.f16x2 %r1, %r2, %r3;",
        "mul.sat.f32x2 %d1, %d2, %d3;",
        "min.f32x2 %d1, %d2, %d3;",
        "fma.f32x2 %d1, %d2, %d3, %d4;",
        "max.ftz.bf16x2 %r1, %r2, %r3;",
        "ex2.approx.ftz.f16x2 %r1, %r2;",
        "fma.rn.oob.relu.bf16x2 %r1, %r2, %r3, %r4;",
        "div.rn.f16x2 %r1, %r2, %r3;",
    ):
        assert refused(text), text
