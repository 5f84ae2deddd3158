"""Times a kernel against its peers, in turn in one run, on the same random data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.bench.peers import LeftOutError
from fa4gen.bench.results import ConfigResult, Series, SizeResult
from fa4gen.bench.workload import Workload, count_flop, make_workload
from fa4gen.errors import ConfigError, Fa4genError, Problem
from fa4gen.runtime.arguments import BITS_ACCEPTED, DTYPE_NAMES
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.runtime.timing import Timing, TimingProtocol, time_in_turn
from fa4gen.verify.rounding import UNIT_ROUNDOFF, from_bits, numpy_dtype, to_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fa4gen.bench.peers import Peer
    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.designs.shared.kernel_model import KernelPlan
    from fa4gen.toolchain.model import CompiledKernel

OURS = "fa4gen"
WRONG = 2.0
"""Units of roundoff: an output with a larger relative Frobenius error is wrong. Two correct
kernels are 0.6 from the exact result, and 0.85 from each other."""


@dataclass(frozen=True)
class BenchOptions:
    """What to time and how."""

    sizes: tuple[Any, ...]
    """What the family's parse_sizes returns: numbers of rows, or GemmWorkloads."""
    rounds: int = 3
    seed: int = 0
    protocol: TimingProtocol = field(default_factory=TimingProtocol)
    family: str = field(kw_only=True)


class Bench:
    """Times kernels one after the other; random data is made once for each element type."""

    def __init__(self, options: BenchOptions, peers: Sequence[Peer]) -> None:
        """Touches no GPU yet."""
        self._options = options
        self._peers = tuple(peers)
        self._data: dict[str, tuple[Any, Any, Any]] = {}

    def time_kernel(
        self, plan: AttentionPlan, compiled: CompiledKernel, config: str = ""
    ) -> ConfigResult:
        """Time one kernel at every size.

        Raises Fa4genError for a kernel whose output is wrong: its speed would mean nothing.
        """
        from fa4gen.runtime.attention import AttentionKernel

        if plan.has_tile_lengths:
            raise ConfigError(
                Problem(
                    f"{plan.name}: bench has no workload yet of sequences that differ in length",
                    "Leave this config out.",
                    file=config,
                )
            )
        load_cupy().cuda.Device(require_device(plan.arch).ordinal).use()
        kernel = AttentionKernel(plan, compiled.cubin)
        workloads = [
            make_workload(rows, plan.depth, plan.value_depth) for rows in self._options.sizes
        ]
        data = self._random_data(plan.dtype, max(workload.elements for workload in workloads))
        sizes = tuple(self._time_size(plan, kernel, workload, data) for workload in workloads)
        return ConfigResult(
            config, plan.name, plan_facts(plan, compiled), sizes, family=plan.kernel
        )

    def _random_data(self, dtype: str, elements: int) -> tuple[Any, Any, Any]:
        """Return three flat arrays of N(0, 1) numbers on the GPU, of ``elements`` at least."""
        import numpy as np

        known = self._data.get(dtype)
        if known is None or known[0].size < elements:
            cupy = load_cupy()
            rng = np.random.default_rng(self._options.seed)
            query, key, value = (
                cupy.asarray(to_bits(rng.standard_normal(elements, dtype=np.float32), dtype))
                for _ in range(3)
            )
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
        bits = [
            array[: math.prod(shape)].reshape(shape)
            for array, shape in zip(data, workload.shapes, strict=True)
        ]
        dtype = BITS_ACCEPTED.get(plan.dtype) or numpy_dtype(plan.dtype)
        query, key, value = (array.view(dtype) for array in bits)
        launch = kernel.prepare(query, key, value)
        launch()
        out = launch.out.view(cupy.uint16)
        error = self._check(plan, bits, out, cupy)
        runs: dict[str, Callable[[], Any]] = {OURS: launch}
        left_out: dict[str, str] = {}
        distances: dict[str, float] = {}
        if self._peers:
            tensors = [as_torch(array, plan.dtype) for array in bits]
            ours = as_torch(out, plan.out_dtype)
            for peer in self._peers:
                try:
                    run = peer.prepare(plan, *tensors)
                    distances[peer.name] = distance(run(), ours)
                except (LeftOutError, RuntimeError, TypeError, ValueError) as reason:
                    left_out[peer.name] = str(reason).strip().splitlines()[0][:200]
                    continue
                if not distances[peer.name] <= WRONG * UNIT_ROUNDOFF[plan.dtype]:
                    left_out[peer.name] = f"its output is {distances[peer.name]:.2g} from ours"
                    continue
                runs[peer.name] = run
        timings = time_in_turn(runs, self._options.protocol, rounds=self._options.rounds)
        series = {name: make_series(timings[name]) for name in runs}
        return SizeResult(
            rows=workload.rows,
            batch=workload.batch,
            heads=workload.heads,
            flop=count_flop(plan, workload),
            ours=series.pop(OURS),
            peers=series,
            left_out=left_out,
            error=error,
            distances=distances,
        )

    def _check(self, plan: AttentionPlan, bits: list[Any], out: Any, cupy: Any) -> float:
        """Compare the first head of the first batch and the last of the last with float64."""
        from fa4gen.verify.reference import AttentionProblem, exact_attention

        problem = AttentionProblem.of(plan, plan.depth**-0.5)
        batch, _, heads, _ = bits[0].shape
        squares = errors = 0.0
        for b, h in {(0, 0), (batch - 1, heads - 1)}:
            query, key, value = (
                as_float32(array[b : b + 1, :, h : h + 1], plan.dtype, cupy) for array in bits
            )
            exact = exact_attention(problem, query, key, value, cupy).out
            got = as_float32(out[b : b + 1, :, h : h + 1], plan.out_dtype, cupy)
            errors += float(((got - exact) ** 2).sum())
            squares += float((exact**2).sum())
        error = math.sqrt(errors / squares)
        if not error <= WRONG * UNIT_ROUNDOFF[plan.dtype]:
            raise Fa4genError(
                Problem(
                    f"{plan.name} is wrong at {bits[0].shape[1]} rows: relative error {error:.3g}",
                    f"fa4gen verify {plan.name} shows where.",
                )
            )
        return error


def plan_facts(plan: AttentionPlan, compiled: CompiledKernel) -> dict[str, Any]:
    """Return the facts about the kernel for readers of the results."""
    return {
        "arch": plan.arch,
        "dtype": plan.dtype,
        "out_dtype": plan.out_dtype,
        "depth": plan.depth,
        "value_depth": plan.value_depth,
        "mask": plan.mask.name,
        **plan.mask.numbers(),
        **plan.score.numbers(),
        "lse": plan.lse,
        "BM": plan.BM,
        "BN": plan.BN,
        "num_kv_stages": plan.num_kv_stages,
        **own_facts(plan, ("num_consumer_warpgroups",)),
        "cta_group": plan.cta_group,
        "scheduler": plan.scheduler,
        "compiler": f"{compiled.compiler} {compiled.compiler_version}",
    }


def own_facts(plan: KernelPlan, names: Sequence[str]) -> dict[str, Any]:
    """Return those of the fields ``names`` that the plan of this design has."""
    return {name: getattr(plan, name) for name in names if hasattr(plan, name)}


def make_series(timings: Sequence[Timing]) -> Series:
    """Reduce each round to what is reported."""
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
