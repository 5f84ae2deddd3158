"""A stand-in for a kernel: blockwise online softmax in NumPy, with selectable mutants.

It works on the memory that a backend is given, and shares no code with the reference but the ends
of the mask, which tests/masks holds against their definition: heads and the order of the blocks are
written here a second time.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated
from fa4gen.verify.rounding import Precision, from_bits, round_to, to_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.verify.memory import AttentionMemory


OVERFLOWS: dict[str, Any] = {"rounded_maximum": {"over": "ignore", "invalid": "ignore"}}
"""Mutants whose numbers leave float32."""


@dataclass
class NumpyKernel:
    """A kernel for ``plan``; ``mutant`` names what it does wrong, "" for nothing."""

    plan: AttentionPlan
    mutant: str = ""
    runs: int = 0
    kept: float = 0.0
    """A sum of the head before."""
    in_run: threading.Lock = field(default_factory=threading.Lock)

    def run(self, memory: AttentionMemory) -> dict[str, Any]:
        assert self.in_run.acquire(blocking=False), "two runs at a time"
        try:
            self.runs += 1
            buffers = {name: image.copy() for name, image in memory.buffers.items()}
            self._attend(memory, buffers)
            return buffers
        finally:
            self.in_run.release()

    @property
    def _precision(self) -> Precision:
        return Precision.of(self.plan)

    @property
    def _shift(self) -> np.float32:
        return np.float32(self._precision.probability_shift)

    def _descale(self, bits: dict[str, Any], name: str, batch: int, key_head: int) -> float:
        """Return the scale of a tensor's head; 1 where the call passes none."""
        scale = bits.get(f"{name}_descale")
        if scale is None or self.mutant == f"no_{name}_descale":
            return 1.0
        if self.mutant == "transposed_descales":
            scale = scale.reshape(scale.shape[::-1]).T
        return float(scale.view(np.float32)[batch, key_head])

    def _attend(self, memory: AttentionMemory, buffers: dict[str, Any]) -> None:
        plan, wrong = self.plan, self.mutant
        bits = {name: view.bits(buffers[view.buffer]) for name, view in memory.views.items()}
        q, k, v = (
            self._heads_first(memory, from_bits(bits[name], plan.dtype))
            for name in ("query", "key", "value")
        )
        out = self._heads_first(memory, bits["out"])
        batches, heads, rows, depth = q.shape
        key_heads = k.shape[1]
        scale = depth**-0.5 if memory.softmax_scale is None else memory.softmax_scale
        if wrong == "scale":
            scale *= 1.01
        for b in range(batches):
            for h in range(heads):
                kh = h % key_heads if wrong == "gqa" else h // (heads // key_heads)
                descale = [self._descale(bits, name, b, kh) for name in ("query", "key", "value")]
                with np.errstate(**OVERFLOWS.get(wrong, {})):
                    o, lse = self._head(
                        q[b, h], k[b, kh], v[b, kh], scale * descale[0] * descale[1]
                    )
                o *= np.float32(descale[2])
                o_bits = to_bits(o, plan.out_dtype)
                stop = rows
                if wrong == "unwritten" and (b, h) == (batches - 1, heads - 1):
                    stop = rows - 1
                out[b, h, :stop] = o_bits[:stop]
                if "lse" in bits:
                    bits["lse"].view(np.float32)[b, h, :stop] = lse[:stop]
        self._stray_writes(memory, buffers, bits, out)

    def _stray_writes(self, memory: Any, buffers: Any, bits: Any, out: Any) -> None:
        view = memory.views["out"]
        if self.mutant == "overrun":
            end = (
                view.offset
                + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
                + 2
            )
            buffers["out"][end : end + 2] = 0
        elif self.mutant == "underrun":
            buffers["out"][view.offset - 2 : view.offset] = 0
        elif self.mutant == "lse_overrun":
            buffers["lse"][-1] = 0
        elif self.mutant == "row_gap" and memory.layout == "bshd":
            buffers["out"][view.offset + view.strides[1] - 2] ^= 0xFF
        elif self.mutant == "input":
            bits["key"][0, 0, 0, 0] ^= 1
        elif self.mutant == "race" and out.size:
            out.flat[self.runs % 7 if out.size > 7 else 0] ^= self.runs & 1

    def _head(self, q: Any, k: Any, v: Any, scale: float) -> tuple[Any, Any]:
        plan, wrong = self.plan, self.mutant
        rows, keys = len(q), len(k)
        i = np.arange(rows)[:, None] + (0 if wrong == "top_left" else keys - rows)
        first, last = None, None
        if plan.mask.FIRST is not None:
            first = plan.mask.first(i) - (wrong == "left_plus")
        if plan.mask.LAST is not None:
            last = plan.mask.last(i) + (wrong == "right_plus") - (wrong == "right_minus")
        cap = plan.score.numbers().get("softcap") if wrong != "no_softcap" else None
        to_log2 = np.float32((cap or scale) * math.log2(math.e))
        largest = np.full((rows, 1), 0 if wrong == "max_from_zero" else -np.inf, dtype=np.float32)
        total = np.zeros((rows, 1), dtype=np.float32)
        if wrong == "kept_sum":  # the factor of the first block makes it zero
            total += np.float32(0 * self.kept)
        o = np.zeros((rows, v.shape[1]), dtype=np.float32)
        blocks = range(-(-keys // plan.BN))
        for block in reversed(blocks):
            if wrong == "dropped_block" and block == 0 and len(blocks) > 1:
                continue
            j = np.arange(block * plan.BN, min((block + 1) * plan.BN, keys))
            seen = (last is None or j[None] <= last) & (first is None or j[None] >= first)
            if not np.any(seen):
                continue  # values of such a block may be NaN
            s = q @ k[j].T
            if cap is not None:
                s = np.tanh(s * np.float32(scale / cap))
            s *= to_log2
            if last is not None:
                s[j[None] > last] = -np.inf
            if first is not None:
                s[j[None] < first] = -np.inf
            if wrong == "tail" and len(j) < plan.BN:
                s = np.pad(s, ((0, 0), (0, plan.BN - len(j))))
            grown = np.maximum(largest, s.max(axis=1, keepdims=True))
            if wrong == "rounded_maximum":
                grown = round_to(grown, "bf16")
            with np.errstate(invalid="ignore"):
                keep = grown - largest <= plan.rescale_threshold
            grown = np.where(keep, largest, grown)
            offset = np.where(np.isneginf(grown), 0, grown)
            shrink = np.where(np.isneginf(grown), 1, np.exp2(largest - offset))
            if wrong == "exponent_of_row_0":
                shrink[1::2] = shrink[: len(shrink) - 1 : 2]
            if wrong != "no_rescale":
                total, o = total * shrink, o * shrink
            largest = grown
            p = np.exp2(s - offset + self._shift)
            if self._precision.exp2_error:
                p *= np.float32(1 + self._precision.exp2_error) ** np.cos(1000 * p)
            total = total + p.sum(axis=1, keepdims=True)
            values = v[j]
            if wrong == "tail" and len(j) < plan.BN:
                values = np.pad(values, ((0, plan.BN - len(j)), (0, 0)))
            if wrong == "stale_value" and block == 1:
                values = v[: plan.BN][: len(j)]
            p = round_to(p, plan.dtype)
            if wrong in ("dropped_key", "doubled_key") and block == 0:
                p[-1, 0] *= 2 * (wrong == "doubled_key")
            partial = p @ values
            if wrong == "narrow_partials":
                partial = round_to(partial, "bf16")
            o = o + partial
            if wrong == "narrow_sum":
                o = round_to(o, plan.out_dtype)
        self.kept = float(total.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            o = o / total
            lse = largest + np.log2(total) - (0 if wrong == "shifted_lse" else self._shift)
            if wrong != "lse_log2":
                lse = lse * np.float32(math.log(2))
        if wrong != "nan_rows":
            o[total[:, 0] == 0] = 0
            lse[total == 0] = 0 if wrong == "lse_of_unseeing_rows" else -np.inf
        if wrong == "swapped_columns":
            o[:, [-2, -1]] = o[:, [-1, -2]]
        if wrong == "last_row" and rows > 64:
            o[-1] *= np.float32(1.03)
        return o, lse[:, 0]

    @staticmethod
    def _heads_first(memory: AttentionMemory, array: Any) -> Any:
        return array if memory.layout == "bhsd" else array.swapaxes(1, 2)


class NumpyBackend:
    """Runs a NumpyKernel whatever cubin it is given."""

    name = "NumPy"
    proof = "ran on NumPy"
    array_module = np
    same_bits = True
    emulates = False

    def __init__(self, mutant: str = "") -> None:
        self.mutant = mutant

    def available(self) -> bool:
        return True

    def load(self, plan: AttentionPlan, compiled: Any) -> NumpyKernel:
        return NumpyKernel(plan, self.mutant)


def make_plan(**keys: Any) -> AttentionPlan:
    config = {"kernel": "attention", "name": "probe", "arch": "sm_90a", "dtype": "bf16"}
    config |= {"depth": 64, **keys}
    return build_plan(validated(config))


@pytest.fixture(name="make_plan")
def make_plan_fixture() -> Callable[..., AttentionPlan]:
    return make_plan


@pytest.fixture(name="numpy_backend")
def numpy_backend_fixture() -> type[NumpyBackend]:
    return NumpyBackend


@pytest.fixture
def compiled() -> Any:
    """Return what ``verify_kernel`` reads of a compiled kernel, without a compiler."""
    from fa4gen.toolchain.model import Resources

    return SimpleNamespace(cubin=b"", ptx="", resources=Resources(168, 0, 0, 0, 0, 0))
