"""Times a kernel against its peers, in turn in one run, on the same random data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.bench.layout import cache_scales, lay_out
from fa4gen.bench.peers import LeftOutError, Sequences
from fa4gen.bench.read_floor import ReadFloor, fastest_launch
from fa4gen.bench.results import FLOOR, ConfigResult, Series, SizeResult
from fa4gen.bench.workload import (
    Workload,
    count_flop,
    count_read_bytes,
    default_sizes,
    make_workload,
)
from fa4gen.errors import Fa4genError, Problem
from fa4gen.runtime.arguments import BITS_ACCEPTED, DTYPE_NAMES
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.runtime.timing import Timing, TimingProtocol, time_in_turn
from fa4gen.verify.rounding import (
    POISON_BITS,
    UNIT_ROUNDOFF,
    bits_dtype,
    from_bits,
    numpy_dtype,
    to_bits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fa4gen.bench.batches import Batch
    from fa4gen.bench.layout import Layout
    from fa4gen.bench.peers import Peer
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.kernel_model import KernelPlan
    from fa4gen.toolchain.model import CompiledKernel

OURS = "fa4gen"
MOST_DRAWN = 1 << 26
"""Random numbers of a tensor; a larger one repeats them."""
WRONG = 2.0
"""Units of roundoff: an output with a larger relative Frobenius error is wrong. Two correct
kernels are 0.6 from the exact result, and 0.85 from each other."""


@dataclass(frozen=True)
class BenchOptions:
    """The kernels and sizes to time, and the way of timing."""

    sizes: tuple[Any, ...]
    """The sizes by the family's parse_sizes: numbers of rows and batches, or GemmWorkloads. None
    for attention: chosen by kernel."""
    rounds: int = 3
    seed: int = 0
    protocol: TimingProtocol = field(default_factory=TimingProtocol)
    family: str = field(kw_only=True)


class Bench:
    """Times kernels one after the other; random data is made once for each element type."""

    def __init__(self, options: BenchOptions, peers: Sequence[Peer | ReadFloor]) -> None:
        """Touches no GPU yet."""
        self._options = options
        self._peers = tuple(peer for peer in peers if not isinstance(peer, ReadFloor))
        self._floors = tuple(peer for peer in peers if isinstance(peer, ReadFloor))
        self._data: dict[str, tuple[Any, Any, Any]] = {}

    def time_kernel(
        self, plan: AttentionPlan, compiled: CompiledKernel, config: str = ""
    ) -> ConfigResult:
        """Time one kernel at every size.

        Raises Fa4genError for a kernel with a wrong output: its speed would mean nothing.
        """
        from fa4gen.runtime.attention import AttentionKernel

        load_cupy().cuda.Device(require_device(plan.arch).ordinal).use()
        kernel = AttentionKernel(plan, compiled.cubin)
        sizes_of_kernel = self._options.sizes or default_sizes(plan)
        workloads = [make_workload(size, plan.depth, plan.value_depth) for size in sizes_of_kernel]
        data = self._data_of(plan, max(workload.elements for workload in workloads))
        sizes = tuple(self._time_size(plan, kernel, workload, data) for workload in workloads)
        return ConfigResult(
            config, plan.name, plan_facts(plan, compiled), sizes, family=plan.kernel
        )

    def prepare(
        self, kernels: Sequence[tuple[AttentionPlan, CompiledKernel]], size: Batch
    ) -> tuple[dict[str, Callable[[], Any]], dict[str, Callable[[], Any]], dict[str, str]]:
        """Return calls of kernels of one function, by name, and of their peers.

        All work on the same random inputs, of tensors without tables of lengths or pages. The third
        result has the kernels and peers that were left out, with the reason, such as a wrong
        output.
        """
        from fa4gen.runtime.attention import AttentionKernel

        plan = kernels[0][0]
        cupy = load_cupy()
        cupy.cuda.Device(require_device(plan.arch).ordinal).use()
        workload = make_workload(size, plan.depth, plan.value_depth)
        layout = lay_out(plan, workload, self._options.seed)
        bits = self._inputs(plan, layout, self._data_of(plan, workload.elements))
        sinks = self._sinks(workload.heads) if plan.sinks else None
        more = {} if sinks is None else {"sinks": cupy.asarray(sinks)}
        exact = self._exact(plan, layout, bits, cupy, sinks)
        ours: dict[str, Callable[[], Any]] = {}
        left_out: dict[str, str] = {}
        out = None
        for its, compiled in kernels:
            its_out = _poisoned((*layout.query[:-1], plan.value_depth), plan.out_dtype)
            try:
                arrays = map(_viewed, bits, _types(plan))
                given = _viewed(its_out, plan.out_dtype)
                launch = AttentionKernel(its, compiled.cubin).prepare(*arrays, out=given, **more)
                launch()
                self._compare(its, layout, exact, its_out, cupy)
            except Fa4genError as reason:
                left_out[its.name] = reason.problems[0].message
                continue
            ours[its.name], out = launch, its_out
        peers: dict[str, Callable[[], Any]] = {}
        if out is not None and self._peers:
            peers, _ = self._prepare_peers(plan, bits, out, {}, left_out)
        return ours, peers, left_out

    def _inputs(self, plan: AttentionPlan, layout: Layout, data: tuple[Any, Any, Any]) -> list[Any]:
        """Return query, key and value, as bits."""
        shapes = (layout.query, layout.key, layout.value)
        query, key, value = (
            array[: math.prod(shape)].reshape(shape)
            for array, shape in zip(data, shapes, strict=True)
        )
        return [query, key, key[..., : plan.value_depth] if plan.values_in_keys else value]

    def _prepare_peers(
        self,
        plan: AttentionPlan,
        bits: list[Any],
        out: Any,
        given: Mapping[str, Any],
        left_out: dict[str, str],
    ) -> tuple[dict[str, Callable[[], Any]], dict[str, float]]:
        """Return the calls of peers by name, and how far their outputs are from ours.

        Adds those that cannot be timed to ``left_out``, with the reason.
        """
        runs: dict[str, Callable[[], Any]] = {}
        distances: dict[str, float] = {}
        tensors = list(map(as_torch, bits, _types(plan)))
        ours = as_torch(out, plan.out_dtype)
        for peer in self._peers:
            try:
                run = peer.prepare(plan, *tensors, **given)
                distances[peer.name] = distance(run(), ours)
            except (LeftOutError, RuntimeError, TypeError, ValueError) as reason:
                left_out[peer.name] = (str(reason).strip().splitlines() or [repr(reason)])[0][:200]
                continue
            if not distances[peer.name] <= WRONG * UNIT_ROUNDOFF[plan.dtype]:
                left_out[peer.name] = f"its output is {distances[peer.name]:.2g} from ours"
                continue
            runs[peer.name] = run
        return runs, distances

    def _data_of(self, plan: AttentionPlan, elements: int) -> tuple[Any, Any, Any]:
        """Return random numbers for query, key and value, flat, of the plan's types."""
        query, _, _ = self._random_data(plan.dtype, elements)
        _, key, value = self._random_data(plan.kv_dtype, elements)
        return query, key, value

    def _random_data(self, dtype: str, elements: int) -> tuple[Any, Any, Any]:
        """Return three flat arrays of N(0, 1) numbers on the GPU, of ``elements`` at least."""
        import numpy as np

        known = self._data.get(dtype)
        if known is None or known[0].size < elements:
            cupy = load_cupy()
            rng = np.random.default_rng(self._options.seed)
            drawn = min(elements, MOST_DRAWN)
            tensors = [
                cupy.asarray(to_bits(rng.standard_normal(drawn, dtype=np.float32), dtype))
                for _ in range(3)
            ]
            if drawn < elements:
                tensors = [cupy.tile(tensor, -(-elements // drawn)) for tensor in tensors]
            query, key, value = tensors
            known = self._data[dtype] = (query, key, value)
        return known

    def _time_size(
        self,
        plan: AttentionPlan,
        kernel: Any,
        workload: Workload,
        data: tuple[Any, Any, Any],
    ) -> SizeResult:
        cupy = load_cupy()
        layout = lay_out(plan, workload, self._options.seed)
        bits = self._inputs(plan, layout, data)
        tables = {name: cupy.asarray(table) for name, table in layout.tables.items()}
        sinks = self._sinks(workload.heads) if plan.sinks else None
        more: dict[str, Any] = dict(tables)
        if sinks is not None:
            more["sinks"] = cupy.asarray(sinks)
        more |= {name: cupy.asarray(scales) for name, scales in cache_scales(plan, layout).items()}
        launch = kernel.prepare(*map(_viewed, bits, _types(plan)), **more)
        launch()
        out = launch.out.view(cupy.uint16)
        exact = self._exact(plan, layout, bits, cupy, sinks)
        error = self._compare(plan, layout, exact, out, cupy)
        runs: dict[str, Callable[[], Any]] = {OURS: launch}
        left_out: dict[str, str] = {}
        distances: dict[str, float] = {}
        if self._peers:
            given: dict[str, Any] = {}
            if tables:
                import torch

                named = {name: torch.from_dlpack(table) for name, table in tables.items()}
                given["sequences"] = Sequences(workload.rows, workload.most_keys, named)
            peers, distances = self._prepare_peers(plan, bits, out, given, left_out)
            runs |= peers
        read = count_read_bytes(plan, workload) if plan.splits_keys else 0
        floors: dict[str, Callable[[], Any]] = {}
        for floor in self._floors if read else ():
            tensors = bits[1:2] if plan.values_in_keys else bits[1:]
            memory = cupy.concatenate([array.ravel() for array in tensors])
            floors |= floor.launches(plan.arch, memory, read)
        timings = time_in_turn(runs | floors, self._options.protocol, rounds=self._options.rounds)
        series = {name: make_series(timings[name]) for name in runs}
        if floors:
            series[FLOOR] = fastest_launch(make_series(timings[name]) for name in floors)
        return SizeResult(
            rows=workload.rows,
            batch=workload.batch,
            heads=workload.heads,
            named=named_extents(workload),
            flop=count_flop(plan, workload),
            ours=series.pop(OURS),
            peers=series,
            left_out=left_out,
            error=error,
            distances=distances,
            read_bytes=read,
        )

    def _sinks(self, heads: int) -> Any:
        """Return N(0, 1) logits, float32."""
        import numpy as np

        rng = np.random.default_rng(self._options.seed)
        return rng.standard_normal(heads, dtype=np.float32)

    def _exact(
        self, plan: AttentionPlan, layout: Layout, bits: list[Any], cupy: Any, sinks: Any
    ) -> dict[tuple[int, int], Any]:
        """Return float64 outputs by sequence and head: the first of the first, last of the last."""
        from fa4gen.verify.reference import AttentionProblem, exact_attention

        problem = AttentionProblem.of(plan, plan.depth**-0.5)
        workload = layout.workload
        heads_per_key_head = workload.heads // workload.key_heads
        found = {}
        for b, h in {(0, 0), (workload.batch - 1, workload.heads - 1)}:
            key_head = h // heads_per_key_head
            query = as_float32(layout.query_rows(bits[0], b, h), plan.dtype, cupy)
            key, value = (
                as_float32(layout.key_rows(array, b, key_head), plan.kv_dtype, cupy)
                for array in bits[1:]
            )
            own = None if sinks is None else sinks[h : h + 1]
            found[b, h] = exact_attention(problem, query, key, value, cupy, sinks=own).out
        return found

    def _compare(
        self,
        plan: AttentionPlan,
        layout: Layout,
        exact: Mapping[tuple[int, int], Any],
        out: Any,
        cupy: Any,
    ) -> float:
        """Return the relative error of an output; Fa4genError for a wrong one."""
        squares = errors = 0.0
        for (b, h), expected in exact.items():
            got = as_float32(layout.query_rows(out, b, h), plan.out_dtype, cupy)
            errors += float(((got - expected) ** 2).sum())
            squares += float((expected**2).sum())
        error = math.sqrt(errors / squares)
        if not error <= WRONG * UNIT_ROUNDOFF[plan.dtype]:
            raise Fa4genError(
                Problem(
                    f"{plan.name} is wrong at {layout.workload.at}: relative error {error:.3g}",
                    f"fa4gen verify {plan.name} shows where.",
                )
            )
        return error


def _types(plan: AttentionPlan) -> tuple[str, str, str]:
    return plan.dtype, plan.kv_dtype, plan.kv_dtype


def _viewed(bits: Any, dtype: str) -> Any:
    """Return bit patterns in the type that a launcher takes."""
    return bits.view(BITS_ACCEPTED.get(dtype) or numpy_dtype(dtype))


def _poisoned(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an output full of NaN: reused memory may hold the right result."""
    return load_cupy().full(shape, POISON_BITS[dtype], bits_dtype(dtype))


def named_extents(workload: Workload) -> dict[str, Any]:
    """Return the extents of a batch other than sequences, heads and rows; none for a row count."""
    if not workload.name:
        return {}
    return {
        "word": workload.name,
        "tokens": sum(workload.query_rows),
        "keys": workload.most_keys,
        "key_heads": workload.key_heads,
    }


def plan_facts(plan: AttentionPlan, compiled: CompiledKernel) -> dict[str, Any]:
    """Return the facts about the kernel for readers of the results."""
    return {
        "arch": plan.arch,
        "dtype": plan.dtype,
        "kv_dtype": plan.kv_dtype,
        "kv_scale": plan.kv_scale,
        "out_dtype": plan.out_dtype,
        "depth": plan.depth,
        "value_depth": plan.value_depth,
        "mask": plan.mask.name,
        **plan.mask.numbers(),
        **plan.score.numbers(),
        "lse": plan.lse,
        "sinks": plan.sinks,
        "batching": plan.batching,
        "keys": plan.keys,
        "page_size": plan.page_size,
        "BM": plan.BM,
        "BN": plan.BN,
        "num_kv_stages": plan.num_kv_stages,
        **own_facts(plan, ("num_consumer_warpgroups", "packed_rows")),
        "cta_group": plan.cta_group,
        "scheduler": plan.scheduler,
        "compiler": f"{compiled.compiler} {compiled.compiler_version}",
    }


def own_facts(plan: KernelPlan, names: Sequence[str]) -> dict[str, Any]:
    """Return those of the fields ``names`` that the plan of this design has."""
    return {name: getattr(plan, name) for name in names if hasattr(plan, name)}


def make_series(timings: Sequence[Timing]) -> Series:
    """Reduce each round to the reported figures."""
    return Series(
        tuple(timing.median_ms for timing in timings), tuple(timing.spread for timing in timings)
    )


def as_float32(bits: Any, dtype: str, cupy: Any) -> Any:
    """Convert CuPy's bit patterns of ``dtype`` to float32."""
    bits = cupy.ascontiguousarray(bits)
    if dtype == "fp32":
        return bits.view(cupy.float32)
    if dtype == "fp16":
        return bits.view(cupy.float16).astype(cupy.float32)
    if dtype == "fp8_e4m3":
        import numpy as np

        return cupy.asarray(from_bits(np.arange(256, dtype=np.uint8), dtype))[bits]
    return (bits.astype(cupy.uint32) << 16).view(cupy.float32)


def as_torch(bits: Any, dtype: str) -> Any:
    """Share the memory of bit patterns with torch, as the element type."""
    import torch

    signed = bits.view(f"int{8 * bits.itemsize}")
    name = "float32" if dtype == "fp32" else DTYPE_NAMES[dtype]
    return torch.from_dlpack(signed).view(getattr(torch, name))


def distance(theirs: Any, ours: Any) -> float:
    """Return the relative Frobenius distance of two torch tensors."""
    theirs, ours = theirs.float(), ours.float()
    return float((ours - theirs).norm() / theirs.norm())
