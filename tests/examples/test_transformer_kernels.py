"""examples/transformer/step_kernels.py: a layer by its kernels in the emulator, in NumPy."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.callables import compile_config
from fa4gen.config.load import load_mapping
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.verify.buffers import View
from fa4gen.verify.emulator import EmulatorBackend
from fa4gen.verify.gemm.memory import GemmMemory
from fa4gen.verify.memory import AttentionMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

EXAMPLE = Path(__file__).parents[2] / "examples/transformer"
ROWS, HEADS, KEY_HEADS, DEPTH, INNER, PAGE = 5, 4, 2, 128, 256, 64
HIDDEN = HEADS * DEPTH
BF16 = np.dtype(ml_dtypes.bfloat16)
WORDS = {BF16: "bf16", np.dtype(np.int32): "int32"}
CTA_BYTES, MULTIPROCESSOR_BYTES = 1024, 228 << 10
"""Shared memory: what each CTA takes more, and all there is on Hopper."""
VARIANTS = {
    "apart": {"dependent": False},
    "dependent": {"dependent": True},
    "short": {"dependent": True, "short": True},
}
pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    """The module of the kernels, which needs no PyTorch."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield importlib.import_module("step_kernels")
    finally:
        sys.path.remove(str(EXAMPLE))
        sys.modules.pop("step_kernels", None)


def chosen(example: Any, variant: str) -> dict[str, Any]:
    """Return the compiled kernels by name."""
    made = example.configs(**VARIANTS[variant])
    return {name: compile_config(load_mapping(keys, name)) for name, keys in made.items()}


