"""What bench needs to know about a kernel family, in one place.

A family's own modules are imported when needed: the command line starts without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.bench import gemm_workload, workload
from fa4gen.designs.shared.gemm_model import GemmPlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.bench.peers import Peers
    from fa4gen.bench.results import ConfigResult
    from fa4gen.bench.run import BenchOptions
    from fa4gen.designs.shared.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.verify.build import BuiltKernel


class KernelTimer(Protocol):
    """Times kernels of one family, one after the other."""

    def time_kernel(self, plan: Any, compiled: CompiledKernel, config: str = "") -> ConfigResult:
        """Time one kernel at every size; Fa4genError for one whose output is wrong."""


class Family(Protocol):
    """What is timed for a family of kernels, with which peers, and how it is reported."""

    @property
    def name(self) -> str:
        """The config key ``kernel``."""

    @property
    def title(self) -> str:
        """What is timed, for the head of a picture."""

    @property
    def default_sizes(self) -> str:
        """What ``--sizes`` is when it is not given."""

    @property
    def size_columns(self) -> tuple[str, ...]:
        """Headings of the columns that describe a size."""

    @property
    def axis(self) -> str:
        """Label of a picture's size axis."""

    @property
    def has_fa3(self) -> bool:
        """Whether FlashAttention-3 is a peer, which ``--fa3`` and ``--cudart`` name."""

    @property
    def protocol(self) -> Mapping[str, Any]:
        """The JSON file's entries about the sizes and the data."""

    def parse_sizes(self, text: str) -> tuple[Any, ...]:
        """Parse ``--sizes``; ConfigError for invalid ones."""

    def find_peers(self, fa3: Path | None, cudart: Path | None) -> Peers:
        """Return the peers of this machine; MissingCapabilityError for one that does not load."""

    def make_timer(
        self, options: BenchOptions, peers: Peers, kernels: Sequence[BuiltKernel]
    ) -> KernelTimer:
        """Return a timer for ``kernels``: it may compare one with another."""

    def describe(self, facts: Mapping[str, Any]) -> str:
        """Describe what a config computes, for the title of its table."""

    def panel(self, facts: Mapping[str, Any]) -> str:
        """Return the title of the panel of a picture that a config belongs in."""

    def line(self, facts: Mapping[str, Any]) -> str:
        """Return what a config's line is called in that panel."""

    def size_word(self, size: Mapping[str, Any]) -> str:
        """Return a size of the JSON file in a word, as ``--sizes`` takes it."""

    def conditions(self, protocol: Mapping[str, Any]) -> tuple[str, ...]:
        """Describe what all sizes share, for a picture; ``protocol`` is the JSON file's."""


class AttentionFamily:
    """Attention forward."""

    name = "attention"
    title = "attention forward"
    default_sizes = workload.DEFAULT_SIZES
    size_columns = ("rows", "batch")
    axis = "rows"
    has_fa3 = True
    protocol: Mapping[str, Any] = {
        "tokens": workload.TOKENS,
        "columns": workload.COLUMNS,
        "data": "N(0, 1)",
    }

    def parse_sizes(self, text: str) -> tuple[int, ...]:
        """See Family."""
        return workload.parse_sizes(text)

    def find_peers(self, fa3: Path | None, cudart: Path | None) -> Peers:
        """See Family."""
        from fa4gen.bench.peers import find_peers

        return find_peers(fa3, cudart)

    def make_timer(
        self, options: BenchOptions, peers: Peers, kernels: Sequence[BuiltKernel]
    ) -> KernelTimer:
        """See Family."""
        from fa4gen.bench.run import Bench

        del kernels  # each is compared with its peers only
        return Bench(options, peers.found)

    def describe(self, facts: Mapping[str, Any]) -> str:
        """See Family."""
        return f"{facts['dtype']}, depth {facts['depth']}, {workload.mask_word(facts)}"

    def panel(self, facts: Mapping[str, Any]) -> str:
        """See Family."""
        mask = workload.mask_word(facts)
        return f"{facts['dtype']}, {'no mask' if mask == 'none' else mask}"

    def line(self, facts: Mapping[str, Any]) -> str:
        """See Family."""
        return f"depth {facts['depth']}"

    def size_word(self, size: Mapping[str, Any]) -> str:
        """See Family."""
        return workload.size_word(size["rows"])

    def conditions(self, protocol: Mapping[str, Any]) -> tuple[str, ...]:
        """See Family."""
        tokens, columns = protocol["tokens"], protocol["columns"]
        return (f"Batch x rows = {tokens}, heads x depth = {columns}, random data",)


class GemmFamily:
    """Matrix products."""

    name = "gemm"
    title = "matrix product"
    default_sizes = gemm_workload.DEFAULT_SIZES
    size_columns = ("m", "n", "k")
    axis = "m = n = k, or m x n x k"
    has_fa3 = False
    protocol: Mapping[str, Any] = gemm_workload.PROTOCOL

    def parse_sizes(self, text: str) -> tuple[gemm_workload.GemmWorkload, ...]:
        """See Family."""
        return gemm_workload.parse_sizes(text)

    def find_peers(self, fa3: Path | None, cudart: Path | None) -> Peers:
        """See Family."""
        from fa4gen.bench.gemm_peers import find_gemm_peers

        del fa3, cudart  # has_fa3 is false
        return find_gemm_peers()

    def make_timer(
        self, options: BenchOptions, peers: Peers, kernels: Sequence[BuiltKernel]
    ) -> KernelTimer:
        """See Family."""
        from fa4gen.bench.gemm_run import GemmBench

        others = [
            (kernel.plan, kernel.compiled)
            for kernel in kernels
            if isinstance(kernel.plan, GemmPlan) and kernel.compiled is not None
        ]
        return GemmBench(options, peers.found, others)

    def describe(self, facts: Mapping[str, Any]) -> str:
        """See Family."""
        return gemm_workload.problem_words(facts)

    def panel(self, facts: Mapping[str, Any]) -> str:
        """See Family."""
        return str(facts["dtype"])

    def line(self, facts: Mapping[str, Any]) -> str:
        """See Family."""
        return gemm_workload.problem_words(facts).removeprefix(f"{facts['dtype']}, ")

    def size_word(self, size: Mapping[str, Any]) -> str:
        """See Family."""
        return str(size["word"])

    def conditions(self, protocol: Mapping[str, Any]) -> tuple[str, ...]:
        """See Family."""
        del protocol
        return ("Random data, cold L2",)


ATTENTION = AttentionFamily()
GEMM = GemmFamily()
FAMILIES: Mapping[str, Family] = {family.name: family for family in (ATTENTION, GEMM)}


def family_of(plan: Plan) -> Family:
    """Return the family of a plan."""
    return GEMM if isinstance(plan, GemmPlan) else ATTENTION


def family_measured(config: Mapping[str, Any]) -> Family:
    """Return the family of a measured config of the JSON file: attention's sizes have rows."""
    return ATTENTION if "rows" in config["sizes"][0] else GEMM


def family_called(name: str) -> Family:
    """Return the family called ``name``; KeyError when there is none."""
    return FAMILIES[name]
