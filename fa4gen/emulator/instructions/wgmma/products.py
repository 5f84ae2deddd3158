"""The products of wgmma: fragments in the registers of a warpgroup, and sums of products.

Products of one group that add to the same accumulators run as one, over their joined depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.mma.cut_sums import SMALLEST_EXPONENTS, add_products
from fa4gen.emulator.instructions.mma.descriptors import Descriptor
from fa4gen.emulator.instructions.mma.operand_tiles import ELEMENT_BYTES, read_tiles
from fa4gen.emulator.instructions.mma.products import (
    added,
    significant_bits,
    sums_of_products,
    whole_sums,
)
from fa4gen.emulator.instructions.mma.sparsity import expanded
from fa4gen.emulator.ptx.syntax import Operand, Register, Vector
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.memory import SharedMemory
from fa4gen.emulator.state.registers import WARPGROUP_LANES
from fa4gen.emulator.translate.emit import Emitter

ROWS: Final = 64
# Sums of this many products of eight-bit integers of 32 steps each are exact in float32.
_EXACT_INTEGERS: Final = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape in the opcode: types, n and k of the product.

    ``threads`` of each four lanes have metadata of a sparse A; 0 for a dense one.
    """

    n: int
    k: int
    a: str
    b: str
    d: str
    saturate: bool
    threads: int = 0

    @property
    def a_stored(self) -> tuple[str, int]:
        """The type and number of elements along K that A has in memory."""
        return ("u8", self.k // 8) if self.a == "b1" else (self.a, self.k // (1 + self.sparse))

    @property
    def b_stored(self) -> tuple[str, int]:
        """The type and number of elements along K that B has in memory."""
        return ("u8", self.k // 8) if self.b == "b1" else (self.b, self.k)

    @property
    def b_bytes(self) -> int:
        """Bytes of K from each row of B."""
        return ELEMENT_BYTES[self.b_stored[0]] * self.b_stored[1]

    @property
    def sparse(self) -> bool:
        return self.threads > 0

    @property
    def integer(self) -> bool:
        return self.d == "s32"


@lru_cache(maxsize=64)
def _accumulator_map(n: int) -> NDArray[np.int64]:
    """Flat index into (register, lane) for every element of D: shape (64, n), 32-bit elements."""
    lane = np.arange(WARPGROUP_LANES)
    at = np.zeros((ROWS, n), np.int64)
    for register in range(n // 2):
        row = lane // 32 * 16 + lane % 32 // 4 + 8 * (register >> 1 & 1)
        column = 8 * (register >> 2) + 2 * (lane % 4) + (register & 1)
        at[row, column] = register * WARPGROUP_LANES + lane
    return at


class Accumulators:
    """The registers of D in a warpgroup's register file, as a (64, n) matrix."""

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

    def read(self, wg: Warpgroup) -> NDArray[Any]:
        """D as float32, or int32."""
        rows = self._rows(wg)
        flat = _accumulator_map(self._shape.n)
        if self._shape.d == "f16":
            halves = rows.view(np.float16).reshape(len(self._indices), WARPGROUP_LANES, 2)
            spread = halves.transpose(0, 2, 1).reshape(-1)
            return np.asarray(spread.take(flat).astype(np.float32))
        kind = np.int32 if self._shape.integer else np.float32
        return np.asarray(rows.view(kind).reshape(-1).take(flat))

    def write(self, wg: Warpgroup, values: NDArray[Any]) -> None:
        """Replace D."""
        n = self._shape.n
        if self._shape.d == "f16":
            with np.errstate(over="ignore"):
                flat = values.astype(np.float16).reshape(-1).take(self._inverse)
            pairs = flat.reshape(n // 4, 2, WARPGROUP_LANES).transpose(0, 2, 1)
            raw = np.ascontiguousarray(pairs).view(np.uint32).reshape(n // 4, WARPGROUP_LANES)
        else:
            flat = values.reshape(-1).take(self._inverse)
            raw = flat.view(np.uint32).reshape(n // 2, WARPGROUP_LANES)
        block = wg.block("r")
        if self._consecutive:
            block[self._indices[0] : self._indices[-1] + 1] = raw
        else:
            block[self._indices] = raw

    def _rows(self, wg: Warpgroup) -> NDArray[np.uint32]:
        block = wg.block("r")
        if self._consecutive:
            return np.asarray(block[self._indices[0] : self._indices[-1] + 1])
        return np.asarray(block[self._indices])


@dataclass(frozen=True, slots=True)
class Tile:
    """An operand in shared memory."""

    descriptor: Descriptor
    k_major: bool


@dataclass(slots=True)
class Product:
    """One product: A (64, k) in shared memory or already read from registers, B (n, k).

    ``codes`` are the metadata of a sparse A.
    """

    shape: Shape
    accumulators: Accumulators
    a: Tile | NDArray[Any]
    b: Tile
    adds: bool
    sign: int
    codes: NDArray[np.uint8] | None = None
    done: bool = False

    def joins(self, chain: list[Product]) -> bool:
        """Whether this product may run together with those before it."""
        other = chain[-1]
        if self.shape.d == "f16":
            # every product rounds its sum
            return False
        if self.shape.integer and (self.shape.saturate or len(chain) >= _EXACT_INTEGERS):
            return False
        return (
            self.adds
            and self.accumulators.key == other.accumulators.key
            and self.shape == other.shape
            and self.sign == other.sign
            and self.b.k_major == other.b.k_major
            and _side(self.a) == _side(other.a)
        )


def _side(a: Tile | NDArray[Any]) -> bool | None:
    """Whether A is K-major in shared memory; None in registers."""
    return a.k_major if isinstance(a, Tile) else None


def _left(shared: SharedMemory, parts: list[Product], shape: Shape) -> NDArray[Any]:
    """A of products side by side, with its zeros."""
    first = parts[0].a
    if isinstance(first, Tile):
        tiles = [part.a.descriptor for part in parts if isinstance(part.a, Tile)]
        kind, k = shape.a_stored
        left = _numbers(read_tiles(shared, tiles, first.k_major, ROWS, k, kind), shape.a)
    else:
        left = np.concatenate([part.a for part in parts if not isinstance(part.a, Tile)], axis=1)
    if not shape.sparse:
        return left
    codes = np.concatenate([part.codes for part in parts if part.codes is not None], axis=1)
    return expanded(left, codes, shape.a != "tf32")


def _numbers(tile: NDArray[Any], kind: str) -> NDArray[Any]:
    """A tile's numbers; single bits are taken out of their bytes."""
    if kind != "b1":
        return tile
    return np.unpackbits(tile.astype(np.uint8), axis=1, bitorder="little")


def run_chain(wg: Warpgroup, chain: list[Product], position: int) -> None:
    """Run a product and those after it in its chain, if they have not run yet."""
    if chain[position].done:
        return
    parts = [part for part in chain[position:] if not part.done]
    for part in parts:
        part.done = True
    first = parts[0]
    shape, shared = first.shape, wg.cta.shared
    left = _left(shared, parts, shape)
    tiles = [part.b.descriptor for part in parts]
    kind, k = shape.b_stored
    right = _numbers(read_tiles(shared, tiles, first.b.k_major, shape.n, k, kind), shape.b)
    if shape.integer:
        total = whole_sums(left, right)
        if first.adds:
            total += first.accumulators.read(wg)
        if shape.saturate:
            total = np.clip(total, -(2**31), 2**31 - 1)
        first.accumulators.write(wg, total.astype(np.int32))
        return
    before = first.accumulators.read(wg) if first.adds else None
    # infinities and NaNs are values like others
    with np.errstate(all="ignore"):
        result = _whole(left, right, before, first)
        if shape.a in SMALLEST_EXPONENTS:
            finite = np.isfinite(result)
            np.copyto(result, _cut(left, right, before, first), where=finite)
    first.accumulators.write(wg, result)


def _whole(
    left: NDArray[Any], right: NDArray[Any], before: NDArray[Any] | None, product: Product
) -> NDArray[np.float32]:
    """Accumulators plus products, the exact sum rounded."""
    shape = product.shape
    result = sums_of_products(left, right, significant_bits(shape.a, shape.b))
    if product.sign < 0:
        np.negative(result, out=result)
    return result if before is None else added(before, result)


def _cut(
    left: NDArray[Any], right: NDArray[Any], before: NDArray[Any] | None, product: Product
) -> NDArray[np.float32]:
    """Accumulators plus products of 8-bit floats, as each instruction cuts them.

    Infinities and NaNs count as zeros.
    """
    shape = product.shape
    smallest = SMALLEST_EXPONENTS[shape.a], SMALLEST_EXPONENTS[shape.b]
    sign = np.float32(product.sign)
    a, b = (np.where(np.isfinite(x), x, np.float32(0)) for x in (left, right))
    total = np.zeros((ROWS, shape.n))
    if before is not None:
        np.copyto(total, before, where=np.isfinite(before))
    for start in range(0, a.shape[1], shape.k):
        step = slice(start, start + shape.k)
        total = add_products(
            total, sign * a[:, step], b[:, step], np, smallest, cuts_sum=shape.d == "f32"
        )
    result: NDArray[np.float32] = total.astype(np.float32)
    result += np.float32(0)
    return result
