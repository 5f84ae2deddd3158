"""The bench of matrix products: see ``family``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.bench import gemm_workload
from fa4gen.bench.family import SMALL_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.bench.family import KernelTimer, Zeros
    from fa4gen.bench.peers import Peers
    from fa4gen.bench.run import BenchOptions
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.verify.build import BuiltKernel


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
        """Parse ``--sizes``: shapes of matrix products."""
        return gemm_workload.parse_sizes(text)

    def find_peers(self, fa3: Path | None) -> Peers:
        """Return the peers of this machine: cuBLAS by PyTorch."""
        from fa4gen.bench.gemm_peers import find_gemm_peers

        del fa3  # has_fa3 is false
        return find_gemm_peers()

    def make_timer(
        self, options: BenchOptions, peers: Peers, kernels: Sequence[BuiltKernel]
    ) -> KernelTimer:
        """Return a timer for matrix products."""
        from fa4gen.bench.gemm_run import GemmBench

        others: list[tuple[Any, CompiledKernel]] = [
            (kernel.plan, kernel.compiled) for kernel in kernels if kernel.compiled is not None
        ]
        return GemmBench(options, peers.found, others)

    def describe(self, facts: Mapping[str, Any]) -> str:
        """Describe the function of a config, for the title of its table."""
        return gemm_workload.problem_words(facts)

    def panel(self, facts: Mapping[str, Any]) -> str:
        """Return the type as the title of a panel."""
        return str(facts["dtype"])

    def line(self, facts: Mapping[str, Any]) -> str:
        """Return the config's function without its type, as the label of a line."""
        return gemm_workload.problem_words(facts).removeprefix(f"{facts['dtype']}, ")

    def size_word(self, size: Mapping[str, Any]) -> str:
        """Return a size of the JSON file in the form of ``--sizes``."""
        return str(size["word"])

    def conditions(self, protocol: Mapping[str, Any]) -> tuple[str, ...]:
        """Describe the conditions that all sizes share, for a picture."""
        del protocol
        return ("Random data, cold L2",)

    def small_tensors(self, plan: GemmPlan, zeros: Zeros) -> dict[str, Any]:
        """Return a launcher's arguments for a problem of a single tile."""
        square = (SMALL_ROWS, SMALL_ROWS)
        a, b = (zeros(square, plan.dtype) for _ in range(2))
        c_shape = plan.c.extents(*square)
        return {
            "a": a if plan.a_major == "k" else a.T,
            "b": b.T if plan.b_major == "k" else b,
            "c": zeros(c_shape, plan.out_dtype) if plan.c.exists else None,
            "out": zeros(square, plan.out_dtype),
        }

    def peer_tensors(self, plan: GemmPlan, operands: Sequence[Any]) -> dict[str, Any]:
        """Return the vendored launcher's arguments from operands, which are GemmArrays."""
        del plan
        return {name: getattr(operands[0], name) for name in ("a", "b", "c", "out")}


GEMM = GemmFamily()
