"""examples/moe: its kernels in the emulator as the layer's products, without a GPU."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.vendoring.kernels import build_kernels
from fa4gen.verify.buffers import View
from fa4gen.verify.emulator import EmulatorBackend
from fa4gen.verify.gemm.memory import GemmMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fa4gen.verify.emulator import EmulatedKernel

EXAMPLE = Path(__file__).parents[2] / "examples/moe"
MODULES = ("benchmark", "layer", "reference")
TOKENS, CHOSEN = 37, 2
BF16, INT32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.int32)
WORDS = {BF16: "bf16", INT32: "int32"}


@pytest.fixture(scope="module")
def reference() -> Iterator[Any]:
    """The layer in NumPy."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield importlib.import_module("reference")
    finally:
        sys.path.remove(str(EXAMPLE))
        sys.modules.pop("reference", None)


@pytest.fixture(scope="module")
def example(reference: Any) -> Iterator[Any]:
    """The example's modules, by name."""
    pytest.importorskip("torch", minversion="2.9", reason="needs PyTorch: the extra examples")
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture
def weights() -> dict[str, NDArray[np.float32]]:
    """Weights of 8 experts, of which the last one is never chosen; in bf16, as float32."""
    rng = np.random.default_rng(4)
    made = {
        "router": rng.standard_normal((8, 64)) / 8,
        "gate_up": rng.standard_normal((8, 64, 64)) / 8,
        "down": rng.standard_normal((8, 64, 32)) / 32**0.5,
    }
    made["router"][7] = 0
    return {name: in_bf16(one) for name, one in made.items()}


@pytest.fixture
def tokens() -> NDArray[np.float32]:
    return in_bf16(np.random.default_rng(5).standard_normal((TOKENS, 64)))


def in_bf16(values: NDArray[Any]) -> NDArray[np.float32]:
    return values.astype(BF16).astype(np.float32)


