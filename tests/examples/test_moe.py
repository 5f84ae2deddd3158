"""examples/moe: its kernels in the emulator as the layer's products, without a GPU."""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen import scales
from fa4gen.render.environment import open_templates
from fa4gen.vendoring.assemble import text_files
from fa4gen.vendoring.kernels import build_kernels, load_configs, render_kernels
from fa4gen.vendoring.model import Request
from fa4gen.verify.buffers import View
from fa4gen.verify.emulator import EmulatorBackend
from fa4gen.verify.gemm.memory import GemmMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fa4gen.verify.emulator import EmulatedKernel

EXAMPLE = Path(__file__).parents[2] / "examples/moe"
MODULES = ("benchmark", "layer", "reference", "steps")
TOKENS, CHOSEN, HIDDEN, INNER, EXPERTS = 37, 2, 256, 128, 8
BF16, FP8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
WORDS = {
    BF16: "bf16",
    FP8: "fp8_e4m3",
    np.dtype(np.int32): "int32",
    np.dtype(np.float32): "fp32",
}


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
        "router": rng.standard_normal((EXPERTS, HIDDEN)) / HIDDEN**0.5,
        "gate_up": rng.standard_normal((EXPERTS, 2 * INNER, HIDDEN)) / HIDDEN**0.5,
        "down": rng.standard_normal((EXPERTS, HIDDEN, INNER)) / INNER**0.5,
    }
    made["router"][7] = 0
    return {name: in_bf16(one) for name, one in made.items()}


@pytest.fixture
def tokens() -> NDArray[np.float32]:
    return in_bf16(np.random.default_rng(5).standard_normal((TOKENS, HIDDEN)))


def in_bf16(values: NDArray[Any]) -> NDArray[np.float32]:
    return values.astype(BF16).astype(np.float32)


@dataclass
class Emulated:
    """The example's kernels in the emulator, as the products of ``reference``."""

    gate_up: EmulatedKernel
    down: EmulatedKernel

    @classmethod
    def load(cls, names: str) -> Any:
        """Compile those whose names end in ``names``."""
        backend = EmulatorBackend("sm_90a")
        paths = [EXAMPLE / f"gate_up{names}.yaml", EXAMPLE / f"down{names}.yaml"]
        made = build_kernels(paths, "moe")
        return cls(*(backend.load(one.plan, one.compiled) for one in made))

    def hidden(self, tokens: Any, gate_up: Any, routes: Any) -> Any:
        """Return the first product's output in bf16."""
        out = np.full((len(routes.order), INNER), np.nan, BF16)
        arrays = {"a": tokens.astype(BF16), "b": gate_up.astype(BF16), "out": out}
        return run(self.gate_up, arrays | gathered(routes))["out"]

    def weighted(self, hidden: Any, down: Any, routes: Any) -> NDArray[np.float32]:
        """Return the rows that the second product stores."""
        arrays = {"a": hidden, "b": down.astype(BF16)}
        return by_token(run(self.down, arrays | scattered(routes)), routes)


