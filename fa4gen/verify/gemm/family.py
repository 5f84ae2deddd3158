"""Matrix products in verify: cases with their numbers, references, and how kernels are called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, gemm_scalar_values
from fa4gen.runtime.gemm_axes import OUTPUTS
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.group_arguments import ROW_ARGUMENTS
from fa4gen.runtime.row_index import ROW_INDEX
from fa4gen.runtime.scale_arguments import AMAX
from fa4gen.runtime.scattered_rows import SCATTERED
from fa4gen.runtime.tensor_map import describe_axes
from fa4gen.verify.edges.products import edge_cases, edges, reached
from fa4gen.verify.errors import element_shares
from fa4gen.verify.family import EmulatedLaunch, SteadyWork
from fa4gen.verify.gemm import tolerance
from fa4gen.verify.gemm.amax import Amax, expected_amax
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.cases import default_cases, emulated_cases, large_cases, suited
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.gemm.memory import place, read_bits, read_out
from fa4gen.verify.gemm.quantised import (
    Quantising,
    check_scales,
    dequantised,
    plain_scales,
    quantised_own,
)
from fa4gen.verify.gemm.reference import GemmProblem, compute
from fa4gen.verify.inputs import make_rng
from fa4gen.verify.ring_cases import gemm_further, gemm_rings
from fa4gen.verify.verdict import Failure
from fa4gen.verify.work_done import gemm_tiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fa4gen.designs.common.plans import AnyGemmPlan
    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.verify.buffers import Image
    from fa4gen.verify.edges.edge import Edge
    from fa4gen.verify.exercise import Wanted
    from fa4gen.verify.gemm.inputs import GemmInputs
    from fa4gen.verify.gemm.memory import GemmMemory
    from fa4gen.verify.gemm.tolerance import GemmErrors, GemmResult
    from fa4gen.verify.work_done import Tiles


@dataclass(frozen=True)
class GemmFamily:
    """The verify family of matrix products; see ``family``."""

    plan: AnyGemmPlan

    def default_cases(self) -> tuple[GemmCase, ...]:
        """Return the cases for a GPU."""
        cases = suited(self.plan, default_cases(self.plan))
        return (*cases, *suited(self.plan, edge_cases(self.plan, cases)))

    def emulated_cases(self) -> tuple[GemmCase, ...]:
        """Return the cases for the emulator."""
        cases = suited(self.plan, (*emulated_cases(self.plan), gemm_rings(self.plan)))
        return (*cases, *suited(self.plan, edge_cases(self.plan, cases)))

    def further_cases(self, wanted: Wanted) -> tuple[GemmCase, ...]:
        """Return further cases for code that the emulator's did not reach."""
        return suited(self.plan, gemm_further(self.plan, wanted))

    def tiles(self, case: GemmCase, coverage: Coverage) -> Tiles | None:
        """Return the numbers of tiles that CTAs processed."""
        return gemm_tiles(self.plan, coverage, case.k)

    def rescales(self, coverages: Iterable[Coverage]) -> None:
        """Return None: there is no softmax."""
        del coverages

    def edges(self) -> tuple[Edge, ...]:
        """Return the edges of the plan."""
        return edges(self.plan)

    def reached(self, case: GemmCase) -> frozenset[str]:
        """Return the names of the edges that a case is at."""
        return reached(self.plan, case)

    def cost(self, case: GemmCase) -> float:
        """Return the emulator's approximate time."""
        plan = self.plan
        tiles = (case.batch or 1) * -(-case.m // plan.BM) * -(-case.n // plan.BN)
        return tiles * (2 + case.k / plan.BK)

    def score_tiles(self, case: GemmCase) -> dict[str, int]:
        """Return nothing: there are no masks."""
        del case
        return {}

    def large_cases(self) -> tuple[GemmCase, ...]:
        """Return the cases with a reference computed on the GPU."""
        return suited(self.plan, large_cases())

    def steady_work(self, ctas: int, blocks: int) -> SteadyWork:
        """Return six tiles of the output for each CTA; one tile is the repeated work."""
        plan, tiles = self.plan, 6
        case = GemmCase("timeline", ctas * plan.BM, tiles * plan.BN, blocks * plan.BK)
        (case,) = suited(plan, (case,))
        words = f"{tiles} tiles of the output, {blocks} blocks along k each"
        return SteadyWork(case, words, tiles)

    def draw(self, case: GemmCase, seed: int) -> DrawnGemm:
        """Draw A, B and C."""
        inputs = make_inputs(case, self.plan, make_rng(seed, case.name))
        memory = place(case, inputs, self.plan)
        memory = replace(memory, multiprocessors=case.multiprocessors, group=case.group)
        return DrawnGemm(self.plan, inputs, memory)

    def gpu_kernel(self, cubin: bytes) -> Any:
        """Return a GemmKernel."""
        from fa4gen.runtime.gemm import GemmKernel

        return GemmKernel(self.plan, cubin)

    def call(self, kernel: Any, arrays: Mapping[str, Any], memory: GemmMemory) -> None:
        """Call a GemmKernel."""
        factors = {"alpha": memory.alpha}
        if "c" in arrays:
            factors["beta"] = memory.beta
        more = (
            *(row.name for row in self.plan.scales),
            *ROW_ARGUMENTS,
            ROW_INDEX,
            *SCATTERED,
            AMAX,
            TENSOR_SCALE,
            *OUTPUTS,
        )
        others = {name: arrays[name] for name in more if name in arrays}
        kernel(arrays["a"], arrays["b"], arrays.get("c"), **factors, **others)

    def emulated_launch(
        self, views: Mapping[str, TensorView], memory: GemmMemory, multiprocessors: int
    ) -> EmulatedLaunch | None:
        """Check the arguments and return the launch as the launcher would."""
        plan = self.plan
        checked = check_gemm_arguments(
            plan,
            GemmArguments(
                views["a"],
                views["b"],
                views.get("c"),
                views["out"],
                memory.alpha,
                memory.beta,
                views.get("scale_a"),
                views.get("scale_b"),
                views.get("row_offsets"),
                views.get("row_counts"),
                views.get(ROW_INDEX),
                views.get("out_scales"),
                **{name: views.get(name) for name in (*SCATTERED, AMAX, TENSOR_SCALE)},
            ),
        )
        schedule = plan_gemm_schedule(plan, checked.size, multiprocessors)
        if not schedule.grid:
            return None
        if memory.group is not None:
            schedule = replace(schedule, group_rows=min(memory.group, schedule.row_tiles))
        maps = {
            row.parameter: describe_axes(
                row,
                checked.tensor(row.tensor),
                checked.axes(row.tensor),
                fallback_pointer=checked.out.pointer,
            )
            for row in plan.tensor_maps
        }
        values = gemm_scalar_values(checked, schedule)
        pointers: list[str] = [row.name for row in plan.scales if not row.in_atoms]
        if plan.gathers_rows:
            pointers += ["a", ROW_INDEX]
        if plan.finds_amax:
            pointers.append(AMAX)
        if plan.scatters_rows:
            pointers += ["out", *SCATTERED]
        if plan.output_scales is not None:
            pointers.append(plan.output_scales.name)
            if plan.output_scales.has_tensor_scale:
                pointers.append(TENSOR_SCALE)
        return EmulatedLaunch(schedule.grid, values, maps, (*pointers, *checked.rows))


@dataclass(frozen=True)
class DrawnGemm:
    """A case with its inputs."""

    plan: AnyGemmPlan
    inputs: GemmInputs
    memory: GemmMemory

    def reference(self, xp: Any) -> GemmReference:
        """Compute the kernel's expected results."""
        result = compute(GemmProblem.of(self.plan), self.inputs, xp)
        rounded, scales, how = result, self.plan.output_scales, None
        if scales is not None:
            how = Quantising(scales, np.float32(self.inputs.tensor_scale))
            rounded = quantised_own(result, how, xp)
            result = replace(result, own=rounded.own)
        own = tolerance.measure(rounded.own, rounded, self.plan.out_dtype, xp)
        bounds = tolerance.bounds(rounded, self.plan.out_dtype, xp)
        amax = expected_amax(self.plan, self.inputs, xp) if self.plan.finds_amax else None
        return GemmReference(result, self.plan.out_dtype, own, bounds, how, amax)


@dataclass(frozen=True)
class GemmReference:
    """The exact result of a case, and how far a kernel's may be from it."""

    result: GemmResult
    out_dtype: str
    own: GemmErrors
    bounds: GemmErrors
    how: Quantising | None = None
    """How the output is quantised; ``result`` is then that of float32."""
    amax: Amax | None = None

    def compare(
        self, memory: GemmMemory, after: Mapping[str, Image], xp: Any
    ) -> tuple[GemmErrors, tuple[Failure, ...]]:
        """Return the errors of a kernel's results, and those above their bounds."""
        got, result = xp.asarray(read_out(memory, after)), self.result
        wrong_scales: tuple[Failure, ...] = ()
        if self.how is not None:
            if self.how.scales.in_atoms:
                bits, wrong_scales = plain_scales(memory, after, self.how.scales)
            else:
                bits = read_bits(memory, after, self.how.scales.name)
            scales = xp.asarray(bits)
            wrong_scales += check_scales(memory, result, scales, self.how, xp)
            got, result = dequantised(got, result, scales, self.how, xp)
        if self.amax is not None:
            wrong_scales += self.amax.check(memory, after)
        errors = tolerance.measure(got, result, self.out_dtype, xp)
        return errors, (*wrong_scales, *self._wrong(memory, got, result, errors, xp))

    def _wrong(
        self, memory: GemmMemory, got: Any, result: GemmResult, errors: GemmErrors, xp: Any
    ) -> Iterator[Failure]:
        limits = dict(self.bounds)
        above = [
            f"{_MEANING[name]} {error:.3g}, at most {limits[name]:.3g}"
            for name, error in errors
            if not error <= limits[name]
        ]
        if not above:
            return
        shares = element_shares(got, result, xp)
        outside = int((shares > 1).sum())
        worst = tuple(int(i) for i in np.unravel_index(int(shares.argmax()), shares.shape))
        shown = memory.index_of(worst)
        low, high = (float(end[worst]) for end in (result.low, result.high))
        yield Failure(
            "numbers",
            f"{', '.join(above)}; {outside} of {shares.size} elements are outside of their "
            f"rounding bounds; {memory.place_of('out', shown)}: expected "
            f"{float(result.exact[worst]):.6g}, from {low:.6g} to {high:.6g}, "
            f"got {float(got[worst]):.6g}",
        )


_MEANING = {
    "frobenius": "relative Frobenius error",
    "row": "share of its bound that the worst row's error takes:",
    "element": "share of its bound that the worst element's error takes:",
}
