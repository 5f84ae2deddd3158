from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from fa4gen.bench.gemm_peers import CublasPeer, GemmOperands, InPlacePeer, find_gemm_peers
from fa4gen.bench.peers import LeftOutError
from fa4gen.designs.common.gemm_scales import OperandScales
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
    functional.pad = lambda x, by: tensor(np.pad(x, [(0, 0), by]))  # type: ignore[attr-defined]
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


BY_ROW, BY_BLOCK = (
    OperandScales("a", "1x128", "fp32", 1, 128),
    OperandScales("b", "128x128", "fp32", 128, 128),
)
BY_COLUMN = OperandScales("b", "1x128", "fp32", 1, 128)
FP8 = {"dtype": "fp8_e4m3", "out_dtype": "bf16"}


def scaled_operands(plan) -> GemmOperands:
    """A (6, 300), B (300, 5) and scales as our kernel takes them, row by row."""
    a, b = (tensor(RNG.standard_normal(shape, np.float32)) for shape in ((6, 300), (300, 5)))
    extents = [row.extents(6, 5, 300) for row in plan.scales]
    of_a, of_b = (
        tensor(RNG.uniform(0.5, 2, [given[axis] for axis in row.block_axes[1:]]).astype("f4"))
        for row, given in zip(plan.scales, extents, strict=True)
    )
    row = None if plan.residual == "none" else tensor(C["row"])
    return GemmOperands(a, b, row, tensor(np.zeros((6, 5), "f4")), 1.0, 1.0, of_a, of_b)


@pytest.fixture
def scaled_mm(torch, monkeypatch) -> list[dict]:
    """torch.nn.functional.scaled_mm in NumPy, with cuBLAS's demands on scales; its calls."""
    functional, calls = sys.modules["torch.nn.functional"], []

    def multiply(a, b, of_a, type_a, of_b, type_b, *, bias, output_dtype):
        calls.append({"types": (type_a, type_b), "output_dtype": output_dtype})
        assert of_a.strides == (4, 4 * len(a)), "columns of A's scales are contiguous"
        assert of_a.shape == (len(a), 3)
        if type_b == "lines":
            assert (of_b.shape, of_b.strides) == ((5, 3), (4, 4 * 5))
            each = of_b.T
        else:
            assert (of_b.shape, of_b.strides) == ((4, 1), (4, 16)), "blocks of k, padded to 4"
            each = of_b[:3].repeat(5, 1)
        out = a * of_a.repeat(128, 1)[:, :300] @ (b * each.repeat(128, 0)[:300])
        return out if bias is None else out + bias

    functional.scaled_mm = multiply  # type: ignore[attr-defined]
    functional.ScalingType = SimpleNamespace(  # type: ignore[attr-defined]
        BlockWise1x128="lines", BlockWise128x128="blocks"
    )
    return calls


@pytest.mark.parametrize("residual", ["none", "row"])
@pytest.mark.parametrize("of_b", [BY_BLOCK, BY_COLUMN])
def test_scales_of_blocks(scaled_mm, of_b, residual) -> None:
    plan = make_plan(**FP8, scales=(BY_ROW, of_b), residual=residual)
    given = scaled_operands(plan)
    out = CublasPeer().prepare(plan, given)()
    each = given.scale_b if of_b is BY_COLUMN else given.scale_b.repeat(5, 1)
    left = given.a * given.scale_a.repeat(128, 1)[:, :300]
    expected = left @ (given.b * each.repeat(128, 0)[:300])
    expected = expected + (0 if residual == "none" else C["row"])
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4)
    types = "lines", "lines" if of_b is BY_COLUMN else "blocks"
    assert scaled_mm == [{"types": types, "output_dtype": "bfloat16"}]
    assert not InPlacePeer().suits(make_plan(**FP8, scales=(BY_ROW, of_b), residual="matrix"))


def test_scales_of_blocks_that_cublas_is_not_timed_with(scaled_mm) -> None:
    blocks = (BY_ROW, BY_BLOCK)
    plan = make_plan(**FP8, scales=blocks)
    given = scaled_operands(plan)
    for changed, found, words in (
        (
            {"scales": tuple(OperandScales(of, "mxfp8", "ue8m0", 1, 32) for of in "ab")},
            given,
            "mxfp8",
        ),
        ({"scales": blocks, "residual": "matrix"}, given, "adds no matrix"),
        ({"scales": blocks}, replace(given, alpha=2.0), "has no alpha"),
        ({"scales": blocks}, replace(given, a=given.a[None]), "no batch"),
    ):
        with pytest.raises(LeftOutError, match=words):
            CublasPeer().prepare(make_plan(**FP8, **changed), found)
    del sys.modules["torch.nn.functional"].scaled_mm  # type: ignore[attr-defined]
    with pytest.raises(LeftOutError, match=r"no torch\.nn\.functional\.scaled_mm"):
        CublasPeer().prepare(plan, given)
    assert scaled_mm == []
