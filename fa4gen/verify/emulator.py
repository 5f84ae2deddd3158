"""Runs cases in the CPU emulator, where there is no GPU of the kernel's architecture.

Each run has another seed and another policy of the schedule, and makes all checks: a kernel with
right numbers and a misplaced wait fails, too. A dependent launch is run as one that follows a
kernel which may still use all memory: its arrays, and the workspace of the run before.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.errors import Fa4genError, Problem
from fa4gen.runtime.gemm_axes import GEMM_DTYPES
from fa4gen.runtime.parameters import to_bytes
from fa4gen.runtime.strides import BITS_ACCEPTED
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.verify.cases import MULTIPROCESSORS
from fa4gen.verify.family import family_of
from fa4gen.verify.far_memory import far_memory
from fa4gen.verify.rounding import numpy_dtype
from fa4gen.verify.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from fa4gen.designs.common.kernel_model import KernelPlan
    from fa4gen.designs.common.plans import Plan
    from fa4gen.emulator import Finding, Memory, Names, Program, Report, TensorMap
    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.runtime.tensor_map import TensorMapSpec
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.verify.buffers import CaseMemory, Image, View

DEVICE = 0
WORDS = {**GEMM_DTYPES, "int32": "int32"}
IDLE_STEPS = 10_000
"""Steps without a store, an arrival or a copy after which a kernel is given up: shipped ones take a
hundred."""
MAX_SHOWN = 8
"""Findings of a run that are shown, the worst first; the others are counted."""


class FindingsError(Fa4genError):
    """The emulator found an error other than a wrong number."""


@dataclass(frozen=True)
class EmulatedCall:
    """The arguments of the emulator's ``Program.launch``."""

    entry: str
    grid: int | Sequence[int]
    block: int | Sequence[int]
    cluster: int | Sequence[int] | None
    dynamic_shared: int
    args: Sequence[Any]
    memory: Sequence[Memory] = ()


class EmulatorBackend:
    """The emulator; every machine has it."""

    name = "emulator"
    proof = "emulated"
    same_bits = False
    """MMAs that complete together are summed in varying order: two runs may differ by that."""
    emulates = True

    def __init__(self, arch: str) -> None:
        self._arch = arch

    @property
    def array_module(self) -> Any:
        """NumPy."""
        return np

    def available(self) -> bool:
        """Whether the emulator knows the architecture."""
        return self._arch in ARCHITECTURES

    def load(self, plan: Plan, compiled: CompiledKernel) -> EmulatedKernel:
        """Parse the PTX."""
        return EmulatedKernel(plan, self._parse(plan, compiled))

    def _parse(self, plan: Plan, compiled: CompiledKernel) -> Program:
        from fa4gen.emulator import EmulatorError, Program

        try:
            program = Program(compiled.ptx)
            program.check(plan.entry_point)
        except EmulatorError as error:
            raise FindingsError(
                Problem(f"the emulator cannot run the kernel's PTX: {error}")
            ) from error
        return program


class EmulatedKernel:
    """A kernel in the emulator. Every run has a schedule of its own."""

    def __init__(self, plan: Plan, program: Program) -> None:
        self._plan = plan
        self._program = program
        self._family = family_of(plan)
        self._names = plan_names(plan)
        self._runs: Counter[int] = Counter()
        self._coverages: list[Coverage] = []
        self._kept = Workspace()

    def run(self, memory: CaseMemory) -> dict[str, Image]:
        """Run on copies of the buffers; FindingsError unless the emulator's verdict is clean."""
        from fa4gen.emulator import SCHEDULES, EmulatorError, Limits

        limits = Limits(idle_steps=IDLE_STEPS)
        buffers = {name: image.copy() for name, image in memory.buffers.items()}
        far = far_memory(memory, buffers) if memory.far else None
        calls = (
            self._calls(far.memory, far.buffers, far.moved) if far else self._calls(memory, buffers)
        )
        number = self._number(memory) if calls else 0
        for call in calls:
            try:
                report = self._program.launch(
                    call.entry,
                    grid=call.grid,
                    block=call.block,
                    cluster=call.cluster,
                    args=call.args,
                    memory=call.memory,
                    dynamic_shared=call.dynamic_shared,
                    seed=number,
                    schedule=SCHEDULES[number % len(SCHEDULES)],
                    names=self._names if call is calls[-1] else None,
                    limits=limits,
                    pending_writes="all" if self._plan.dependent_launch else (),
                )
            except EmulatorError as error:
                raise FindingsError(
                    Problem(f"the emulator cannot run the kernel: {error}", "")
                ) from error
            if call is calls[-1]:  # coverage is counted for the kernel itself
                self._coverages.append(report.coverage)
            _refuse_findings(report)
        left = [Problem(text, "") for text in self._kept.take_back()]
        if left:
            raise FindingsError(*left)
        if far is not None:
            far.bring_back(buffers)
        return buffers

    def take_coverage(self) -> Coverage | None:
        """Return the coverage since the last call; None where nothing ran."""
        from fa4gen.emulator.coverage.counts import merge

        coverages, self._coverages = self._coverages, []
        return merge(coverages)

    def _number(self, memory: CaseMemory) -> int:
        """Return the seed of a run: it is derived from the inputs and the number of runs on them.

        So a case on the same inputs has the same schedules, whichever other cases run.
        """
        inputs = 0
        for name in sorted(memory.buffers):
            inputs = zlib.crc32(memory.buffers[name].data, inputs)
        self._runs[inputs] += 1
        return inputs + self._runs[inputs]

    def _calls(
        self, memory: CaseMemory, buffers: dict[str, Image], moved: Collection[str] = ()
    ) -> Sequence[EmulatedCall]:
        """Return the launches on ``buffers``, the kernel's last; none where nothing is to do."""
        from fa4gen.emulator import Memory

        plan = self._plan
        views = {
            name: TensorView(
                buffers[view.buffer].__array_interface__["data"][0] + view.offset,
                view.shape,
                view.strides,
                WORDS[view.dtype],
                DEVICE,
            )
            for name, view in memory.views.items()
        }
        launch = self._family.emulated_launch(
            views, memory, memory.multiprocessors or MULTIPROCESSORS
        )
        if launch is None:
            return ()
        values = {**launch.values, **self._kept.give(launch.kept)}
        maps = launch.maps.items()
        values |= {name: _tensor_map(spec, buffers, moved) for name, spec in maps}
        for name in launch.pointers:
            if name in memory.views:
                values[name] = _array(memory.views[name], buffers)
        kernel = EmulatedCall(
            plan.entry_point,
            launch.grid,
            plan.launch.threads,
            plan.launch.cluster,
            plan.launch.dynamic_shared_bytes,
            [_argument(row.c_type, values[row.name]) for row in plan.parameters],
            # maps of far tensors lead to their first elements alone
            [
                Memory(_array(view, buffers), name=name)
                for name, view in memory.views.items()
                if view.buffer in moved
            ],
        )
        listing = plan.tile_list
        if listing is None:
            return (kernel,)
        arguments = [_argument(row.c_type, values[row.name]) for row in listing.parameters]
        grid = listing.grid(launch.values["num_tiles"])
        before = EmulatedCall(listing.entry_point, grid, listing.threads, None, 0, arguments)
        return before, kernel


