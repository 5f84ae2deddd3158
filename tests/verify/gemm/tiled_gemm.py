"""A matrix product in NumPy, tile by tile, with mutants of its rings, panels and sums.

It works on the memory that a backend is given, and shares no code with the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.rounding import from_bits, round_to, to_bits

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.memory import GemmMemory

    Place = tuple[int, slice, slice]
    """The place of a tile: batch, rows and columns."""


@dataclass
class TiledGemm:
    """A kernel for ``plan``; ``mutant`` names what it does wrong, "" for nothing.

    "fine_sum" and "coarse_sum" are not wrong everywhere: they add as tensor cores do.
    """

    plan: GemmPlan
    mutant: str = ""

    def run(self, memory: GemmMemory) -> dict[str, Any]:
        plan = self.plan
        buffers = {name: image.copy() for name, image in memory.buffers.items()}
        bits = {name: view.bits(buffers[view.buffer]) for name, view in memory.views.items()}
        a, b = (_batched(from_bits(bits[name], plan.dtype), 3) for name in ("a", "b"))
        if memory.alpha == 0:  # neither is read
            a, b = a[..., :0], b[:, :0]
        out = _batched(bits["out"], 3)
        before = self._first_tile()
        for at in self._tiles(*out.shape):
            batch, i, j = at
            product = self._sum(a[batch, i], b[batch % len(b)][:, j])
            x = self._finish(product, self._residual(bits, at, before), memory)
            written = slice(0, -1) if self.mutant == "last_column" else slice(None)
            out[batch, i, j][:, written] = self._rounded(x)[:, written]
            before = at
        return buffers

    def _first_tile(self) -> Place:
        return 0, slice(0, self.plan.cta_group * self.plan.BM), slice(0, self.plan.BN)

    def _tiles(self, batches: int, m: int, n: int) -> list[Place]:
        _, rows, columns = self._first_tile()
        tiles = [
            (batch, slice(row, row + rows.stop), slice(column, column + columns.stop))
            for batch in range(batches)
            for row in range(0, m, rows.stop)
            for column in range(0, n, columns.stop)
        ]
        return tiles[:-1] if self.mutant == "last_tile" else tiles

    def _sum(self, a: Any, b: Any) -> Any:
        """Add block by block along k, float32."""
        total = np.zeros((len(a), b.shape[1]), np.float32)
        size = self.plan.BK
        for start in range(0, a.shape[1], size):
            k = slice(start, start + size)
            if self.mutant == "stale_block" and start:  # the slot still holds the one before
                k = slice(start - size, a.shape[1] - size)
            if self.mutant in ("coarse_sum", "fine_sum"):
                total = self._add_as_tensor_cores(total, a[:, k], b[k])
            else:
                total += a[:, k] @ b[k]
        return total

    def _add_as_tensor_cores(self, total: Any, a: Any, b: Any) -> Any:
        """Add ``mma_k`` products at once, cut off at some bits below the largest of them."""
        bits = 13 if self.mutant == "coarse_sum" else 25
        for start in range(0, a.shape[1], self.plan.mma_k):
            k = slice(start, start + self.plan.mma_k)
            products = a[:, k, None].astype(np.float64) * b[None, k]
            addends = np.concatenate([products, total[:, None].astype(np.float64)], axis=1)
            largest = np.abs(addends).max(axis=1, keepdims=True)
            unit = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1))) - bits)
            total = _cut_to_float32((np.trunc(addends / unit) * unit).sum(axis=1))
        return total

    def _residual(self, bits: dict[str, Any], at: Place, before: Place) -> Any:
        plan, wrong = self.plan, self.mutant
        if not plan.c.exists:
            return None
        batch, i, j = before if wrong == "c_of_the_tile_before" else at
        c = _batched(from_bits(bits["c"], plan.out_dtype), 1 + len(plan.c.axes))
        here = plan.c.beside(c[batch % len(c)], i)[:, j if "n" in plan.c.axes else slice(None)]
        if wrong == "panels_swapped":
            return np.roll(here, plan.out_panel_columns, axis=1)
        if wrong == "c_of_the_tile_before":  # tiles at the edge are smaller
            _, i, j = at
            shape = bits["out"].shape[-2:]
            return np.resize(
                here, (len(range(*i.indices(shape[0]))), len(range(*j.indices(shape[1]))))
            )
        return here

    def _finish(self, product: Any, c: Any, memory: GemmMemory) -> Any:
        alpha, beta = np.float32(memory.alpha), np.float32(memory.beta)
        x = alpha * product
        if self.mutant == "activation_before_c":
            x = np.maximum(x, np.float32(0))
        if c is not None and memory.beta != 0:
            x = x + (alpha if self.mutant == "alpha_for_beta" else beta) * c
        if self.plan.activation is None or self.mutant == "activation_before_c":
            return x
        assert self.plan.activation == "max(x, 0)"
        return np.maximum(x, np.float32(0))

    def _rounded(self, values: Any) -> Any:
        if self.mutant == "cut_off":
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        if self.mutant == "rounded_twice":
            values = round_to(values, "bf16")
        return to_bits(values, self.plan.out_dtype)


def _batched(array: Any, axes: int) -> Any:
    return array if array.ndim == axes else array[None]


def _cut_to_float32(values: Any) -> Any:
    """Round towards zero."""
    near = values.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(values)
    return np.where(beyond, np.nextafter(near, np.float32(0)), near)


@dataclass
class TiledBackend:
    """Runs a TiledGemm whatever cubin it is given."""

    mutant: str = ""
    name = "NumPy"
    proof = "ran on NumPy"
    array_module = np
    same_bits = True
    emulates = False

    def available(self) -> bool:
        return True

    def load(self, plan: GemmPlan, compiled: Any) -> TiledGemm:
        return TiledGemm(plan, self.mutant)