class Emulated:
    """The kernels of a variant, called with arrays of bf16."""

    def __init__(self, kernels: dict[str, Any]) -> None:
        backend = EmulatorBackend("sm_90a")
        self._kernels = {name: backend.load(one.plan, one.kernel) for name, one in kernels.items()}

    def product(
        self, name: str, a: NDArray[Any], weight: NDArray[Any], c: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the product by a weight (n, k)."""
        columns = len(weight) // (2 if name == "gate_up" else 1)
        arrays = {"a": a, "b": weight, "out": np.full((len(a), columns), np.nan, BF16)}
        if c is not None:
            arrays["c"] = c
        buffers, views = placed(arrays)
        of_weight = views["b"]
        views["b"] = View("b", 0, of_weight.shape[::-1], of_weight.strides[::-1], "bf16")
        found = self._kernels[name].run(GemmMemory(buffers, views, 1.0, 1.0))
        return found["out"].view(BF16).reshape(arrays["out"].shape)

    def attention(self, **arrays: NDArray[Any]) -> NDArray[Any]:
        """Return the attention of a query (sequences, 1, heads, depth) over pages."""
        arrays["out"] = np.full_like(arrays["query"], np.nan)
        memory = AttentionMemory(*placed(arrays), "bshd", None)
        return self._kernels["decode"].run(memory)["out"].view(BF16).reshape(arrays["out"].shape)


def placed(arrays: dict[str, NDArray[Any]]) -> tuple[dict[str, Any], dict[str, View]]:
    """Return a buffer and a view of each array."""
    buffers = {name: np.frombuffer(bytearray(x.tobytes()), np.uint8) for name, x in arrays.items()}
    views = {name: View(name, 0, x.shape, x.strides, WORDS[x.dtype]) for name, x in arrays.items()}
    return buffers, views


def attended(
    query: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], lengths: Any, table: Any
) -> NDArray[np.float32]:
    """Return the attention in float32, sequence by sequence."""
    found = np.empty((len(query), HEADS, DEPTH), np.float32)
    for i, length in enumerate(lengths):
        pages = table[i, : -(-length // PAGE)]
        key, value = (x[pages].reshape(-1, KEY_HEADS, DEPTH)[:length] for x in (keys, values))
        key, value = (x.astype(np.float32).repeat(HEADS // KEY_HEADS, axis=1) for x in (key, value))
        logits = np.einsum("hd,khd->hk", query[i, 0].astype(np.float32), key) * DEPTH**-0.5
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        found[i] = np.einsum("hk,khd->hd", weights, value)
    return found


def error(found: NDArray[Any], expected: NDArray[np.float32]) -> float:
    difference = found.astype(np.float32) - expected
    return float(np.linalg.norm(difference) / np.linalg.norm(expected))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kernels_compute_a_layer(example: Any, variant: str) -> None:
    rng = np.random.default_rng(6)

    def draw(*shape: int, scale: float = 1.0) -> NDArray[Any]:
        return (scale * rng.standard_normal(shape)).astype(BF16)

    def weight(n: int, k: int) -> NDArray[Any]:
        return draw(n, k, scale=k**-0.5)

    columns = HIDDEN + 2 * KEY_HEADS * DEPTH
    x, pages = draw(ROWS, HIDDEN), 9
    weights = {
        "qkv": weight(columns, HIDDEN),
        "out": weight(HIDDEN, HIDDEN),
        "gate_up": weight(2 * INNER, HIDDEN),
        "down": weight(HIDDEN, INNER),
    }
    keys, values = draw(pages, PAGE, KEY_HEADS, DEPTH), draw(pages, PAGE, KEY_HEADS, DEPTH)
    lengths = np.array([1, 64, 65, 100, 30], np.int32)
    table = rng.permutation(pages)[:8].astype(np.int32)
    table = np.stack([table[[i, i + 3]] for i in range(ROWS)])
    run = Emulated(chosen(example, variant))

    def exact(a: NDArray[Any], name: str) -> NDArray[np.float32]:
        return a.astype(np.float32) @ weights[name].astype(np.float32).T

    qkv = run.product("qkv", x, weights["qkv"])
    assert error(qkv, exact(x, "qkv")) < 2**-8
    query = np.ascontiguousarray(qkv[:, :HIDDEN]).reshape(ROWS, 1, HEADS, DEPTH)
    where = {"key_lengths": lengths, "page_table": table}
    heads = run.attention(query=query, key=keys, value=values, **where)
    wanted = attended(query, keys, values, lengths, table)
    assert error(heads[:, 0], wanted) < 2**-7
    rows = heads.reshape(ROWS, HIDDEN)
    middle = run.product("residual", rows, weights["out"], x)
    assert error(middle, exact(rows, "out") + x.astype(np.float32)) < 2**-8
    hidden = run.product("gate_up", middle, weights["gate_up"])
    gate, up = np.split(exact(middle, "gate_up"), 2, axis=1)
    assert error(hidden, gate / (1 + np.exp(-gate)) * up) < 2**-7
    found = run.product("residual", hidden, weights["down"], middle)
    assert error(found, exact(hidden, "down") + middle.astype(np.float32)) < 2**-8
    assert error(run.product("head", found, weights["qkv"]), exact(found, "qkv")) < 2**-8


def view(*shape: int, dtype: str = "bfloat16", transposed: bool = False) -> TensorView:
    """Return a contiguous tensor on a GPU, (k, n) of a weight (n, k) if transposed."""
    size, strides = {"bfloat16": 2, "int32": 4}[dtype], []
    for extent in shape if transposed else shape[::-1]:
        strides.append(size)
        size *= extent
    view.next = address = getattr(view, "next", 0) + (1 << 40)  # type: ignore[attr-defined]
    ordered = strides if transposed else strides[::-1]
    return TensorView(address, shape, tuple(ordered), dtype, 0)


def test_they_take_the_arguments_of_a_step_of_llama(example: Any) -> None:
    plans = {name: one.plan for name, one in chosen(example, "dependent").items()}
    rows, hidden, inner, words = example.ROWS, 4096, 14336, 128256
    products = [
        ("qkv", hidden, 6144, 6144),
        ("residual", hidden, hidden, hidden),
        ("gate_up", hidden, 2 * inner, inner),
        ("residual", inner, hidden, hidden),
        ("head", hidden, words, words),
    ]
    for name, k, n, out in products:
        c = view(rows, out) if name == "residual" else None
        b = view(k, n, transposed=True)
        arguments = GemmArguments(view(rows, k), b, c, view(rows, out), 1.0, 1.0)
        check_gemm_arguments(plans[name], arguments)
    query, cache = view(rows, 1, 32, DEPTH), [view(900, PAGE, 8, DEPTH) for _ in range(2)]
    lengths, table = view(rows, dtype="int32"), view(rows, 56, dtype="int32")
    out = view(rows, 1, 32, DEPTH)
    where = {"key_lengths": lengths, "page_table": table}
    arguments = Arguments(query, *cache, out, None, DEPTH**-0.5, "bshd", **where)
    check_arguments(plans["decode"], arguments)


def test_two_ctas_of_short_rings_fit_a_multiprocessor(example: Any) -> None:
    plans = {name: one.plan for name, one in chosen(example, "short").items()}
    fits = {
        name: 2 * (plan.launch.dynamic_shared_bytes + CTA_BYTES) <= MULTIPROCESSOR_BYTES
        for name, plan in plans.items()
    }
    assert fits == {name: name != "decode" for name in plans}
    assert all(plan.launch.dependent_launch for plan in plans.values())
