"""Merging of partial results in verify: its cases, reference, and how its kernels are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.runtime.merge_arguments import MergeArguments, check_merge_arguments
from fa4gen.verify.errors import ErrorSet, element_shares
from fa4gen.verify.family import EmulatedLaunch, SteadyWork
from fa4gen.verify.inputs import make_rng
from fa4gen.verify.merge.case import MergeCase, default_cases, emulated_cases
from fa4gen.verify.merge.memory import LSE_AXES, OUT_AXES, MergeMemory, draw, place
from fa4gen.verify.merge.reference import MergeResult, merged
from fa4gen.verify.wrong_numbers import outside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.merge.model import MergePlan
    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.verify.buffers import Image
    from fa4gen.verify.edges.edge import Edge
    from fa4gen.verify.exercise import Wanted
    from fa4gen.verify.merge.memory import MergeInputs

from fa4gen.verify.verdict import Failure


@dataclass(frozen=True)
class MergeErrors(ErrorSet):
    """Distances as shares of what rounding may do, the worst of all elements: at most 1."""

    INTERVALS = frozenset({"element", "lse"})

    element: float = 0.0
    lse: float = 0.0


@dataclass(frozen=True)
class MergeFamily:
    """The verify family of merging kernels; see ``family``."""

    plan: MergePlan

    def default_cases(self) -> tuple[MergeCase, ...]:
        """Return the cases for a GPU."""
        return default_cases(self.plan)

    def emulated_cases(self) -> tuple[MergeCase, ...]:
        """Return the cases for the emulator."""
        return emulated_cases(self.plan)

    def further_cases(self, wanted: Wanted) -> tuple[MergeCase, ...]:
        """Return nothing: the emulator's cases reach all code."""
        del wanted
        return ()

    def edges(self) -> tuple[Edge, ...]:
        """Return nothing: the cases are few, and each is at edges of its own."""
        return ()

    def reached(self, case: MergeCase) -> frozenset[str]:
        """Return the names of the edges that a case is at."""
        del case
        return frozenset()

    def cost(self, case: MergeCase) -> float:
        """Return the emulator's approximate time, in rows of parts."""
        return (case.batch or 1) * case.rows * case.heads * (1 + case.parts)

    def score_tiles(self, case: MergeCase) -> dict[str, int]:
        """Return nothing: there are no masks."""
        del case
        return {}

    def tiles(self, case: MergeCase, coverage: Coverage) -> None:
        """Return None: a CTA takes its rows and ends."""
        del case, coverage

    def rescales(self, coverages: Iterable[Coverage]) -> None:
        """Return None: all sums but the first are rescaled."""
        del coverages

    def large_cases(self) -> tuple[MergeCase, ...]:
        """Return a problem of the size of a prefill."""
        return (MergeCase("large/16k", 3, 16384, 32, batch=1),)

    def steady_work(self, ctas: int, blocks: int) -> SteadyWork:
        """Return rows for each CTA, with groups of parts in flight as the repeated work."""
        case = MergeCase("timeline", blocks * self.plan.parts_in_flight, ctas * self.plan.BM, 1)
        return SteadyWork(case, f"{blocks} groups of parts", blocks)

    def draw(self, case: MergeCase, seed: int) -> DrawnMerge:
        """Draw parts and log-sum-exps."""
        inputs = draw(case, self.plan, make_rng(seed, case.name))
        return DrawnMerge(self.plan, inputs, place(case, inputs, self.plan))

    def gpu_kernel(self, cubin: bytes) -> Any:
        """Return a MergeKernel."""
        from fa4gen.runtime.merge import MergeKernel

        return MergeKernel(self.plan, cubin)

    def call(self, kernel: Any, arrays: Mapping[str, Any], memory: MergeMemory) -> None:
        """Call a MergeKernel."""
        del memory
        kernel(arrays["parts"], arrays["part_lse"], out=arrays["out"], lse=arrays.get("lse"))

    def emulated_launch(
        self, views: Mapping[str, TensorView], memory: MergeMemory, multiprocessors: int
    ) -> EmulatedLaunch | None:
        """Check the arguments and return the launch as the launcher would."""
        del memory, multiprocessors
        arguments = MergeArguments(
            views["parts"], views["part_lse"], views["out"], views.get("lse")
        )
        checked = check_merge_arguments(self.plan, arguments)
        if not checked.num_rows:
            return None
        grid = -(-checked.num_rows // self.plan.BM)
        return EmulatedLaunch(grid, checked.values(), {}, tuple(checked.views))


@dataclass(frozen=True)
class DrawnMerge:
    """A case with its inputs."""

    plan: MergePlan
    inputs: MergeInputs
    memory: MergeMemory

    def reference(self, xp: Any) -> MergeReference:
        """Compute the exact result, and what rounding may make of it."""
        parts, lse = xp.asarray(self.inputs.parts), xp.asarray(self.inputs.lse)
        out, merged_lse = merged(parts, lse, self.plan.out_dtype, xp)
        return MergeReference(out, merged_lse)


@dataclass(frozen=True)
class MergeReference:
    """The exact result of a case with its intervals."""

    out: MergeResult
    lse: MergeResult
    own: MergeErrors = MergeErrors()
    bounds: MergeErrors = MergeErrors(1.0, 1.0)

    def compare(
        self, memory: MergeMemory, after: Mapping[str, Image], xp: Any
    ) -> tuple[MergeErrors, tuple[Failure, ...]]:
        """Return the errors of a kernel's results, and those above their bounds."""
        found, failures = {}, []
        for name, axes, exact, error in (
            ("out", OUT_AXES, self.out, "element"),
            ("lse", LSE_AXES, self.lse, "lse"),
        ):
            if name not in memory.views:
                continue
            got = xp.asarray(memory.read(name, after))
            found[error] = float(element_shares(got, exact, xp).max()) if got.size else 0.0
            if not found[error] <= 1:
                failures.append(Failure("numbers", outside(name, axes, got, exact, xp)))
        return MergeErrors(**found), tuple(failures)
