"""The bench of matrix products: see ``family``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.bench import gemm_workload
from fa4gen.bench.family import SMALL_ROWS, Family
from fa4gen.errors import ConfigError, Problem
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.bench.family import Zeros
    from fa4gen.bench.gemm_peers import GemmOperands
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.bench.peers import Peers
    from fa4gen.bench.work import Work
    from fa4gen.designs.common.gemm_model import GemmPlan


class GemmFamily(Family):
    """Matrix products."""

    name = "gemm"
    title = "matrix product"
    default_sizes = gemm_workload.DEFAULT_SIZES
    size_columns = ("m", "n", "k")
    axis = "m = n = k, or m x n x k"
    peers_judge = True
    protocol: ClassVar[Mapping[str, Any]] = gemm_workload.PROTOCOL
    fact_names = (
        *("kernel", "arch", "dtype", "out_dtype", "a_major", "b_major", "residual", "activation"),
        *("BM", "BN", "BK", "num_stages", "num_epi_stages", "cta_group", "scheduler"),
        *("num_consumer_warpgroups", "ping_pong", "num_accum_stages", "num_out_stages"),
        *("swap_operands", "split_k", "evict_first"),
    )

    @override
    def parse_sizes(self, text: str) -> tuple[gemm_workload.GemmWorkload, ...]:
        return gemm_workload.parse_sizes(text)

    @override
    def find_peers(self, fa3: Path | None = None) -> Peers:
        from fa4gen.bench.gemm_peers import find_gemm_peers

        del fa3  # has_fa3 is false
        return find_gemm_peers()

    @override
    def work(
        self, plan: GemmPlan, size: gemm_workload.GemmWorkload, numbers: RandomNumbers
    ) -> Work:
        from fa4gen.bench.gemm_work import GemmWork

        if plan.scales or "fp8_e5m2" in (plan.dtype, plan.b_dtype):
            left = "scales of blocks" if plan.scales else "operands of fp8_e5m2"
            raise ConfigError(
                Problem(
                    f"{plan.name}: bench passes no {left} yet",
                    "`python benchmarks/scaled_products.py` times such kernels on Hopper; `fa4gen "
                    "tune --no-measure` lets the cost model choose.",
                    key="scales" if plan.scales else "dtype",
                )
            )
        return GemmWork(plan, size, numbers)

    @override
    def compared_with(
        self, facts: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
    ) -> int | None:
        from fa4gen.bench.residual import most_alike

        return most_alike(facts, others)

    @override
    def describe(self, facts: Mapping[str, Any]) -> str:
        return gemm_workload.problem_words(facts)

    @override
    def panel(self, facts: Mapping[str, Any]) -> str:
        return str(facts["dtype"])

    @override
    def line(self, facts: Mapping[str, Any]) -> str:
        return gemm_workload.problem_words(facts).removeprefix(f"{facts['dtype']}, ")

    @override
    def small_tensors(self, plan: GemmPlan, zeros: Zeros) -> dict[str, Any]:
        square = (SMALL_ROWS, SMALL_ROWS)
        a, b = (zeros(square, plan.dtype) for _ in range(2))
        c_shape = plan.c.extents(*square)
        return {
            "a": a if plan.a_major == "k" else a.T,
            "b": b.T if plan.b_major == "k" else b,
            "c": zeros(c_shape, plan.out_dtype) if plan.c.exists else None,
            "out": zeros(square, plan.out_dtype),
        }

    @override
    def peer_tensors(self, plan: GemmPlan, operands: GemmOperands) -> dict[str, Any]:
        del plan
        return {name: getattr(operands, name) for name in ("a", "b", "c", "out")}


GEMM = GemmFamily()
