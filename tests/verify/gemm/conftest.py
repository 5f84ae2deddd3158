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

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.memory import GemmMemory

ACTIVATIONS = {
    "relu(x)": lambda x: np.maximum(x, np.float32(0)),
    "silu(x)": lambda x: x / (1 + np.exp(-x)),
    "exp(x)": np.exp,
}


@dataclass
class NumpyGemm:
    """A kernel for ``plan``; ``mutant`` names what it does wrong, "" for nothing."""

    plan: GemmPlan
    mutant: str = ""
    runs: int = 0

    def run(self, memory: GemmMemory) -> dict[str, Any]:
        self.runs += 1
        buffers = {name: image.copy() for name, image in memory.buffers.items()}
        bits = {name: view.bits(buffers[view.buffer]) for name, view in memory.views.items()}
        out = bits["out"] if bits["out"].ndim == 3 else bits["out"][None]
        with np.errstate(over="ignore"):
            for batch in range(len(out)):
                self._product(memory, bits, batch, out[batch])
        self._stray_writes(memory, buffers, bits)
        return buffers

    def _matrix(self, bits: dict[str, Any], name: str, batch: int, axes: int) -> Any:
        found = bits[name] if bits[name].ndim == axes else bits[name][batch]
        return from_bits(found, self.plan.dtype if name in "ab" else self.plan.out_dtype)

    def _product(self, memory: GemmMemory, bits: dict[str, Any], batch: int, out: Any) -> None:
        plan, wrong = self.plan, self.mutant
        a, b = self._matrix(bits, "a", batch, 2), self._matrix(bits, "b", batch, 2)
        if memory.alpha == 0 and wrong != "reads_a_and_b":
            a, b = a[:, :0], b[:0]
        if wrong == "first_b" and bits["b"].ndim == 3:
            b = self._matrix(bits, "b", 0, 2)
        c = None
        if plan.c.exists and memory.beta != 0:
            c = self._matrix(bits, "c", batch, len(plan.c.axes))
            c = np.broadcast_to(plan.c.beside(c, slice(None)), out.shape).copy()
        if wrong == "next_row" and len(a) > 1:
            a[-1] = a[-2]
        if wrong == "lost_product" and a.size:
            a = a.copy()
            a[-1, np.flatnonzero(a[-1])[-1:]] = 0  # the last that is not zero
        total = np.zeros(out.shape, np.float32)
        for start in range(0, a.shape[1], plan.BK):
            if wrong == "lost_block" and start == plan.BK:
                continue
            partial = a[:, start : start + plan.BK] @ b[start : start + plan.BK]
            if wrong == "narrow_partials":
                partial = round_to(partial, "bf16")
            total += partial
        alpha = np.float32(1 if wrong == "no_alpha" else memory.alpha)
        if wrong == "narrow_sum":
            total = round_to(total, "bf16")
        x = alpha * total
        if c is not None:
            if wrong == "swapped_rows" and len(c) > 8:
                c[[0, 8]] = c[[8, 0]]
            if wrong == "swapped_columns" and c.shape[1] > 8:
                c[:, [0, 8]] = c[:, [8, 0]]
            x = x + np.float32(1 if wrong == "no_beta" else memory.beta) * c
        if wrong == "nan_of_c" and plan.residual == "matrix" and memory.beta == 0:
            x = x + np.float32(0) * self._matrix(bits, "c", batch, 2)
        if plan.activation is not None and wrong != "no_activation":
            x = ACTIVATIONS[plan.activation](x)
        if wrong == "one_element" and x.size > 20:
            x.flat[x.size // 2] *= np.float32(1.02)
        written = out[:-1] if wrong == "unwritten" else out
        written[...] = to_bits(x, plan.out_dtype)[: len(written)]

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


class NumpyGemmBackend:
    """Runs a NumpyGemm whatever cubin it is given."""

    name = "NumPy"
    proof = "ran on NumPy"
    array_module = np
    same_bits = True
    emulates = False

    def __init__(self, mutant: str = "") -> None:
        self.mutant = mutant

    def available(self) -> bool:
        return True

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