class EmulatedFp8(Emulated):
    """The kernels in fp8: what the first one quantises, the second one reads."""

    def hidden(self, tokens: Any, gate_up: Any, routes: Any) -> Any:
        """Return elements and scales."""
        rows = len(routes.order)
        arrays = {
            **quantised(tokens, gate_up),
            "out": np.full((rows, INNER), np.nan, FP8),
            "out_scales": np.full((rows, INNER // 128), np.nan, np.float32),
        }
        found = run(self.gate_up, arrays | gathered(routes))
        return found["out"], found["out_scales"]

    def weighted(self, hidden: Any, down: Any, routes: Any) -> NDArray[np.float32]:
        """Return the rows that the second product stores."""
        elements, scale_a = hidden
        arrays = {**quantised(None, down), "a": elements, "scale_a": scale_a}
        return by_token(run(self.down, arrays | scattered(routes)), routes)


def quantised(a: Any, weights: Any) -> dict[str, NDArray[Any]]:
    """Return A, unless it is None, and weights (groups, n, k) in fp8, with their scales."""
    b = scales.quantize(weights, "128x128")
    found = {"b": b.elements.view(FP8), "scale_b": b.scales}
    if a is not None:
        made = scales.quantize(a, "1x128")
        found |= {"a": made.elements.view(FP8), "scale_a": made.scales}
    return found


def gathered(routes: Any) -> dict[str, NDArray[Any]]:
    return {"row_offsets": routes.row_offsets, "row_index": routes.row_index}


def scattered(routes: Any) -> dict[str, NDArray[Any]]:
    return {
        "row_offsets": routes.row_offsets,
        "out_index": routes.order,
        "row_weights": routes.row_weights,
        "out": np.full((len(routes.order), HIDDEN), np.nan, BF16),
    }


def by_token(found: dict[str, Any], routes: Any) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = found["out"].astype(np.float32)
    return rows.reshape(*routes.factors.shape, HIDDEN)


def run(kernel: EmulatedKernel, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Run a kernel on A (rows, k), weights (groups, n, k) and so on; return all arrays after it."""
    views = {name: view_of(name, array) for name, array in arrays.items()}
    for name in {"b", "scale_b"} & views.keys():
        of_weights = views[name]
        groups, columns, k = of_weights.shape
        strides = tuple(of_weights.strides[i] for i in (0, 2, 1))
        views[name] = View(name, 0, (groups, k, columns), strides, of_weights.dtype)
    buffers = {
        name: np.frombuffer(bytearray(one.tobytes()), np.uint8) for name, one in arrays.items()
    }
    found = kernel.run(GemmMemory(buffers, views, 1.0, 1.0))
    return {name: found[name].view(one.dtype).reshape(one.shape) for name, one in arrays.items()}


def view_of(name: str, array: NDArray[Any]) -> View:
    return View(name, 0, array.shape, array.strides, WORDS[array.dtype])


@pytest.mark.compile
@pytest.mark.parametrize(
    ("kind", "names", "most"),
    [
        (Emulated, "", 2**-8),  # three roundings to bf16
        (Emulated, "_few", 2**-8),
        (EmulatedFp8, "_fp8", 2**-3.5),  # of tokens, weights and hidden values to fp8
        (EmulatedFp8, "_fp8_few", 2**-3.5),
    ],
)
def test_the_kernels_compute_the_layer(
    reference: Any,
    tokens: NDArray[np.float32],
    weights: dict[str, NDArray[np.float32]],
    kind: type[Emulated],
    names: str,
    most: float,
) -> None:
    routes = reference.numpy_routes(tokens @ weights["router"].T, CHOSEN)
    assert len(set(np.diff(routes.row_offsets))) > 3  # experts have different numbers of rows
    exact = reference.numpy_layer(tokens, weights, CHOSEN, reference.Loops())
    found = reference.numpy_layer(tokens, weights, CHOSEN, kind.load(names))
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert most / 4 < error < most


class Rounded:
    """The loops with the kernels' roundings and one mistake: the rows of an expert too many."""

    def __init__(self, loops: Any) -> None:
        self._loops = loops

    def hidden(self, tokens: Any, gate_up: Any, routes: Any) -> Any:
        return in_bf16(self._loops.hidden(tokens, gate_up, routes))

    def weighted(self, hidden: Any, down: Any, routes: Any) -> Any:
        offsets = routes.row_offsets.copy()
        offsets[3] += 1
        return in_bf16(self._loops.weighted(hidden, down, routes._replace(row_offsets=offsets)))


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
    for name in ("order", "row_index", "row_offsets", "places"):
        assert np.array_equal(getattr(routes, name).numpy(), getattr(expected, name)), name
    np.testing.assert_allclose(routes.row_weights.numpy(), expected.row_weights, rtol=1e-4)
    loop = example.layer.Loop(of_torch, torch.float32)
    found = example.layer.layer(torch.from_numpy(tokens), of_torch["router"], CHOSEN, loop)
    exact = example.reference.numpy_layer(tokens, weights, CHOSEN, example.reference.Loops())
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-4, atol=1e-5)


def test_the_benchmark_runs_without_a_gpu(
    example: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    written = str(tmp_path / "figures.json")
    words = ["benchmark.py", "--small", "--tokens", "50", "--json", written]
    monkeypatch.setattr(sys, "argv", words)
    assert example.benchmark.main() == 0
    assert "50 tokens, loop bf16" in capsys.readouterr().out
    rows = json.loads(Path(written).read_text())
    assert [row["experts"] for row in rows] == ["loop bf16", "loop fp8"]
    assert rows[0]["error"] < 2**-20 < 2**-6 < rows[1]["error"] < 2**-3


def test_errors_are_judged_by_a_loop_of_the_type(example: Any) -> None:
    figures, tokens = example.benchmark.figures, np.zeros((3, 1))
    loops = {"bf16": 0.003, "fp8": 0.04}
    assert figures("any bf16", tokens, 2.0, (0.004, loops))["holds"]
    assert not figures("any bf16", tokens, 2.0, (0.005, loops))["holds"]
    assert figures("any fp8", tokens, 2.0, (0.059, loops))["holds"]
    assert figures("any bf16", tokens, 2.0, (0.0, loops))["tokens_per_s"] == 1.5e6


def test_steps_in_fp8_have_their_rounding(example: Any) -> None:
    import torch

    values = torch.randn(3, 256, 384, generator=torch.Generator().manual_seed(1))
    steps = example.steps
    elements, by_row = steps.quantised_rows(values)
    found = {
        "rows": elements.float() * by_row[..., None],
        "blocks": steps.dequantised(*steps.quantised_blocks(values), rows=1),
        "tiles": steps.dequantised(*steps.quantised_tiles(values), rows=128),
    }
    for name, one in found.items():
        relative = float((one - values).norm() / values.norm())
        assert 2**-7 < relative < 2**-5, name
        assert float((one - values).abs().max()) <= 2**-4 * float(values.abs().max()), name


def test_the_project_vendors_all_kernels() -> None:
    (entry,) = tomllib.loads((EXAMPLE / "fa4gen.toml").read_text())["vendor"]
    assert sorted(entry["configs"]) == sorted(path.name for path in EXAMPLE.glob("*.yaml"))
    assert entry["adapters"] == ["torch"]


@pytest.fixture(scope="module")
def vendored(example: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The functions of the adapter, without a library: fake tensors need none."""
    folder = tmp_path_factory.mktemp("moe")
    templates = open_templates()
    planned = render_kernels(load_configs(sorted(EXAMPLE.glob("*.yaml"))), "moe", templates)
    texts = text_files(Request("moe", ("torch",)), planned, templates)
    (folder / "moe_torch.py").write_bytes(texts["adapters/torch/moe_torch.py"])
    found: dict[str, Any] = example.benchmark.vendored(folder)
    return found


@pytest.mark.parametrize("tokens", [64, 1000])
def test_the_layers_call_the_vendored_functions(
    example: Any, vendored: dict[str, Any], tokens: int
) -> None:
    import torch
    from torch._subclasses import FakeTensorMode

    if not torch.backends.cuda.is_built():
        pytest.skip("a PyTorch built without CUDA slices no fake tensors of its devices")
    shape = example.layer.OLMOE
    called = []

    def noting(name: str) -> Any:
        def call(*arrays: Any, **more: Any) -> Any:
            called.append(name)
            return vendored[name](*arrays, **more)

        return call

    kernels = {name: noting(name) for name in vendored}
    with FakeTensorMode():

        def empty(*extents: int) -> Any:
            return torch.empty(extents, dtype=torch.bfloat16, device="cuda")

        weights = {
            "router": empty(shape.experts, shape.hidden),
            "gate_up": empty(shape.experts, 2 * shape.inner, shape.hidden),
            "down": empty(shape.experts, shape.hidden, shape.inner),
        }
        x = empty(tokens, shape.hidden)
        layers = example.benchmark.layers(weights, kernels, example.steps.EAGER)
        for name, experts in layers.items():
            out = example.layer.layer(x, weights["router"], shape.chosen, experts)
            assert (out.shape, out.dtype) == (x.shape, x.dtype), name
    few = "_few" if tokens == 64 else ""
    assert called == [f"{one}{few}" for one in ("gate_up", "down", "gate_up_fp8", "down_fp8")]


def test_the_kernels_for_few_rows_are_those_of_their_tiles(example: Any) -> None:
    import torch

    offsets = torch.zeros(9, dtype=torch.int32)
    for rows, many in ((8 * 32, False), (8 * 32 + 1, True)):
        routes = example.layer.Routes(torch.zeros(rows), offsets, torch.zeros(rows, 1))
        assert routes.has_many_rows is many
