"""Elementary functions against NumPy's, and that the emulator uses no other ones."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fa4gen.emulator
from fa4gen.emulator.instructions.scalar.rows import elementary

RNG = np.random.default_rng(3)
# NumPy functions that are the host's C library or vector unit: their last bits, or what they make
# of NaNs and zeros, differ from host to host
_OF_THE_HOST = {
    "arccos", "arcsin", "arctan", "arctan2", "cbrt", "cos", "cosh", "deg2rad", "exp", "exp2",
    "expm1", "float_power", "fmax", "fmin", "hypot", "log", "log10", "log1p", "log2", "logaddexp",
    "logaddexp2", "longdouble", "nanmax", "nanmin", "power", "sin", "sinh", "tan", "tanh",
}  # fmt: skip


def angles(size: float) -> np.ndarray:
    return RNG.uniform(-size, size, 3000).astype(np.float32).astype(np.float64)


CASES: list[tuple[str, np.ndarray]] = [
    ("exp2", RNG.uniform(-200, 200, 3000)),
    ("exp2", RNG.uniform(-1e-4, 1e-4, 3000)),
    ("log2", np.ldexp(RNG.uniform(0.5, 1, 3000), RNG.integers(-148, 129, 3000))),
    ("log2", 1 + 2.0**-23 * RNG.integers(1, 5000, 3000)),
    *((name, angles(size)) for name in ("sin", "cos") for size in (1e-30, 1, 10, 1e4, 1e6, 1e38)),
    *(("tanh", angles(size)) for size in (1e-30, 0.1, 0.3, 3, 40)),
]


@pytest.mark.parametrize(("name", "x"), CASES)
def test_accuracy(name: str, x: np.ndarray) -> None:
    function: Callable[[np.ndarray], np.ndarray] = getattr(elementary, name)
    wanted = getattr(np, name)(x)
    np.testing.assert_array_less(np.abs(function(x) - wanted), np.abs(wanted) * 2.0**-42 + 1e-300)


@pytest.mark.parametrize("name", ["exp2", "log2", "sin", "cos", "tanh"])
def test_corners(name: str) -> None:
    """Infinities, NaNs, zeros and their signs; shape kept."""
    x = np.array([[-math.inf, math.inf, math.nan], [0.0, -0.0, 1.0]])
    with np.errstate(all="ignore"):
        found, wanted = getattr(elementary, name)(x), getattr(np, name)(x)
        # float64 goes further than any type that this is rounded to
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


def test_exp2_of_float32() -> None:
    """Rounded to float32 nearly always as the exact value, subnormals and overflow too."""
    x = RNG.uniform(-152, 130, 100_000).astype(np.float32)
    with np.errstate(all="ignore"):
        found = elementary.exp2_f32(x).astype(np.float32)
        wanted = np.exp2(x.astype(np.float64)).astype(np.float32)
        exact = found == wanted
    assert np.mean(exact) > 0.99
    close = np.nextafter(found, np.float32(np.inf)), np.nextafter(found, np.float32(-np.inf))
    assert (exact | (close[0] == wanted) | (close[1] == wanted)).all()


# sums in an order that the host's library chooses, and where they are dealt with
_SUMS = {"dot", "einsum", "inner", "linalg", "matmul", "tensordot", "vecdot", "vdot"}
_SUMMING = "mma/products.py"


def test_nothing_of_the_host() -> None:
    """The emulator calls no such function."""
    found = []
    folder = Path(fa4gen.emulator.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            used = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            name = node.attr if used and node.value.id == "np" else ""
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
                name = "matmul"
            if name in _OF_THE_HOST or (
                name in _SUMS and path.relative_to(folder / "instructions").as_posix() != _SUMMING
            ):
                found.append(f"{path.name}:{node.lineno}: {name}")
    assert found == []
