"""Instructions over rows of bits that are hard for floats and for integers of every width."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fa4gen.emulator.ptx.syntax import RegisterClass
from tests.emulator.instructions.forms import Form
from tests.emulator.lanes import translated, warpgroup_of

LANES = 1000
_WIDTH = {"h": 16, "r": 32, "d": 64}
# sign, exponent and fraction bits
_FLOATS = ((16, 5), (16, 8), (32, 8), (64, 11))
_REGISTERS: dict[RegisterClass, int] = {"p": 8, "h": 8, "r": 8, "d": 8, "q": 0}


def _hard_floats(bits: int, exponent: int) -> list[int]:
    """Zero, subnormals, extremes, infinity, NaNs, and numbers about which rounding is decided."""
    fraction = bits - 1 - exponent
    one = ((1 << (exponent - 1)) - 1) << fraction
    infinity = ((1 << exponent) - 1) << fraction
    quiet = infinity | 1 << (fraction - 1)
    sizes = [
        0, 1, (1 << fraction) - 1, 1 << fraction, one, one + 1, one - 1,
        one | 1 << (fraction - 1), one + (1 << fraction) | 1 << (fraction - 2),
        one - (fraction + 1 << fraction), infinity - 1, infinity, infinity + 1,
        infinity | 0x2A << max(0, fraction - 8), quiet, quiet | 5, quiet | quiet - infinity - 1,
    ]  # fmt: skip
    return [size | sign << (bits - 1) for size in sizes for sign in (0, 1)]


@cache
def _values(cls: str) -> np.ndarray:
    """Hard values of a register class, and numbers with any bits; the same on every host."""
    width = _WIDTH[cls]
    hard = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256}
    hard |= {(1 << width) - 1, (1 << width - 1) - 1, 1 << width - 1, (1 << width - 1) + 1}
    for bits, exponent in _FLOATS:
        floats = _hard_floats(bits, exponent)
        if bits == width:
            hard |= set(floats)
        elif bits < width:  # pairs
            turned = floats[7:] + floats[:7]
            hard |= {a << width - bits | b for a, b in zip(floats, turned, strict=True)}
    return np.array(sorted(hard), f"u{width // 8}")


def _row(cls: str, place: int) -> np.ndarray:
    """Bits of the ``place``-th operand: every two hard values meet, then anything."""
    rng = np.random.default_rng(1000 * place + ord(cls))
    if cls == "p":
        return rng.integers(0, 2, LANES).astype(np.bool_)
    values = _values(cls)
    if place == 1:
        row = np.repeat(values, -(-LANES // len(values)))[:LANES]
    else:
        row = rng.choice(values, LANES)
    anything = rng.integers(0, 1 << 63, LANES, dtype=np.uint64)
    anything = (anything << np.uint64(1) | anything >> np.uint64(40)).astype(row.dtype)
    # of the usual size, so that sums cancel and functions have something to do
    if cls != "h":
        usual = rng.normal(0, 4, LANES) * 2.0 ** rng.integers(-12, 12, LANES)
        usual = usual.astype(f"f{row.dtype.itemsize}").view(row.dtype)
    else:
        usual = rng.integers(0x3800, 0x4400, LANES).astype(row.dtype)
    kind = rng.integers(0, 6, LANES)
    return np.where(kind == 0, anything, np.where(kind == 1, usual, row))


@cache
def operands(classes: str) -> tuple[np.ndarray, ...]:
    """The rows that the operands of a form read."""
    return tuple(_row(cls, place) for place, cls in enumerate(classes) if place)


class Runner:
    """One instruction, ready to run over any part of its rows."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.rows = dict(zip(form.sources, operands(form.classes), strict=True))
        self._run: dict[bool, Callable[..., None]] = {}

    def over(self, where: Any, mask: np.ndarray | None = None, stride: int = 1) -> np.ndarray:
        """The result's bits for ``where`` of the lanes; with a mask only those of its lanes.

        With a stride the lanes of a register are that far apart in memory.
        """
        masked = mask is not None
        if masked not in self._run:
            self._run[masked] = translated(self.form.line, masked)[0]
        count = len(np.arange(LANES)[where])
        wg = warpgroup_of(count, _REGISTERS)
        if stride != 1:
            for name in ("_p", "_h", "_r", "_d"):
                block = getattr(wg, name)
                wide = np.zeros((len(block), count * stride), block.dtype)
                setattr(wg, name, wide[:, ::stride])
            wg.P = list(wg._p)
        for name, row in self.rows.items():
            target = wg.P[int(name[1:])] if name[0] == "p" else wg.block(name[0])[int(name[1:])]
            target[...] = row[where]
        with np.errstate(all="ignore"):
            self._run[masked](wg, mask)
        cls = self.form.classes[0]
        result = wg.P[0] if cls == "p" else wg.block(cls)[0]
        return result.copy() if mask is None else result[mask]
