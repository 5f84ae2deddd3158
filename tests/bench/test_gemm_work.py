"""A matrix product in bench, with NumPy instead of CuPy and of the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from fa4gen.bench.gemm_workload import parse_sizes
from fa4gen.bench.peers import LeftOutError, Peer
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.bench.work import in_turn
from fa4gen.errors import Fa4genError
from tests.bench.fakes import COMPILED, POOL, make_plan, put_on_numpy

if TYPE_CHECKING:
    from fa4gen.bench.gemm_peers import GemmOperands


def product(a: Any, b: Any, c: Any, alpha: float, beta: float) -> Any:
    result = alpha * (a.astype(np.float64) @ b.astype(np.float64))
    return result if c is None else result + beta * c.astype(np.float64)


def all_rows_of(plan: Any, c: Any) -> Any:
    return None if c is None else plan.c.rows_of(c, slice(None))


class FakeKernel:
    """Computes with NumPy; ``forgets`` is what a wrong kernel leaves out."""

    forgets = ""
    prepared: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, plan: Any, cubin: bytes) -> None:
        self._plan = plan

    def prepare(self, a, b, c=None, *, out, alpha, beta):
        self.prepared.append({"a": a, "b": b, "c": c, "out": out, "beta": beta})

        def launch() -> None:
            added = None if self.forgets == "c" else all_rows_of(self._plan, c)
            result = product(a, b, added, alpha, beta)
            if self._plan.activation is not None:
                result = np.maximum(result, 0)
            if self.forgets == "the middle":
                result[100:110] = 0
            if self.forgets == "to write":
                out[:100], out[110:] = result[:100], result[110:]
                return
            out[:] = result

        return launch


class FakePeer(Peer):
    def __init__(self, name: str, *, wrong: bool = False, suited: bool = True) -> None:
        self.name, self.wrong, self.suited = name, wrong, suited

    def suits(self, plan: Any) -> bool:
        return self.suited

    def prepare(self, plan: Any, operands: GemmOperands) -> Any:
        if self.name == "absent":
            raise LeftOutError("it is absent")
        one = operands

        def run() -> Any:
            one.out[:] = product(one.a, one.b, all_rows_of(plan, one.c), one.alpha, one.beta)
            one.out[:] += self.wrong
            return np.maximum(one.out, 0) if plan.activation is not None else one.out

        return run


@pytest.fixture
def bench(monkeypatch):
    """Make a bench of sizes and peers; ``l2`` are the bytes of the device's L2."""
    monkeypatch.setattr("fa4gen.runtime.gemm.GemmKernel", FakeKernel)
    monkeypatch.setattr(FakeKernel, "forgets", "")
    monkeypatch.setattr(FakeKernel, "prepared", [])

    def make(sizes: str, *peers: FakePeer, l2: int = 0, others: Any = ()) -> Bench:
        put_on_numpy(monkeypatch, l2)
        options = BenchOptions(parse_sizes(sizes), rounds=2, family="gemm")
        return Bench(options, peers, [(other, COMPILED) for other in others])

    return make


