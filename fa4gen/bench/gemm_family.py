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
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.bench.peers import Peers
    from fa4gen.bench.work import Work
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.toolchain.model import CompiledKernel


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
        from dataclasses import replace

        from fa4gen.bench.gemm_peers import find_gemm_peers
        from fa4gen.bench.read_floor import ReadFloor

        del fa3  # has_fa3 is false
        peers = find_gemm_peers()
        return replace(peers, found=(*peers.found, ReadFloor()))

    @override
    def work(
        self, plan: GemmPlan, size: gemm_workload.GemmWorkload, numbers: RandomNumbers
    ) -> Work:
        from fa4gen.bench.gemm_work import GemmWork
        from fa4gen.bench.grouped_work import refuse_groups, refuse_uneven
        from fa4gen.bench.uneven_work import UnevenWork

        refuse_groups(plan)
        if plan.output_scales is not None:
            raise ConfigError(
                Problem(
                    f"{plan.name}: bench checks no output with scales yet",
                    "`fa4gen verify` checks it, and a call by `fa4gen.load` can be timed.",
                    key="output_scales",
                )
            )
        if size.k % plan.elements_per_byte:
            raise ConfigError(
                Problem(
                    f"{size.at}: two elements of {plan.dtype} share a byte along k, and k is odd",
                    f"Give a multiple of {plan.elements_per_byte} as k.",
                )
            )
        if size.uneven is None:
            return GemmWork(plan, size, numbers)
        refuse_uneven(plan, size)
        return UnevenWork(plan, size, numbers)

    @override
    def facts(self, plan: GemmPlan, compiled: CompiledKernel) -> dict[str, Any]:
        found = super().facts(plan, compiled)
        if plan.b_dtype != plan.dtype:
            found["b_dtype"] = plan.b_dtype
        if plan.scales:
            found["scales"] = " and ".join(row.words for row in plan.scales)
        if plan.gathers_rows:
            found["rows"] = "gathered"
        if plan.groups:
            found["groups"] = plan.groups
        return found

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
        stored = (SMALL_ROWS, SMALL_ROWS // plan.elements_per_byte)
        of_b = (1,) * bool(plan.groups)
        of_rows = (1,) * (plan.groups == "masked")
        a, b = zeros((*of_rows, *stored), plan.dtype), zeros((*of_b, *stored), plan.b_dtype)
        out_shape = (SMALL_ROWS, plan.output_columns(SMALL_ROWS))
        of_c = of_rows if plan.c.is_matrix else of_b
        c_shape = (*of_c, *plan.c_extents(*out_shape))
        extents = {row: row.extents(*square, SMALL_ROWS) for row in plan.scales}
        leads = {"a": of_rows, "b": of_b}
        counts = {"offsets": {"row_offsets": 2}, "masked": {"row_counts": 1}}
        return {
            "a": a if plan.a_major == "k" else a.swapaxes(-2, -1),
            "b": b.swapaxes(-2, -1) if plan.b_major == "k" else b,
            "c": zeros(c_shape, plan.out_dtype) if plan.c.exists else None,
            "out": zeros((*of_rows, *out_shape), plan.out_dtype),
            **{
                row.name: zeros(
                    (*leads[row.operand], *(given[axis] for axis in row.axes[1:])), row.dtype
                )
                for row, given in extents.items()
            },
            **({"row_index": zeros((SMALL_ROWS,), "int32")} if plan.gathers_rows else {}),
            **{
                name: zeros((number,), "int32")
                for name, number in counts.get(plan.groups or "", {}).items()
            },
        }


GEMM = GemmFamily()