def _array(view: View, buffers: dict[str, Image]) -> NDArray[Any]:
    return np.ndarray(
        view.shape,
        numpy_dtype(view.dtype),
        buffer=buffers[view.buffer].data,
        offset=view.offset,
        strides=view.strides,
    )


def _refuse_findings(report: Report) -> None:
    from fa4gen.emulator import Verdict

    if report.verdict is Verdict.CLEAN:
        return
    how = f"emulated with seed {report.seed}, schedule {report.schedule}"
    raise FindingsError(
        *(Problem(f"{finding} [{how}]", "") for finding in report.findings[:MAX_SHOWN]),
        *_rest(report.findings[MAX_SHOWN:], how),
    )


def _rest(findings: tuple[Finding, ...], how: str) -> tuple[Problem, ...]:
    """Return the line that counts the findings which are not shown, if there are any."""
    if not findings:
        return ()
    counts = Counter(finding.severity.value for finding in findings)
    text = ", ".join(f"{count} of severity {severity}" for severity, count in counts.items())
    return (Problem(f"and {len(findings)} more findings: {text} [{how}]", ""),)


def plan_names(plan: KernelPlan) -> Names:
    """Return the plan's names for the kernel's shared memory, barriers and roles."""
    from fa4gen.emulator import NamedRange, NamedThreads, Names

    ranges = [
        NamedRange(row.name, row.offset, row.offset + row.bytes, row.bytes // row.slots)
        for row in plan.barriers
    ]
    ranges += [
        NamedRange(region.name, region.offset, region.end, region.slot_bytes)
        for region in plan.shared
    ]
    roles = [
        NamedThreads(role.name, 32 * role.first_warp, 32 * (role.first_warp + role.num_warps))
        for role in plan.roles
    ]
    alignment = plan.shared[0].alignment if plan.shared else 1
    return Names(tuple(ranges), tuple(roles), base_align=alignment)


def _tensor_map(
    spec: TensorMapSpec, buffers: dict[str, Image], moved: Collection[str]
) -> TensorMap:
    """Return the emulator's tensor map for the map that the launcher encodes by the driver."""
    from fa4gen.emulator import TensorMap

    name = next(name for name, word in WORDS.items() if word == spec.dtype)
    dtype = np.dtype(BITS_ACCEPTED.get(name) or numpy_dtype(name))
    owner = _owner(spec.pointer, buffers)
    image = buffers[owner]
    # by its strides, not as an array: those of maps that clip rows wrap around the address space
    start = spec.pointer - image.__array_interface__["data"][0]
    return TensorMap(
        image[start : start + dtype.itemsize] if owner in moved else image[start:],
        box=spec.box[::-1],
        swizzle=spec.swizzle,
        dtype=dtype,
        shape=spec.dims[::-1],
        strides=(*spec.strides[::-1], dtype.itemsize),
    )


def _owner(pointer: int, buffers: dict[str, Image]) -> str:
    for name, image in buffers.items():
        start = image.__array_interface__["data"][0]
        if start <= pointer < start + image.size:
            return name
    raise ValueError("a tensor map outside the case's buffers")


def _argument(c_type: str, value: Any) -> Any:
    """Return an argument in the emulator's form."""
    if isinstance(value, (bytes, int, float)):
        return to_bytes(c_type, value)
    return value
