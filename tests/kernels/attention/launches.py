"""Two launches on one workspace, and mutants of kernels that these or sequences have to show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator import SCHEDULES
from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel, FindingsError
from fa4gen.verify.judge import judge
from fa4gen.verify.memory import out_bits
from tests.kernels.attention import sequences
from tests.kernels.source_mutation import kernel_of, program_of, ptx_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kernels.attention.sequences import Lengths
    from tests.kernels.source_mutation import Change, Kernel

WORKSPACE = ("tickets", "partials")


class KeptWorkspace:
    """A program whose launches have the workspace of the first one, as it was left."""

    def __init__(self, kernel: Kernel) -> None:
        self._program = program_of(ptx_of(kernel))
        self._names = [row.name for row in kernel.plan.parameters]
        self.workspace: dict[str, Any] = {}

    def launch(self, entry: str, **options: Any) -> Any:
        arguments = dict(zip(self._names, options["args"], strict=True))
        given = {name: arguments[name] for name in WORKSPACE if name in arguments}
        self.workspace = self.workspace or given
        arguments |= self.workspace
        return self._program.launch(entry, **{**options, "args": list(arguments.values())})


def failures(kernel: Kernel, case: Case) -> list[str]:
    """Return verify's findings about two launches, and tickets that are not zero afterwards."""
    program: Any = KeptWorkspace(kernel)
    problem = AttentionFamily(kernel.plan).draw(case, 7)
    emulated = EmulatedKernel(kernel.plan, program)
    try:
        first, second = (emulated.run(problem.memory) for _ in range(2))
    except FindingsError as error:
        return [str(error)]
    found, _ = judge(problem.memory, first, second, problem.reference(np))
    partials = program.workspace["partials"].reshape(-1, kernel.plan.partial_stride)
    tickets = program.workspace.get("tickets", partials[:, kernel.plan.depth + 2 :])
    return [failure.message for failure in found] + ["a ticket is left"] * bool(tickets.any())


def assert_same_bits(kernel: Kernel, case: Case) -> None:
    """Assert that no schedule changes a bit of what a kernel writes."""
    problem = AttentionFamily(kernel.plan).draw(case, 7)
    program: Any = KeptWorkspace(kernel)
    emulated = EmulatedKernel(kernel.plan, program)
    first, *others = (emulated.run(problem.memory) for _ in SCHEDULES)
    for other in others:
        assert all(np.array_equal(first[name], other[name]) for name in first)


def output_of(problem: Any, kernel: Kernel) -> np.ndarray[Any, Any]:
    """Return the bits of the output of one launch."""
    run = EmulatedKernel(kernel.plan, program_of(ptx_of(kernel))).run(problem.memory)
    return out_bits(problem.memory, run)


def failures_at(kernel: Kernel, at: Case | Lengths) -> list[str]:
    """Return the findings about two launches on a case, or about one on sequences of ``at``."""
    return failures(kernel, at) if isinstance(at, Case) else sequences.failures(kernel, at)


@dataclass(frozen=True)
class ShownMutant:
    """A change to the kernel of ``keys``, and the case or the sequences that have to show it."""

    keys: dict[str, Any]
    change: Change
    at: Case | Lengths
    find: Callable[[Kernel, Any], list[str]] = failures_at

    def on(self, arch: str) -> ShownMutant:
        """Return the mutant of the kernel for another architecture."""
        return replace(self, keys={**self.keys, "arch": arch})

    @property
    def original(self) -> Kernel:
        """The kernel without the change."""
        return kernel_of(self.keys)

    @property
    def kernel(self) -> Kernel:
        """The kernel with it; AssertionError where it does not fit the source any more."""
        return self.original.with_code(self.change.apply(self.original.code))

    def is_reported(self) -> bool:
        """Run the mutant."""
        return bool(self.find(self.kernel, self.at))
