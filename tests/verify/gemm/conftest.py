"""A stand-in for a matrix product's kernel: tiles in NumPy, with selectable mutants.

It works on the memory that a backend is given and shares no code with the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.verify.rounding import from_bits, round_to, to_bits
from tests.verify.conftest import NumpyBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.memory import GemmMemory

    Place = tuple[int, slice, slice]
    """The place of a tile: batch, rows and columns."""

ACTIVATIONS = {
    "relu(x)": lambda x: np.maximum(x, np.float32(0)),
    "max(x, 0)": lambda x: np.maximum(x, np.float32(0)),
    "silu(x)": lambda x: x / (1 + np.exp(-x)),
    "exp(x)": np.exp,
}
GATED = {
    "silu(gate) * up": lambda gate, up: gate / (1 + np.exp(-gate)) * up,
    "max(gate, 0) * up": lambda gate, up: np.maximum(gate, np.float32(0)) * up,
}
SUM_BITS = {"coarse_sum": 13, "fine_sum": 25}


def tensor_core_sum(products_per_step: int, alignment_bits: int, a: Any, b: Any) -> Any:
    """Add as an H200 was seen to: align to the largest addend, cut, cut the sum to float32."""
    total = np.zeros((len(a), b.shape[1]))
    for start in range(0, a.shape[1], products_per_step):
        step = slice(start, start + products_per_step)
        addends = a[:, step].astype(np.float64)[:, :, None] * b[step][None]
        addends = np.concatenate([addends, total[:, None]], axis=1)
        _, exponents = np.frexp(np.abs(addends).max(axis=1, keepdims=True))
        unit = np.exp2(exponents - 1.0 - alignment_bits)
        exact = (np.trunc(addends / unit) * unit).sum(axis=1)
        unit = np.exp2(np.frexp(exact)[1] - 24.0)
        total = np.trunc(exact / unit) * unit
    return total


@dataclass
class NumpyGemm:
    """A kernel for ``plan``; ``mutant`` names what it does wrong, "" for nothing.

    "fine_sum" and "coarse_sum" are not wrong everywhere: they add as tensor cores do.
    """

    plan: GemmPlan
    mutant: str = ""
    runs: int = 0

    def run(self, memory: GemmMemory) -> dict[str, Any]:
        self.runs += 1
        buffers = {name: image.copy() for name, image in memory.buffers.items()}
        bits = {name: view.bits(buffers[view.buffer]) for name, view in memory.views.items()}
        out = _batched(bits["out"], 3)
        before = self._tiles(*out.shape)[:1]
        with np.errstate(over="ignore"):
            for batch in range(len(out)):
                before = self._product(memory, bits, batch, before)
        self._stray_writes(memory, buffers, bits)
        return buffers

    def _tiles(self, batches: int, m: int, n: int) -> list[Place]:
        rows, columns = self.plan.cta_group * self.plan.BM, self.plan.out_columns
        return [
            (batch, slice(row, min(row + rows, m)), slice(column, min(column + columns, n)))
            for batch in range(batches)
            for row in range(0, m, rows)
            for column in range(0, n, columns)
        ]

    def _product(
        self, memory: GemmMemory, bits: dict[str, Any], batch: int, before: list[Place]
    ) -> list[Place]:
        """Compute the matrix of one batch; ``before`` and the result have the tile before."""
        wrong = self.mutant
        out = _batched(bits["out"], 3)
        a, b = self._factors(memory, bits, batch)
        x, written = np.zeros(out.shape[1:], np.float32), np.ones(out.shape[1:], bool)
        tiles = [tile for tile in self._tiles(*out.shape) if tile[0] == batch]
        for tile in tiles:
            _, i, j = tile
            c = self._residual(bits, tile, *before)
            if self.plan.gated:
                x[i, j] = self._gated(a[i], b, j, c, memory)
            else:
                x[i, j] = self._finish(self._sum(a[i], b[:, j]), c, memory)
            written[i, j.stop - 1] = wrong != "last_column"
            before = [tile]
        if wrong == "last_tile" and batch == len(out) - 1:
            written[tiles[-1][1:]] = False
        if wrong == "unwritten":
            written[-1:] = False
        if wrong == "one_element" and x.size > 20:
            x.flat[x.size // 2] *= np.float32(1.02)
        out[batch][written] = self._rounded(x)[written]
        return before

    def _factors(self, memory: GemmMemory, bits: dict[str, Any], batch: int) -> tuple[Any, Any]:
        wrong = self.mutant
        a, b = (_batched(from_bits(bits[name], self.plan.dtype), 3) for name in ("a", "b"))
        a, b = a[batch], b[0 if wrong == "first_b" else batch % len(b)]
        if memory.alpha == 0 and wrong != "reads_a_and_b":
            return a[:, :0], b[:0]
        a = a.copy()
        if wrong == "next_row" and len(a) > 1:
            a[-1] = a[-2]
        if wrong == "lost_product" and a.size:
            a[-1, np.flatnonzero(a[-1])[-1:]] = 0  # the last that is not zero
        return a, b

    def _sum(self, a: Any, b: Any) -> Any:
        """Add block by block along k, float32."""
        size, wrong = self.plan.BK, self.mutant
        if wrong in SUM_BITS:
            return tensor_core_sum(self.plan.mma_k, SUM_BITS[wrong], a, b).astype(np.float32)
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for start in range(0, a.shape[1], size):
            k = slice(start, start + size)
            if wrong == "lost_block" and start == size:
                continue
            if wrong == "stale_block" and start:  # the slot still holds the one before
                k = slice(start - size, a.shape[1] - size)
            partial = a[:, k] @ b[k]
            total += round_to(partial, "bf16") if wrong == "narrow_partials" else partial
        return round_to(total, "bf16") if wrong == "narrow_sum" else total

    def _gated(self, a: Any, b: Any, columns: slice, c: Any, memory: GemmMemory) -> Any:
        """Return the output in some columns, of products of gate's columns of B and of up's.

        ``c`` is a matrix's part, or the columns of a row for gate and for up.
        """
        wrong, plan = self.mutant, self.plan
        alpha, beta = np.float32(memory.alpha), np.float32(memory.beta)
        n = b.shape[1] // 2
        of_gate = np.arange(columns.start, columns.stop)
        first = {"up_of_the_next": of_gate + 1, "up_from_the_first": of_gate - columns.start}
        of_up = first.get(wrong, of_gate) % n
        if plan.gate_layout == "interleaved" and wrong != "halves_for_interleaved":
            at = 2 * of_gate, 2 * of_up + 1
        else:
            at = of_gate, of_up + n
        gate, up = (alpha * self._sum(a, b[:, one]) for one in at)
        if wrong == "tail_without_up" and columns.stop == n:
            up[:, -1] = 0
        if wrong == "gate_and_up_exchanged":
            gate, up = up, gate
        activate = GATED[plan.activation]
        if c is None or beta == 0:
            return activate(gate, up)
        if plan.c.is_matrix and wrong != "matrix_before_the_gate":
            return activate(gate, up) + beta * c
        biases = (c, c) if plan.c.axes != ("n",) else (c[:, one] for one in at)
        of_gate, of_up = (beta * one for one in biases)
        if wrong == "no_bias_of_up":
            of_up = np.zeros_like(of_up)
        return activate(gate + of_gate, up + of_up)

    def _residual(self, bits: dict[str, Any], tile: Place, before: Place) -> Any:
        plan, wrong = self.plan, self.mutant
        if not plan.c.exists:
            return None
        batch, i, j = before if wrong == "c_of_the_tile_before" else tile
        c = _batched(from_bits(bits["c"], plan.out_dtype), 1 + len(plan.c.axes))
        shape = bits["out"].shape[-2:]
        if plan.gated and plan.c.axes == ("n",):
            return np.broadcast_to(c[batch % len(c)], (i.stop - i.start, c.shape[-1]))
        c = np.broadcast_to(plan.c.rows_of(c[batch % len(c)], slice(None)), shape).copy()
        if wrong == "swapped_rows" and len(c) > 8:
            c[[0, 8]] = c[[8, 0]]
        if wrong == "swapped_columns" and c.shape[1] > 8:
            c[:, [0, 8]] = c[:, [8, 0]]
        here = c[i, j]
        if wrong == "panels_swapped":
            return np.roll(here, plan.out_panel_columns, axis=1)
        if wrong == "c_of_the_tile_before":  # tiles at the edge are smaller
            _, i, j = tile
            return np.resize(here, (i.stop - i.start, j.stop - j.start))
        return here

    def _finish(self, product: Any, c: Any, memory: GemmMemory) -> Any:
        wrong, activation = self.mutant, self.plan.activation
        alpha, beta = np.float32(memory.alpha), np.float32(memory.beta)
        x = np.float32(1 if wrong == "no_alpha" else alpha) * product
        if wrong == "activation_before_c":
            x = ACTIVATIONS[activation](x)
        if c is not None and (beta != 0 or wrong == "nan_of_c"):
            x = x + {"no_beta": np.float32(1), "alpha_for_beta": alpha}.get(wrong, beta) * c
        if activation is None or wrong in ("no_activation", "activation_before_c"):
            return x
        return ACTIVATIONS[activation](x)

    def _rounded(self, values: Any) -> Any:
        if self.mutant == "cut_off":
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        if self.mutant == "rounded_twice":
            values = round_to(values, "bf16")
        return to_bits(values, self.plan.out_dtype)

    def _stray_writes(self, memory: Any, buffers: Any, bits: Any) -> None:
        view = memory.views["out"]
        if not bits["out"].size:
            return
        last = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
        end = -(-(view.offset + last + view.strides[-1]) // 16) * 16
        if self.mutant == "overrun":
            buffers["out"][end] ^= 0xFF
        elif self.mutant == "underrun":
            buffers["out"][view.offset - 1] ^= 0xFF
        elif self.mutant == "chunk_tail" and end > view.offset + last + view.strides[-1]:
            buffers["out"][end - 1] ^= 0xFF
        elif self.mutant == "input":
            bits["a"].flat[:1] ^= 1
        elif self.mutant == "race":
            bits["out"].flat[:1] ^= self.runs & 1


def _batched(array: Any, axes: int) -> Any:
    return array if array.ndim == axes else array[None]


class NumpyGemmBackend(NumpyBackend):
    """Runs a NumpyGemm whatever cubin it is given."""

    def load(self, plan: GemmPlan, compiled: Any) -> NumpyGemm:
        return NumpyGemm(plan, self.mutant)


def make_gemm_plan(**keys: Any) -> GemmPlan:
    config = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "BM": 128, "BN": 64, **keys}
    return build_plan(load_mapping(config, "probe").config)


@pytest.fixture(name="make_plan")
def make_plan_fixture() -> Callable[..., GemmPlan]:
    return make_gemm_plan


@pytest.fixture(name="numpy_backend")
def numpy_backend_fixture() -> type[NumpyGemmBackend]:
    return NumpyGemmBackend
