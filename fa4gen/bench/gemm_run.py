"""Times a matrix product against its peers, in turn in one run, on the same random data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fa4gen.bench.gemm_peers import GemmArrays
from fa4gen.bench.gemm_workload import ALPHA, BETAS
from fa4gen.bench.peers import LeftOutError
from fa4gen.bench.residual import most_alike
from fa4gen.bench.results import ConfigResult, GemmSizeResult
from fa4gen.bench.run import OURS, as_float32, as_torch, distance, make_series, own_facts
from fa4gen.errors import Fa4genError, Problem
from fa4gen.runtime.arguments import BITS_ACCEPTED
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.runtime.timing import time_in_turn
from fa4gen.verify.rounding import POISON_BITS, bits_dtype, numpy_dtype, to_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fa4gen.bench.gemm_peers import GemmPeer
    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.bench.run import BenchOptions
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.toolchain.model import CompiledKernel

WITHOUT = "fa4gen without the residual"
WRONG = 1e-2
"""An output with a larger relative Frobenius distance from float64 or from a peer is wrong.

Rounding to bf16 alone is 0.0017."""
CHECKED_ROWS = 64
"""The number of first and of last rows that are compared with float64."""
POOL = (1 << 24) + 43
"""Random numbers that are made; larger arrays repeat them. It divides no extent, so that rows and
tiles still differ."""


Reference = tuple[tuple[Any, Any], ...]
"""Exact rows of an output, each with the index that takes them from it."""


@dataclass(frozen=True)
class ArraySet:
    """Bit patterns on the GPU: A (m, k), B (k, n), C or None, D (m, n).

    All but a C with a single axis may have a batch in front, which is the same for all.
    """

    a: Any
    b: Any
    c: Any
    out: Any


@dataclass(frozen=True)
class Timed:
    """One of our kernels and its plan."""

    plan: GemmPlan
    kernel: Any


class GemmBench:
    """Times kernels one after the other; random data is made once for each element type."""

    def __init__(
        self,
        options: BenchOptions,
        peers: Sequence[GemmPeer],
        others: Sequence[tuple[GemmPlan, CompiledKernel]] = (),
    ) -> None:
        """Touches no GPU yet.

        Of ``others``, the kernels of the run, the one that computes the same without the residual
        is timed in the rounds of each kernel that has one.
        """
        self._options = options
        self._peers = tuple(peers)
        self._others = tuple(others)
        self._pools: dict[tuple[str, float], Any] = {}

    def time_kernel(
        self, plan: GemmPlan, compiled: CompiledKernel, config: str = ""
    ) -> ConfigResult:
        """Time one kernel at every size.

        Raises Fa4genError for a kernel with a wrong output: its speed would mean nothing.
        """
        from fa4gen.runtime.gemm import GemmKernel

        device = require_device(plan.arch)
        load_cupy().cuda.Device(device.ordinal).use()
        kernel = Timed(plan, GemmKernel(plan, compiled.cubin))
        facts = gemm_facts(plan, compiled)
        place = most_alike(facts, (gemm_facts(*other) for other in self._others))
        without = None
        if place is not None:
            other, its = self._others[place]
            without = Timed(other, GemmKernel(other, its.cubin))
        sizes = tuple(
            self._time_size(kernel, without, workload, workload.count_sets(plan, device.l2_bytes))
            for workload in self._options.sizes
        )
        return ConfigResult(config, plan.name, facts, sizes, family=plan.kernel)

    def prepare(
        self, kernels: Sequence[tuple[GemmPlan, CompiledKernel]], workload: GemmWorkload
    ) -> tuple[dict[str, Callable[[], Any]], dict[str, Callable[[], Any]], dict[str, str]]:
        """Return calls of kernels of one function, by name, and of their peers.

        All work on the same random inputs. The third result has the kernels and peers that were
        left out, with the reason, such as a wrong output.
        """
        from fa4gen.runtime.gemm import GemmKernel

        plan = kernels[0][0]
        device = require_device(plan.arch)
        load_cupy().cuda.Device(device.ordinal).use()
        count = workload.count_sets(plan, device.l2_bytes)
        sets = [self._make_set(plan, workload, number) for number in range(count)]
        exact = [reference(plan, workload, one, BETAS[plan.residual]) for one in sets]
        ours: dict[str, Callable[[], Any]] = {}
        left_out: dict[str, str] = {}
        for its, compiled in kernels:
            own = [replace(one, out=_poisoned(one.out.shape, its)) for one in sets]
            try:
                launches, _ = _prepare_ours(
                    Timed(its, GemmKernel(its, compiled.cubin)), workload, own, exact
                )
            except Fa4genError as reason:
                left_out[its.name] = reason.problems[0].message
                continue
            ours[its.name] = in_turn(launches)
            sets = own  # peers are compared with the output of one of ours
        peers: dict[str, Callable[[], Any]] = {}
        for peer in self._peers if ours else ():
            if peer.suits(plan):
                name = peer.label(plan)
                try:
                    calls, far = _prepare_peer(peer, plan, sets, BETAS[plan.residual])
                except (LeftOutError, RuntimeError, TypeError, ValueError) as reason:
                    left_out[name] = (str(reason).strip().splitlines() or [repr(reason)])[0][:200]
                    continue
                if far <= WRONG:
                    peers[name] = in_turn(calls)
                else:
                    left_out[name] = _too_far(far, "ours")
        return ours, peers, left_out

    def _time_size(
        self, kernel: Timed, without: Timed | None, workload: GemmWorkload, count: int
    ) -> GemmSizeResult:
        """Time one size on ``count`` sets of arrays, which all kernels use in turn."""
        plan, beta = kernel.plan, BETAS[kernel.plan.residual]
        sets = [self._make_set(plan, workload, number) for number in range(count)]
        launches, error = _prepare_ours(kernel, workload, sets)
        runs: dict[str, Callable[[], Any]] = {OURS: in_turn(launches)}
        left_out: dict[str, str] = {}
        distances: dict[str, float] = {}
        if without is not None:
            bare = [
                replace(arrays, c=None, out=_poisoned(arrays.out.shape, plan)) for arrays in sets
            ]
            try:
                runs[WITHOUT] = in_turn(_prepare_ours(without, workload, bare)[0])
            except Fa4genError as reason:
                left_out[without.plan.name] = reason.problems[0].message
        for peer in self._peers:
            if not peer.suits(plan):
                continue
            name = peer.label(plan)
            try:
                calls, distances[name] = _prepare_peer(peer, plan, sets, beta)
            except (LeftOutError, RuntimeError, TypeError, ValueError) as reason:
                left_out[name] = (str(reason).strip().splitlines() or [repr(reason)])[0][:200]
                continue
            if not distances[name] <= WRONG:
                raise _wrong(plan, workload, _too_far(distances[name], name))
            runs[name] = in_turn(calls)
        timings = time_in_turn(runs, self._options.protocol, rounds=self._options.rounds)
        series = {name: make_series(timings[name]) for name in runs}
        bare_series = series.pop(WITHOUT, None)
        named = None
        if without is not None and bare_series is not None:
            named = without.plan.name, bare_series
        return GemmSizeResult(
            size=workload,
            without=named,
            flop=workload.flop,
            ours=series.pop(OURS),
            peers=series,
            left_out=left_out,
            error=error,
            distances=distances,
        )

    def _make_set(self, plan: GemmPlan, workload: GemmWorkload, number: int) -> ArraySet:
        """Make random inputs and an output, each in the order of its elements in memory."""
        m, n, k, lead = workload.m, workload.n, workload.k, workload.lead
        shift = 3 * number
        shape = (*lead, m, k) if plan.a_major == "k" else (*lead, k, m)
        a = self._fill(shape, plan.dtype, 1.0, shift)
        shape = (*lead, n, k) if plan.b_major == "k" else (*lead, k, n)
        b = self._fill(shape, plan.dtype, 1.0, shift + 1)
        c = None
        if plan.c.exists:
            shape = (*(lead if plan.c.is_matrix else ()), *plan.c.extents(m, n))
            c = self._fill(shape, plan.out_dtype, workload.residual_scale, shift + 2)
        return ArraySet(
            a if plan.a_major == "k" else a.swapaxes(-1, -2),
            b.swapaxes(-1, -2) if plan.b_major == "k" else b,
            c,
            _poisoned((*lead, m, n), plan),
        )

    def _fill(self, shape: tuple[int, ...], dtype: str, scale: float, shift: int) -> Any:
        """Return an array of N(0, scale^2) numbers; another ``shift``, other numbers."""
        pool = self._pool(dtype, scale)
        array = load_cupy().empty(math.prod(shape), pool.dtype)
        at, place = 0, shift * 1000003 % pool.size
        while at < array.size:
            count = min(pool.size - place, array.size - at)
            array[at : at + count] = pool[place : place + count]
            at, place = at + count, 0
        return array.reshape(shape)

    def _pool(self, dtype: str, scale: float) -> Any:
        import numpy as np

        if (dtype, scale) not in self._pools:
            values = np.random.default_rng(self._options.seed).standard_normal(POOL, np.float32)
            bits = to_bits(values * np.float32(scale), dtype)
            self._pools[dtype, scale] = load_cupy().asarray(bits)
        return self._pools[dtype, scale]


def _poisoned(shape: tuple[int, ...], plan: GemmPlan) -> Any:
    """Return an output full of NaN: reused memory may hold the right result."""
    bits = POISON_BITS[plan.out_dtype]
    return load_cupy().full(shape, bits, bits_dtype(plan.out_dtype))


def _prepare_ours(
    kernel: Timed,
    workload: GemmWorkload,
    sets: Sequence[ArraySet],
    exact: Sequence[Reference] | None = None,
) -> tuple[list[Callable[[], Any]], float]:
    """Return our launches for each set and the largest error; Fa4genError for a wrong output.

    ``exact`` are the sets' references, where they are known.
    """
    plan, beta = kernel.plan, BETAS[kernel.plan.residual]
    launches = []
    errors = []
    known = exact or [reference(plan, workload, arrays, beta) for arrays in sets]
    for arrays, its_exact in zip(sets, known, strict=True):
        a, b, c, out = (
            None if bits is None else bits.view(_given_dtype(dtype))
            for bits, dtype in _with_dtypes(plan, arrays)
        )
        launches.append(kernel.kernel.prepare(a, b, c, out=out, alpha=ALPHA, beta=beta))
        launches[-1]()
        errors.append(check(plan, workload, arrays, its_exact))
    return launches, max(errors)


def _prepare_peer(
    peer: GemmPeer, plan: GemmPlan, sets: Sequence[ArraySet], beta: float
) -> tuple[list[Callable[[], Any]], float]:
    """Return the peer's calls for each set and how far their outputs are from ours, at most."""
    calls = []
    distances = []
    for arrays in sets:
        a, b, c, ours = (
            None if bits is None else as_torch(bits, dtype)
            for bits, dtype in _with_dtypes(plan, arrays)
        )
        theirs = as_torch(load_cupy().empty_like(arrays.out), plan.out_dtype)
        calls.append(peer.prepare(plan, GemmArrays(a, b, c, theirs), alpha=ALPHA, beta=beta))
        distances.append(distance(calls[-1](), ours))
    return calls, max(distances, key=lambda far: math.inf if math.isnan(far) else far)


