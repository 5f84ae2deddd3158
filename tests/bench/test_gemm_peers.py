from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from fa4gen.bench.gemm_peers import CublasPeer, GemmOperands, InPlacePeer, find_gemm_peers
from fa4gen.bench.peers import LeftOutError
from tests.bench.fakes import FakeTorch, make_plan, tensor

RNG = np.random.default_rng(5)
A, B = RNG.standard_normal((6, 8)), RNG.standard_normal((8, 5))
C = {
    "none": None,
    "matrix": RNG.standard_normal((6, 5)),
    "row": RNG.standard_normal(5),
    "column": RNG.standard_normal(6),
}


@pytest.fixture
def torch(monkeypatch) -> FakeTorch:
    fake = FakeTorch()
    functional = ModuleType("torch.nn.functional")
    functional.gelu = lambda x: x  # type: ignore[attr-defined]
    functional.silu = lambda x, inplace: x / (1 + np.exp(-x))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch.nn", ModuleType("torch.nn"))
    monkeypatch.setitem(sys.modules, "torch.nn.functional", functional)
    return fake


def operands(residual: str, beta: float = 1.0) -> GemmOperands:
    c = C[residual]
    given = None if c is None else tensor(c.copy())
    out = tensor(np.full((6, 5), np.nan, np.float32))
    return GemmOperands(tensor(A), tensor(B), given, out, beta=beta)


def prepared(peer, plan, beta: float):
    return peer.prepare(plan, operands(plan.residual, beta))


def test_without_torch_there_are_no_peers_and_it_is_said(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    peers = find_gemm_peers()
    assert peers.found == ()
    assert "cannot be imported" in peers.notes[0]


@pytest.mark.parametrize(
    ("residual", "beta", "function"),
    [
        ("none", 0.0, "mm"),
        ("matrix", 0.5, "addmm"),
        ("row", 1.0, "addmm"),
        ("column", 1.0, "addmm"),
    ],
)
def test_cublas_computes_what_ours_does(torch, residual, beta, function) -> None:
    out = prepared(CublasPeer(), make_plan(residual=residual), beta)()
    c = C[residual] if residual != "column" else C[residual][:, None]
    np.testing.assert_allclose(out, A @ B + (0 if c is None else beta * c), rtol=1e-4, atol=1e-5)
    options = {} if residual == "none" else {"alpha": 1.0, "beta": beta}
    assert torch.calls == [(function, options)]


@pytest.mark.parametrize(
    ("residual", "beta", "function"),
    [
        ("none", 0.0, "bmm"),
        ("matrix", 0.5, "baddbmm"),
        ("row", 1.0, "baddbmm"),
        ("column", 1.0, "baddbmm"),
    ],
)
def test_cublas_computes_a_batch(torch, residual, beta, function) -> None:
    one = operands(residual)
    a, b = (tensor(np.stack([array, -2 * array])) for array in (one.a, one.b))
    out = tensor(np.full((2, 6, 5), np.nan, np.float32))
    c = one.c if residual != "matrix" else tensor(np.stack([one.c, 3 * one.c]))
    plan = make_plan(residual=residual)
    CublasPeer().prepare(plan, GemmOperands(a, b, c, out, beta=beta))()
    added = c if residual != "column" else c[:, None]
    expected = a @ b + (0 if c is None else beta * added)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    assert [name for name, _ in torch.calls] == [function]
    fp8 = make_plan(dtype="fp8_e4m3", out_dtype="bf16")
    with pytest.raises(LeftOutError, match="no batch"):
        CublasPeer().prepare(fp8, GemmOperands(a, b, None, out))


@pytest.mark.parametrize("residual", ["none", "matrix"])
def test_a_wider_output_is_asked_for(torch, residual) -> None:
    prepared(CublasPeer(), make_plan(residual=residual, out_dtype="fp32"), 0.5)()
    assert torch.calls[0][1]["out_dtype"] == "float32"


def test_in_place_is_a_peer_of_a_matrix_residual_and_leaves_our_c_alone(torch) -> None:
    peer, plan = InPlacePeer(), make_plan(residual="matrix")
    assert peer.suits(plan)
    assert not peer.suits(make_plan(residual="row"))
    assert not peer.suits(make_plan(residual="matrix", dtype="fp8_e4m3"))
    given = operands("matrix", 0.5)
    run = peer.prepare(plan, given)
    np.testing.assert_allclose(run(), A @ B + 0.5 * C["matrix"], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(given.c, C["matrix"])
    assert np.isnan(given.out).all()


@pytest.mark.parametrize(
    ("text", "label", "compute"),
    [
        ("relu(x)", "cublas + relu", lambda x: np.maximum(x, 0)),
        ("max( 0, x )", "cublas + relu", lambda x: np.maximum(x, 0)),
        ("x * sigmoid(x)", "cublas + silu", lambda x: x / (1 + np.exp(-x))),
        ("tanh(x)", "cublas + tanh", np.tanh),
        ("sigmoid(x)", "cublas + sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_an_activation_is_a_second_kernel_and_is_named(torch, text, label, compute) -> None:
    plan = make_plan(residual="row", activation=text)
    assert CublasPeer().label(plan) == label
    out = prepared(CublasPeer(), plan, 1.0)()
    np.testing.assert_allclose(out, compute(A @ B + C["row"]), rtol=1e-4, atol=1e-5)


def test_an_activation_that_torch_has_no_kernel_for(torch) -> None:
    plan = make_plan(activation="x * x")
    assert CublasPeer().label(plan) == "cublas + activation"
    with pytest.raises(LeftOutError, match=r"no single kernel for x \* x"):
        prepared(CublasPeer(), plan, 0.0)


def test_fp8(torch) -> None:
    fp8 = {"dtype": "fp8_e4m3", "out_dtype": "bf16"}
    out = prepared(CublasPeer(), make_plan(**fp8, residual="row"), 1.0)()
    np.testing.assert_allclose(out, A @ B + C["row"], rtol=1e-4, atol=1e-5)
    assert torch.calls == [("_scaled_mm", {"out_dtype": "bfloat16", "use_fast_accum": True})]
    with pytest.raises(LeftOutError, match="adds no matrix"):
        prepared(CublasPeer(), make_plan(**fp8, residual="matrix"), 0.5)
    with pytest.raises(LeftOutError, match="adds no column"):
        prepared(CublasPeer(), make_plan(**fp8, residual="column"), 1.0)
    with pytest.raises(LeftOutError, match="a row as it is"):
        prepared(CublasPeer(), make_plan(**fp8, residual="row"), 0.5)
    with pytest.raises(LeftOutError, match="k-major"):
        prepared(CublasPeer(), make_plan(**fp8, b_major="n"), 0.0)
