"""Attention on the GPU: query, key and value, and the tables that divide them into sequences."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fa4gen.bench.gpu_arrays import as_float32, as_torch, viewed
from fa4gen.bench.layout import cache_scales, lay_out, with_values
from fa4gen.bench.peers import AttentionOperands, Sequences
from fa4gen.bench.work import Expected, Run, Work
from fa4gen.bench.workload import count_flop, count_read_bytes
from fa4gen.overriding import override
from fa4gen.runtime.device import load_cupy
from fa4gen.verify.rounding import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.bench.workload import Workload
    from fa4gen.designs.common.attention_model import AttentionPlan

WRONG = 2.0
"""Units of roundoff: an output with a larger relative Frobenius error is wrong. Two correct
kernels are 0.6 from the exact result, and 0.85 from each other."""


class AttentionWork(Work):
    """Attention forward: the first head of the first sequence and the last one are checked."""

    def __init__(self, plan: AttentionPlan, workload: Workload, numbers: RandomNumbers) -> None:
        """Draw the inputs; ConfigError for a batch that the kernel does not support."""
        layout = lay_out(plan, workload, numbers.seed)
        super().__init__(
            workload,
            layout.out,
            most_error=WRONG * UNIT_ROUNDOFF[plan.dtype],
        )
        cupy = load_cupy()
        self._layout, self._workload = layout, workload
        self._types = plan.dtype, plan.kv_dtype, plan.kv_dtype
        query = numbers.array(layout.query, plan.dtype, shift=0)
        key, value = with_values(
            plan, layout, lambda shape, shift: numbers.array(shape, plan.kv_dtype, shift=shift)
        )
        self._bits = query, key, value
        self._read = (key,) if plan.values_in_keys else (key, value)
        self._sinks = numbers.float32(workload.heads) if plan.sinks else None
        self._tables = {name: cupy.asarray(table) for name, table in layout.tables.items()}
        self._given = dict(self._tables)
        if self._sinks is not None:
            self._given["sinks"] = cupy.asarray(self._sinks)
        scales = cache_scales(plan, layout).items()
        self._given |= {name: cupy.asarray(scale) for name, scale in scales}
        self._exact: dict[tuple[int, int], Any] = {}
        self.flop = count_flop(plan, workload)
        self.read_bytes = count_read_bytes(plan, workload) if plan.splits_keys else 0

    @override
    def prepare(self, kernel: Any, plan: AttentionPlan, number: int, out: Any) -> Run:
        del plan, number
        launch: Run = kernel.prepare(**self._tensors(out))
        return launch

    def _tensors(self, out: Any) -> dict[str, Any]:
        """Return the arrays of a call of our kernel, by the names of a launcher's arguments."""
        arrays = map(viewed, self._bits, self._types)
        return dict(zip(("query", "key", "value"), arrays, strict=True)) | {
            "out": out,
            **self._given,
        }

    @override
    def expected(self, plan: AttentionPlan, number: int) -> Expected:
        del number
        workload = self._workload
        for b, h in {(0, 0), (workload.batch - 1, workload.heads - 1)}:
            if (b, h) not in self._exact:
                self._exact[b, h] = self._exact_rows(plan, b, h)
            yield partial(self._layout.query_rows, index=b, head=h), self._exact[b, h]

    @override
    def operands(self, plan: AttentionPlan, number: int, out: Any) -> AttentionOperands:
        del number
        sequences = None
        if self._tables:
            import torch

            tables = {name: torch.from_dlpack(table) for name, table in self._tables.items()}
            sequences = Sequences(self._workload.rows, self._workload.most_keys, tables)
        query, key, value = map(as_torch, self._bits, self._types)
        cupy = load_cupy()
        bits = cupy.empty_like(out)
        own = self._tensors(viewed(bits, plan.out_dtype))
        if plan.lse:
            own["lse"] = cupy.empty(self._layout.lse, cupy.float32)
        theirs = as_torch(bits, plan.out_dtype)
        return AttentionOperands(query, key, value, sequences, own, theirs)

    @override
    def read_memory(self) -> Any:
        return load_cupy().concatenate([array.ravel() for array in self._read])

    def _exact_rows(self, plan: AttentionPlan, b: int, h: int) -> Any:
        """Return the output of a head of a sequence, in float64."""
        from fa4gen.verify.reference import AttentionProblem, exact_attention

        problem = AttentionProblem.of(plan, plan.depth**-0.5)
        key_head = h // (self._workload.heads // self._workload.key_heads)
        query, key, value = self._bits
        rows = as_float32(self._layout.query_rows(query, b, h), plan.dtype)
        keys, values = (
            as_float32(self._layout.key_rows(array, b, key_head), plan.kv_dtype)
            for array in (key, value)
        )
        own = None if self._sinks is None else self._sinks[h : h + 1]
        return exact_attention(problem, rows, keys, values, load_cupy(), sinks=own).out