@pytest.mark.parametrize(
    ("residual", "beta"), [("none", 0.0), ("matrix", 0.5), ("row", 1.0), ("column", 1.0)]
)
@pytest.mark.parametrize("majors", [("k", "k"), ("m", "n")])
def test_a_kernel_is_timed_beside_its_peers(bench, residual, beta, majors) -> None:
    plan = make_plan(residual=residual, a_major=majors[0], b_major=majors[1], out_dtype="fp32")
    peers = [FakePeer("cublas"), FakePeer("absent"), FakePeer("other", suited=False)]
    result = bench("300,200x64x32", *peers).time_kernel(plan, COMPILED, "k.yaml")
    assert (result.family, result.name, result.config) == ("gemm", "gemm_test", "k.yaml")
    assert [size.size.word for size in result.sizes] == ["300", "200x64x32"]
    for size in result.sizes:
        assert size.ours.medians_ms == (1.0, 1.0)
        assert size.peers["cublas"].medians_ms == (2.0, 2.0)
        assert size.left_out == {"absent": "it is absent"}
        assert size.ratio("cublas") == 2.0
        assert size.error < 1e-6
        assert size.distances["cublas"] < 1e-6
    assert result.sizes[1].flop == 2 * 200 * 64 * 32
    assert result.facts["residual"] == residual
    given = FakeKernel.prepared[1]
    assert given["beta"] == beta
    assert given["a"].shape == (200, 32)
    assert given["b"].shape == (32, 64)
    assert given["a"].strides.index(2) == (1 if majors[0] == "k" else 0), "a's major"
    assert given["b"].strides.index(2) == (0 if majors[1] == "k" else 1), "b's major"
    shape = {"none": None, "matrix": (200, 64), "row": (64,), "column": (200,)}[residual]
    assert (given["c"] is None) == (shape is None)
    assert shape is None or given["c"].shape == shape


@pytest.mark.parametrize("residual", ["none", "matrix", "row", "column"])
@pytest.mark.parametrize("majors", [("k", "k"), ("m", "n")])
def test_a_batch_is_timed(bench, residual, majors) -> None:
    plan = make_plan(residual=residual, a_major=majors[0], b_major=majors[1], out_dtype="fp32")
    (size,) = bench("3x200x64x32", FakePeer("cublas")).time_kernel(plan, COMPILED).sizes
    assert size.error < 1e-6
    assert size.distances["cublas"] < 1e-6
    assert size.size.extents == {"word": "3x200x64x32", "batch": 3, "m": 200, "n": 64, "k": 32}
    assert size.size.cells == ("3 x 200", "64", "32")
    given = FakeKernel.prepared[0]
    assert (given["a"].shape, given["b"].shape) == ((3, 200, 32), (3, 32, 64))
    shape = {"none": None, "matrix": (3, 200, 64), "row": (64,), "column": (200,)}[residual]
    assert (given["c"] is None) == (shape is None)
    assert shape is None or given["c"].shape == shape


def test_the_data_are_random_and_of_the_promised_scale(bench) -> None:
    bench("256x256x64").time_kernel(make_plan(residual="matrix"), COMPILED)
    given = FakeKernel.prepared[0]
    for name, deviation in (("a", 1.0), ("b", 1.0), ("c", 8.0)):
        values = given[name].astype(np.float64)
        assert values.std() == pytest.approx(deviation, rel=0.05)
        assert abs(values.mean()) < 0.05 * deviation
    flat = given["c"].ravel()
    assert (flat[:POOL] == flat[POOL : 2 * POOL]).all(), "the pool repeats"
    assert len(np.unique(given["a"], axis=0)) == 256, "and all rows differ"


def test_what_the_residual_costs_is_measured_in_the_same_rounds(bench) -> None:
    plain, plan = make_plan(name="plain"), make_plan(residual="matrix")
    others = [make_plan(name="wide", BN=512), plan, plain]
    timer = bench("64,128", FakePeer("cublas"), others=others)
    result = timer.time_kernel(plan, COMPILED)
    for size in result.sizes:
        assert size.without is not None
        name, series = size.without
        assert (name, series.medians_ms) == ("plain", (3.0, 3.0))
        assert list(size.peers) == ["cublas"]
    with_c, without_c = FakeKernel.prepared[:2]
    assert with_c["c"] is not None
    assert without_c["c"] is None
    assert without_c["a"].base is with_c["a"].base, "the same data"
    assert not np.shares_memory(without_c["out"], with_c["out"])
    (alone, _) = timer.time_kernel(plain, COMPILED).sizes
    assert alone.without is None


