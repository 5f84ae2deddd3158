"""The interface of verify to a kernel family; the registry of designs names the class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.designs import registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.plans import Plan
    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.runtime.tensor_map import TensorMapSpec
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.verify.buffers import CaseMemory
    from fa4gen.verify.edges.edge import Edge
    from fa4gen.verify.exercise import Wanted
    from fa4gen.verify.verdict import NamedCase, Reference
    from fa4gen.verify.work_done import Rescales, Tiles
    from fa4gen.verify.workspace import Kept


class Problem(Protocol):
    """A case with its inputs."""

    @property
    def memory(self) -> CaseMemory:
        """The buffers that a kernel works on a copy of."""

    def reference(self, xp: Any) -> Reference:
        """Compute the exact results and the bounds on a kernel's errors, with NumPy or CuPy."""


@dataclass(frozen=True)
class EmulatedLaunch:
    """The arguments of a launch, by the name of the kernel's parameter."""

    grid: int
    values: Mapping[str, Any]
    """Numbers, and arrays that are not tensors of the case."""
    maps: Mapping[str, TensorMapSpec]
    pointers: tuple[str, ...] = field(default=())
    """Parameters that are the address of the tensor of the same name, where the case has one."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """Memory that all launches of the kernel use in turn."""


@dataclass(frozen=True)
class SteadyWork:
    """A case in which every CTA repeats the same work: the subject of a timeline."""

    case: NamedCase
    words: str
    """The work of a CTA: "one tile of queries, 8 blocks of keys"."""
    turns: int
    """The number of its repetitions."""


class Family(Protocol):
    """The cases of one plan, and how its kernel is called."""

    def default_cases(self) -> tuple[NamedCase, ...]:
        """Return the cases for a GPU, plain ones first."""

    def emulated_cases(self) -> tuple[NamedCase, ...]:
        """Return the cases for the emulator: the same edges on little work."""

    def further_cases(self, wanted: Wanted) -> tuple[NamedCase, ...]:
        """Return cases for the emulator, likely ones first, for code that its own did not reach."""

    def edges(self) -> tuple[Edge, ...]:
        """Return the edges of the plan, those that no case reaches among them."""

    def reached(self, case: Any) -> frozenset[str]:
        """Return the names of the edges that a case is at."""

    def cost(self, case: Any) -> float:
        """Return the emulator's approximate time for a case, in blocks of keys or of K."""

    def score_tiles(self, case: Any) -> dict[str, int]:
        """Count blocks of keys that the mask leaves full, partial or empty; {} without masks."""

    def tiles(self, case: Any, coverage: Coverage) -> Tiles | None:
        """Return the tiles that CTAs worked on in a case; None where that is not known."""

    def rescales(self, coverages: Iterable[Coverage]) -> Rescales | None:
        """Count lazy rescaling in the cases; None of kernels without it."""

    def large_cases(self) -> tuple[NamedCase, ...]:
        """Return cases with a reference computed on the GPU."""

    def steady_work(self, ctas: int, blocks: int) -> SteadyWork:
        """Return a case with the same work for each of ``ctas`` CTAs: ``blocks`` blocks a tile."""

    def draw(self, case: Any, seed: int) -> Problem:
        """Draw the inputs of one of the cases and lay them out in memory."""

    def gpu_kernel(self, cubin: bytes) -> Any:
        """Return the launcher of a compiled kernel."""

    def call(self, kernel: Any, arrays: Mapping[str, Any], memory: Any) -> None:
        """Call the launcher with the tensors of ``memory``, by name, on the GPU."""

    def emulated_launch(
        self, views: Mapping[str, TensorView], memory: Any, multiprocessors: int
    ) -> EmulatedLaunch | None:
        """Return the launch of the launcher; None without any work."""


def family_of(plan: Plan) -> Family:
    """Return the verify family of ``plan``."""
    family: Family = registry.family_of(plan).verify.load()(plan)
    return family
