"""The products of wgmma: fragments in the registers of a warpgroup, and sums of products.

Products of one group that add to the same accumulators run as one, over their joined depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.emit import Emitter
from fa4gen.emulator.gang import GANG_LANES, Gang
from fa4gen.emulator.ptx.syntax import Operand, Register, Vector

ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """What the opcode says: types, n and k of the product."""

    n: int
    k: int
    a: str
    b: str
    d: str
    saturate: bool

    @property
    def integer(self) -> bool:
        return self.d == "s32"


@lru_cache(maxsize=64)
def _accumulator_map(n: int) -> NDArray[np.int64]:
    """Flat index into (register, lane) for every element of D: shape (64, n), 32-bit elements."""
    lane = np.arange(GANG_LANES)
    at = np.zeros((ROWS, n), np.int64)
    for register in range(n // 2):
        row = lane // 32 * 16 + lane % 32 // 4 + 8 * (register >> 1 & 1)
        column = 8 * (register >> 2) + 2 * (lane % 4) + (register & 1)
        at[row, column] = register * GANG_LANES + lane
    return at


class Accumulators:
    """The registers of D in a gang's register file, as a (64, n) matrix."""

    def __init__(self, operand: Operand, shape: Shape, e: Emitter) -> None:
        count = shape.n // (4 if shape.d == "f16" else 2)
        items = operand.items if isinstance(operand, Vector) else ()
        if len(items) != count:
            raise e.refuse(f"D takes {count} registers")
        indices = []
        for item in items:
            if not isinstance(item, Register) or item.cls != "r":
                raise e.refuse("D is not made of 32-bit registers")
            indices.append(item.index)
        self.key = tuple(indices)
        self._indices = np.array(indices)
        self._consecutive = bool((np.diff(self._indices) == 1).all())
        self._shape = shape
        self._inverse = np.argsort(_accumulator_map(shape.n), axis=None)

    def read(self, gang: Gang) -> NDArray[Any]:
        """D as float32, or int32."""
        rows = self._rows(gang)
        flat = _accumulator_map(self._shape.n)
        if self._shape.d == "f16":
            halves = rows.view(np.float16).reshape(len(self._indices), GANG_LANES, 2)
            spread = halves.transpose(0, 2, 1).reshape(-1)
            return np.asarray(spread[flat].astype(np.float32))
        kind = np.int32 if self._shape.integer else np.float32
        return np.asarray(rows.view(kind).reshape(-1)[flat])

    def write(self, gang: Gang, values: NDArray[Any]) -> None:
        """Replace D."""
        n = self._shape.n
        if self._shape.d == "f16":
            with np.errstate(over="ignore"):
                flat = values.astype(np.float16).reshape(-1)[self._inverse]
            pairs = flat.reshape(n // 4, 2, GANG_LANES).transpose(0, 2, 1)
            raw = np.ascontiguousarray(pairs).view(np.uint32).reshape(n // 4, GANG_LANES)
        else:
            raw = values.reshape(-1)[self._inverse].view(np.uint32).reshape(n // 2, GANG_LANES)
        block = gang.block("r")
        if self._consecutive:
            block[self._indices[0] : self._indices[-1] + 1] = raw
        else:
            block[self._indices] = raw

    def _rows(self, gang: Gang) -> NDArray[np.uint32]:
        block = gang.block("r")
        if self._consecutive:
            return np.asarray(block[self._indices[0] : self._indices[-1] + 1])
        return np.asarray(block[self._indices])


@dataclass(slots=True)
class Product:
    """One product: ``left`` and ``right`` read A (64, k) and B (n, k) when it runs."""

    shape: Shape
    accumulators: Accumulators
    left: Callable[[], NDArray[Any]]
    right: Callable[[], NDArray[Any]]
    adds: bool
    sign: int
    done: bool = False

    def joins(self, other: Product) -> bool:
        """Whether this product may run together with the one before it."""
        return (
            self.adds
            and self.accumulators.key == other.accumulators.key
            and self.shape == other.shape
            and self.sign == other.sign
            and not self.shape.integer
        )


def run_chain(gang: Gang, chain: list[Product], position: int) -> None:
    """Run a product and those behind it in its chain, if they have not run yet."""
    parts = [part for part in chain[position:] if not part.done]
    if not parts or chain[position].done:
        return
    for part in parts:
        part.done = True
    first = parts[0]
    left, right = first.left(), first.right()
    if len(parts) > 1:
        left = np.concatenate([left, *(part.left() for part in parts[1:])], axis=1)
        right = np.concatenate([right, *(part.right() for part in parts[1:])], axis=1)
    result = left @ right.T
    if first.shape.integer:
        total = result.astype(np.int64)
        if first.adds:
            total += first.accumulators.read(gang)
        if first.shape.saturate:
            total = np.clip(total, -(2**31), 2**31 - 1)
        first.accumulators.write(gang, total.astype(np.int32))
        return
    if first.sign < 0:
        result = -result
    if first.adds:
        result += first.accumulators.read(gang)
    first.accumulators.write(gang, result)