def reference(plan: GemmPlan, workload: GemmWorkload, arrays: ArraySet, beta: float) -> Reference:
    """Return the exact first and last rows of the output, by their slices, in float64."""
    from fa4gen.epilogues.activation import parse_activation

    cupy = load_cupy()
    factor = as_float32(arrays.b, plan.dtype, cupy).astype(cupy.float64)
    found = []
    for first in sorted({0, max(0, workload.m - CHECKED_ROWS)}):
        rows = (..., slice(first, first + CHECKED_ROWS), slice(None))
        left = as_float32(arrays.a[rows], plan.dtype, cupy).astype(cupy.float64)
        exact = ALPHA * (left @ factor)
        if arrays.c is not None:
            part = plan.c.beside(arrays.c, rows[1])
            exact += beta * as_float32(part, plan.out_dtype, cupy)
        if plan.activation is not None:
            exact = parse_activation(plan.activation).evaluate(exact, cupy)
        found.append((rows, exact))
    return tuple(found)


def check(plan: GemmPlan, workload: GemmWorkload, arrays: ArraySet, exact: Reference) -> float:
    """Return the relative error of the first and the last rows, ``exact`` in float64.

    Raises Fa4genError for a wrong output, and for one that is not written everywhere.
    """
    cupy = load_cupy()
    unwritten = int((arrays.out == POISON_BITS[plan.out_dtype]).sum())
    if unwritten:
        raise _wrong(plan, workload, f"{unwritten} elements of its output are not written")
    squares = errors = 0.0
    for rows, expected in exact:
        got = as_float32(arrays.out[rows], plan.out_dtype, cupy)
        errors += float(((got - expected) ** 2).sum())
        squares += float((expected**2).sum())
    error = math.sqrt(errors / squares)
    if not error <= WRONG:
        raise _wrong(plan, workload, _too_far(error, "float64"))
    return error


