"""Products of uneven groups on the GPU: ends of some groups are checked, peers are left out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fa4gen.bench.gemm_inputs import draw_inputs
from fa4gen.bench.gemm_work import CHECKED_ROWS, WRONG, exact_output
from fa4gen.bench.gemm_workload import ALPHA, BETAS
from fa4gen.bench.gpu_arrays import as_float32, viewed
from fa4gen.bench.grouped_work import (
    bytes_to_read,
    for_each_group,
    joined,
    offsets_of,
    row_arrays,
)
from fa4gen.bench.peers import LeftOutError
from fa4gen.bench.work import Expected, Run, Work
from fa4gen.overriding import override
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.verify.gemm.scales import of_each_line, scaled

if TYPE_CHECKING:
    from fa4gen.bench.gemm_inputs import Inputs
    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.designs.common.gemm_model import GemmPlan


class UnevenWork(Work):
    """A product of groups of uneven sizes, some of which may have no rows.

    The first and last rows of the first, the largest and the last group are checked.
    """

    def __init__(self, plan: GemmPlan, workload: GemmWorkload, numbers: RandomNumbers) -> None:
        """Draw the inputs of the sets."""
        assert workload.uneven is not None
        self._counts = workload.uneven
        self._masked = plan.groups == "masked"
        rows = (workload.batch, self._counts.most) if self._masked else (workload.rows,)
        sets = workload.count_sets(plan, require_device(plan.arch).l2_bytes)
        shape = (*rows, plan.output_columns(workload.n))
        super().__init__(workload, shape, most_error=WRONG, sets=sets)
        self._workload = workload
        self._inputs = [draw_inputs(plan, workload, numbers, 3 * number) for number in self._sets]
        self._exact: dict[tuple[str, int], list[tuple[Any, Any]]] = {}
        self.flop = workload.flop
        self.read_bytes = bytes_to_read(plan, workload)

    @override
    def prepare(self, kernel: Any, plan: GemmPlan, number: int, out: Any) -> Run:
        inputs = self._inputs[number]
        (a, of_a), (b, of_b), (c, of_c) = inputs.of(plan)
        if c is not None and not plan.c.is_matrix:
            c = for_each_group(self._workload, c)
        arrays = (viewed(bits, dtype) for bits, dtype in ((a, of_a), (b, of_b), (c, of_c)))
        given = row_arrays(plan, self._workload)
        for row in plan.scales:
            given[row.name] = viewed(inputs.scales[row.name], row.dtype)
        beta = BETAS[plan.residual]
        launch: Run = kernel.prepare(*arrays, out=out, alpha=ALPHA, beta=beta, **given)
        return launch

    @override
    def expected(self, plan: GemmPlan, number: int) -> Expected:
        key = plan.residual, number
        if key not in self._exact:
            self._exact[key] = list(self._exact_rows(plan, self._inputs[number]))
        return self._exact[key]

    @override
    def operands(self, plan: GemmPlan, number: int, out: Any) -> Any:
        del plan, number, out
        raise LeftOutError("it is not timed with groups of uneven sizes")

    @override
    def written(self, out: Any) -> Any:
        if not self._masked:
            return out
        cupy = load_cupy()
        counts = cupy.asarray(self._counts.counts)
        return out[cupy.arange(out.shape[1]) < counts[:, None]]

    @override
    def read_memory(self) -> Any:
        inputs = self._inputs[0]
        filled = [group for group, rows in enumerate(self._counts.counts) if rows]
        return joined([self.written(inputs.a), inputs.b[filled]])

    def _exact_rows(self, plan: GemmPlan, inputs: Inputs) -> Expected:
        """Yield the ends of the checked groups, and their outputs in float64."""
        cupy, counts = load_cupy(), self._counts.counts
        filled = [group for group, rows in enumerate(counts) if rows]
        for group in sorted({filled[0], counts.index(self._counts.most), filled[-1]}):
            factor = as_float32(inputs.b[group], plan.b_dtype, contiguous=-2).astype(cupy.float64)
            if plan.scales:
                values, of_b = inputs.scale_values[1][group], plan.scales[1]
                each = of_each_line(of_b, values, self._workload.n, cupy)
                factor = scaled(factor, each, -2, of_b.columns, cupy)
            for first in sorted({0, max(0, counts[group] - CHECKED_ROWS)}):
                rows = slice(first, min(first + CHECKED_ROWS, counts[group]))
                part_of = partial(self._part, group=group, rows=rows)
                left = as_float32(part_of(inputs.a), plan.dtype).astype(cupy.float64)
                if plan.scales:
                    values, of_a = inputs.scale_values[0], plan.scales[0]
                    each = of_each_line(of_a, values, inputs.a.shape[-2], cupy)
                    left = scaled(left, part_of(each), -1, of_a.columns, cupy)
                c = None
                if plan.c.exists:
                    matrix = part_of(inputs.c) if plan.c.is_matrix else inputs.c
                    part = matrix if plan.c.is_matrix else plan.c.rows_of(inputs.c, rows)
                    c = as_float32(part, plan.out_dtype)
                yield part_of, exact_output(plan, left @ factor, c)

    def _part(self, array: Any, group: int, rows: slice) -> Any:
        """Return rows of a group, of an array with the rows of all."""
        if self._masked:
            return array[group, rows]
        begin = offsets_of(self._workload)[group]
        return array[begin + rows.start : begin + rows.stop]
