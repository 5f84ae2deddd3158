"""Replacements of the GPU's libraries: NumPy for CuPy, and a torch with the same few functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.bench import (
    attention_work,
    gemm_inputs,
    gemm_work,
    gpu_arrays,
    grouped_work,
    run,
    uneven_work,
    work,
)
from fa4gen.epilogues import residual_of
from fa4gen.runtime.timing import Timing
from fa4gen.verify.rounding import numpy_dtype

if TYPE_CHECKING:
    import pytest


class Tensor(np.ndarray):
    """An array with the methods of torch's tensors that bench calls."""

    def float(self) -> Tensor:
        return self.astype(np.float32)

    def norm(self) -> Any:
        return np.sqrt((np.asarray(self, np.float64) ** 2).sum())

    def clone(self) -> Tensor:
        return self.copy()

    def t(self) -> Tensor:
        return self.T

    def contiguous(self) -> Tensor:
        return tensor(np.ascontiguousarray(self))

    @property
    def device(self) -> str:
        return "cpu"


def tensor(values: Any) -> Tensor:
    return np.asarray(values).view(Tensor)


COMPILED: Any = SimpleNamespace(cubin=b"", compiler="nvrtc", compiler_version="13.0")
POOL = 5003


def put_on_numpy(monkeypatch: pytest.MonkeyPatch, l2_bytes: int = 0) -> None:
    """Let bench work on a device of NumPy's, whose n-th callable takes n milliseconds."""
    cupy = SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if name[0] != "_"})
    cupy.cuda = SimpleNamespace(Device=lambda _: SimpleNamespace(use=lambda: None))
    device = SimpleNamespace(ordinal=0, l2_bytes=l2_bytes)

    def take_turns(runs: Any, protocol: Any, *, rounds: int) -> Any:
        for _ in range(rounds):
            for one in runs.values():
                one()
        return {
            name: tuple(Timing((number + 1.0,)) for _ in range(rounds))
            for number, name in enumerate(runs)
        }

    def as_torch(bits: Any, dtype: str) -> Any:
        return None if bits is None else tensor(bits.view(numpy_dtype(dtype)))

    products = (gemm_inputs, gemm_work, grouped_work, uneven_work)
    for module in (gpu_arrays, attention_work, *products, run):
        monkeypatch.setattr(module, "load_cupy", lambda: cupy)
    for module in (gemm_work, uneven_work, run):
        monkeypatch.setattr(module, "require_device", lambda _: device)
    for module in (work, attention_work, gemm_work):
        monkeypatch.setattr(module, "as_torch", as_torch)
    monkeypatch.setattr(gpu_arrays, "POOL", POOL)
    monkeypatch.setattr(run, "time_in_turn", take_turns)


class FakeTorch(SimpleNamespace):
    """Computes with NumPy; ``calls`` are the names of the functions called and their options."""

    float32, bfloat16, float16 = "float32", "bfloat16", "float16"

    def __init__(self) -> None:
        super().__init__(calls=[])

    def mm(self, a: Any, b: Any, *, out: Any, **options: Any) -> Any:
        self.calls.append(("mm", options))
        out[:] = a.astype(np.float32) @ b.astype(np.float32)
        return out

    def addmm(
        self, c: Any, a: Any, b: Any, *, alpha: float, beta: float, out: Any, **options: Any
    ) -> Any:
        self.calls.append(("addmm", {"alpha": alpha, "beta": beta, **options}))
        product = a.astype(np.float32) @ b.astype(np.float32)
        out[:] = alpha * product + beta * c.astype(np.float32)
        return out

    def bmm(self, a: Any, b: Any, **options: Any) -> Any:
        out = self.mm(a, b, **options)
        self.calls[-1] = ("bmm", self.calls[-1][1])
        return out

    def baddbmm(self, c: Any, a: Any, b: Any, **options: Any) -> Any:
        out = self.addmm(c, a, b, **options)
        self.calls[-1] = ("baddbmm", self.calls[-1][1])
        return out

    def full(self, shape: Any, value: float, **_: Any) -> Any:
        return tensor(np.full(shape, value, np.float32))

    def ones(self, shape: Any, **options: Any) -> Any:
        return self.full(shape, 1.0, **options)

    def _scaled_mm(
        self, a: Any, b: Any, scale_a: Any, scale_b: Any, *, bias: Any, out: Any, **options: Any
    ) -> Any:
        self.calls.append(("_scaled_mm", options))
        out[:] = scale_a * scale_b * (a.astype(np.float32) @ b.astype(np.float32))
        if bias is not None:
            out[:] += bias
        return out

    def relu_(self, x: Any) -> Any:
        self.calls.append(("relu_", {}))
        return np.maximum(x, 0, out=x)

    def tanh_(self, x: Any) -> Any:
        return np.tanh(x, out=x)

    def sigmoid_(self, x: Any) -> Any:
        x[:] = 1 / (1 + np.exp(-x))
        return x


def make_plan(**changes: Any) -> SimpleNamespace:
    """The plan of a matrix product as far as bench reads it: float16, since NumPy multiplies it."""
    values: dict[str, Any] = {
        "kernel": "gemm",
        "name": "gemm_test",
        "arch": "sm_90a",
        "dtype": "fp16",
        "out_dtype": "fp16",
        "element_bytes": 2,
        "elements_per_byte": 1,
        "out_element_bytes": 2,
        "a_major": "k",
        "b_major": "k",
        "residual": "none",
        "scales": (),
        "gated": False,
        "output_scales": None,
        "gathers_rows": False,
        "groups": None,
        "sums_by_group": False,
        "scatters_rows": False,
        "places_atoms": False,
        "activation": None,
        "BM": 128,
        "BN": 256,
        "BK": 64,
        "num_stages": 4,
        "num_epi_stages": 2,
        "cta_group": 2,
        "scheduler": "static",
    }
    values |= changes
    values.setdefault("b_dtype", values["dtype"])
    c = residual_of(values["residual"])
    return SimpleNamespace(
        **values, c=c, c_extents=c.extents, output_columns=lambda columns: columns
    )