@dataclass
class Emulated:
    """The example's kernels in the emulator, as the products of ``reference``."""

    gate_up: EmulatedKernel
    down: EmulatedKernel

    @classmethod
    def load(cls, few: str) -> Emulated:
        """Compile those whose names end in ``few``."""
        backend = EmulatorBackend("sm_90a")
        paths = [EXAMPLE / f"gate_up{few}.yaml", EXAMPLE / f"down{few}.yaml"]
        made = build_kernels(paths, "moe")
        return cls(*(backend.load(kernel.plan, kernel.compiled) for kernel in made))

    def hidden(self, tokens: Any, gate_up: Any, routes: Any) -> NDArray[np.float32]:
        where = {"row_offsets": routes.row_offsets, "row_index": routes.row_index}
        rows = len(routes.row_index)
        return run(self.gate_up, tokens, gate_up, (rows, gate_up.shape[1] // 2), where)

    def out(self, hidden: Any, down: Any, routes: Any) -> NDArray[np.float32]:
        where = {"row_offsets": routes.row_offsets}
        return run(self.down, hidden, down, (len(hidden), down.shape[1]), where)


def run(
    kernel: EmulatedKernel, a: Any, weights: Any, shape: tuple[int, int], where: dict[str, Any]
) -> NDArray[np.float32]:
    """Run a kernel on A (rows, k) and weights (groups, n, k)."""
    arrays = {
        "a": a.astype(BF16),
        "b": weights.astype(BF16),
        "out": np.full(shape, np.nan, BF16),
        **where,
    }
    views = {name: view_of(name, array) for name, array in arrays.items()}
    groups, columns, k = views["b"].shape
    views["b"] = View(
        "b", 0, (groups, k, columns), tuple(views["b"].strides[i] for i in (0, 2, 1)), "bf16"
    )
    buffers = {
        name: np.frombuffer(bytearray(one.tobytes()), np.uint8) for name, one in arrays.items()
    }
    found = kernel.run(GemmMemory(buffers, views, 1.0, 1.0))["out"]
    return found.view(BF16).reshape(shape).astype(np.float32)


def view_of(name: str, array: NDArray[Any]) -> View:
    return View(name, 0, array.shape, array.strides, WORDS[array.dtype])


@pytest.mark.compile
@pytest.mark.parametrize("few", ["", "_few"])
def test_the_kernels_compute_the_layer(
    reference: Any, tokens: NDArray[np.float32], weights: dict[str, NDArray[np.float32]], few: str
) -> None:
    routes = reference.numpy_routes(tokens @ weights["router"].T, CHOSEN)
    assert len(set(np.diff(routes.row_offsets))) > 3  # experts have different numbers of rows
    exact = reference.numpy_layer(tokens, weights, CHOSEN, reference.Loops())
    found = reference.numpy_layer(tokens, weights, CHOSEN, Emulated.load(few))
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert 0 < error < 2**-8  # two roundings to bf16


class Rounded:
    """The loops with the kernels' roundings and one mistake: the rows of an expert too many."""

    def __init__(self, loops: Any) -> None:
        self._loops = loops

    def hidden(self, tokens: Any, gate_up: Any, routes: Any) -> Any:
        return in_bf16(self._loops.hidden(tokens, gate_up, routes))

    def out(self, hidden: Any, down: Any, routes: Any) -> Any:
        offsets = routes.row_offsets.copy()
        offsets[3] += 1
        return in_bf16(self._loops.out(hidden, down, routes._replace(row_offsets=offsets)))


def test_a_row_of_another_expert_is_seen(
    reference: Any, tokens: NDArray[np.float32], weights: dict[str, NDArray[np.float32]]
) -> None:
    exact = reference.numpy_layer(tokens, weights, CHOSEN, reference.Loops())
    found = reference.numpy_layer(tokens, weights, CHOSEN, Rounded(reference.Loops()))
    assert np.linalg.norm(found - exact) / np.linalg.norm(exact) > 2**-6


def test_numpy_and_torch_agree(
    example: Any, tokens: NDArray[np.float32], weights: dict[str, NDArray[np.float32]]
) -> None:
    import torch

    of_torch = {name: torch.from_numpy(one) for name, one in weights.items()}
    expected = example.reference.numpy_routes(tokens @ weights["router"].T, CHOSEN)
    logits = torch.from_numpy(tokens) @ of_torch["router"].T
    routes = example.layer.routes_of(logits, CHOSEN)
    for name in ("row_index", "row_offsets", "places"):
        assert np.array_equal(getattr(routes, name).numpy(), getattr(expected, name)), name
    found = example.layer.layer(torch.from_numpy(tokens), of_torch, CHOSEN, example.layer.Loop())
    exact = example.reference.numpy_layer(tokens, weights, CHOSEN, example.reference.Loops())
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-4, atol=1e-5)


def test_the_benchmark_runs_without_a_gpu(
    example: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "--small", "--tokens", "50"])
    assert example.benchmark.main() == 0
    assert "50 tokens, loop" in capsys.readouterr().out


def test_errors_are_judged_beside_a_loop(example: Any) -> None:
    figures, tokens = example.benchmark.figures, np.zeros((3, 1))
    assert figures("any", tokens, 2.0, (0.004, 0.003))["holds"]
    assert not figures("any", tokens, 2.0, (0.005, 0.003))["holds"]
    assert figures("any", tokens, 2.0, (0.0, 0.0))["tokens_per_s"] == 1.5e6


def test_the_kernels_for_few_rows_are_those_of_their_tiles(example: Any) -> None:
    import torch

    offsets = torch.zeros(9, dtype=torch.int32)
    for rows, many in ((8 * 32, False), (8 * 32 + 1, True)):
        routes = example.layer.Routes(torch.zeros(rows), offsets, offsets, offsets)
        assert example.layer.has_many_rows(routes) is many