def _too_far(error: float, reference: str) -> str:
    return f"its relative distance from {reference} is {error:.3g}, and {WRONG:g} is allowed"


def _wrong(plan: GemmPlan, workload: GemmWorkload, how: str) -> Fa4genError:
    size = "x".join(map(str, (*workload.lead, workload.m, workload.n, workload.k)))
    return Fa4genError(
        Problem(
            f"{plan.name} is wrong at {size}: {how}",
            f"fa4gen verify {plan.name} shows where.",
        )
    )


def in_turn(calls: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    """Return a function that runs the next of ``calls`` each time."""
    if len(calls) == 1:
        return calls[0]
    number = -1

    def call_next() -> Any:
        nonlocal number
        number = (number + 1) % len(calls)
        return calls[number]()

    return call_next


def gemm_facts(plan: GemmPlan, compiled: CompiledKernel) -> dict[str, Any]:
    """Return the facts about the kernel for readers of the results."""
    facts: dict[str, Any] = {"kernel": plan.kernel}
    names = ["arch", "dtype", "out_dtype", "a_major", "b_major", "residual", "activation"]
    names += ["BM", "BN", "BK", "num_stages", "num_epi_stages", "cta_group", "scheduler"]
    names += ["num_consumer_warpgroups", "ping_pong", "num_accum_stages", "num_out_stages"]
    names += ["swap_operands", "split_k", "evict_first"]
    facts |= own_facts(plan, names)
    return facts | {"compiler": f"{compiled.compiler} {compiled.compiler_version}"}


def _with_dtypes(plan: GemmPlan, arrays: ArraySet) -> tuple[tuple[Any, str], ...]:
    inputs, outputs = plan.dtype, plan.out_dtype
    return (arrays.a, inputs), (arrays.b, inputs), (arrays.c, outputs), (arrays.out, outputs)


def _given_dtype(dtype: str) -> Any:
    return BITS_ACCEPTED.get(dtype) or numpy_dtype(dtype)