def test_a_wrong_kernel_is_not_what_the_residual_is_compared_with(bench, monkeypatch) -> None:
    right = FakeKernel.prepare

    def prepare(self, a, b, c=None, *, out, alpha, beta):
        alpha = alpha if c is not None else 0.5
        return right(self, a, b, c, out=out, alpha=alpha, beta=beta)

    monkeypatch.setattr(FakeKernel, "prepare", prepare)
    timer = bench("64", others=[make_plan(name="wrong")])
    (size,) = timer.time_kernel(make_plan(residual="matrix"), COMPILED).sizes
    assert size.without is None
    assert "wrong is wrong at 64x64x64" in size.left_out["wrong"]


def test_several_sets_take_turns_where_one_fits_in_l2(bench) -> None:
    plan = make_plan()
    bytes_moved = 2 * 3 * 64 * 64
    bench("64", l2=2 * bytes_moved).time_kernel(plan, COMPILED)
    assert len(FakeKernel.prepared) == 3
    firsts = {float(given["a"][0, 0]) for given in FakeKernel.prepared}
    assert len(firsts) == 3, "of different numbers"


def test_calls_are_made_in_turn() -> None:
    made: list[int] = []
    run = in_turn([lambda n=n: made.append(n) for n in range(3)])
    for _ in range(7):
        run()
    assert made == [0, 1, 2, 0, 1, 2, 0]


def test_a_kernel_that_does_not_write_every_element_is_not_timed(bench, monkeypatch) -> None:
    monkeypatch.setattr(FakeKernel, "forgets", "to write")
    with pytest.raises(Fa4genError, match="2560 elements of its output are not written"):
        bench("256").time_kernel(make_plan(), COMPILED)


def test_a_kernel_that_forgets_the_residual_is_not_timed(bench, monkeypatch) -> None:
    monkeypatch.setattr(FakeKernel, "forgets", "c")
    for k in (64, 4096):
        with pytest.raises(Fa4genError, match=r"gemm_test is wrong at .* from float64"):
            bench(f"64x64x{k}").time_kernel(make_plan(residual="matrix"), COMPILED)


def test_rows_that_float64_does_not_see_are_compared_with_a_peer(bench, monkeypatch) -> None:
    monkeypatch.setattr(FakeKernel, "forgets", "the middle")
    with pytest.raises(Fa4genError, match=r"wrong at 200x200x200: .* from cublas"):
        bench("200", FakePeer("cublas")).time_kernel(make_plan(), COMPILED)


def test_the_activation_is_part_of_the_check(bench) -> None:
    plan = make_plan(activation="relu(x)", residual="row")
    (size,) = bench("64", FakePeer("cublas + relu")).time_kernel(plan, COMPILED).sizes
    assert size.error < 1e-3
    assert list(size.peers) == ["cublas + relu"]
    with pytest.raises(Fa4genError, match="from float64"):
        bench("64").time_kernel(make_plan(activation="relu(x) + 1"), COMPILED)


def test_kernels_made_ready_to_be_timed_by_others(bench, monkeypatch):
    wrong, right = make_plan(name="wrong"), make_plan(name="right")
    made = FakeKernel.__init__

    def make(self: Any, plan: Any, cubin: bytes) -> None:
        made(self, plan, cubin)
        self.forgets = "to write" if plan.name == "wrong" else ""

    monkeypatch.setattr(FakeKernel, "__init__", make)
    timer = bench("200x48x64", FakePeer("cublas"), FakePeer("absent"), FakePeer("bad", wrong=True))
    (workload,) = parse_sizes("200x48x64")
    ours, peers, left_out = timer.prepare([(wrong, COMPILED), (right, COMPILED)], workload)
    assert (list(ours), list(peers)) == (["right"], ["cublas"])
    assert "480 elements of its output are not written" in left_out["wrong"]
    assert left_out["absent"] == "it is absent"
    assert "its relative distance from ours" in left_out["bad"]
    first, second = FakeKernel.prepared
    assert np.shares_memory(first["a"], second["a"])
    assert not np.shares_memory(first["out"], second["out"])
    for call in (*ours.values(), *peers.values()):
        call()
    ours, peers, left_out = timer.prepare([(wrong, COMPILED)], workload)
    assert (ours, peers) == ({}, {})
