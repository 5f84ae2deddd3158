"""The tuning of matrix products: see ``family``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.bench.gemm_workload import GemmWorkload, parse_sizes
from fa4gen.errors import ConfigError, Problem
from fa4gen.overriding import override
from fa4gen.tune.family import Family
from fa4gen.tune.model.gemm import HALF_ROWS, GemmTile, predict_gemm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.tune.model.chips import Chip
    from fa4gen.tune.model.prediction import Prediction


FEW_COLUMNS = 128
"""Columns of an output of at most 64 rows, where three extents look like those of attention."""
DEPTHS = (64, 96, 128, 192, 256)
"""Extents along k that look like attention's depth, after a batch, heads and longer rows."""


class GemmFamily(Family):
    """Matrix products."""

    name = "gemm"
    columns = ("m", "n", "k", "batch")
    axes = ("m",)
    arrays = ("a", "b")
    alike = 1.03
    tuning_keys = frozenset(
        {
            "BM",
            "BN",
            "BK",
            "num_stages",
            "num_epi_stages",
            "cta_group",
            "share",
            "swap_operands",
            "split_k",
            "evict_first",
            "short_ends",
            "output_in_ring",
            "num_consumer_warpgroups",
            "ping_pong",
            "multiply_ahead",
            "registers",
            "num_accum_stages",
            "stage_stride_cols",
            "num_out_stages",
            "scheduler",
        }
    )

    @override
    def parse_problem(self, text: str) -> GemmWorkload:
        try:
            (workload,) = parse_sizes(text)
        except (ConfigError, ValueError) as error:
            raise ConfigError(
                Problem(
                    f"{text.strip()!r} is not the problem of a matrix product",
                    "Give m x n x k, batch x m x n x k, or groups x rows : n x k: 16x4096x14336, "
                    "8x1kx1kx1k, 32x256:4096x7168; uneven groups: 32/8192@0:4096x7168, "
                    "0+17+300:4096x7168.",
                )
            ) from error
        return workload

    @override
    def problem(self, extents: Mapping[str, int]) -> GemmWorkload:
        given = self.read_extents(extents, {"batch": 1})
        return GemmWorkload(*(given[name] for name in self.columns))

    @override
    def call_extents(self, plan: GemmPlan, problem: GemmWorkload) -> dict[str, int]:
        uneven = problem.uneven
        of_call = {"m": uneven.most} if uneven is not None and plan.groups == "masked" else {}
        return {**self.extents(problem), **of_call}

    @override
    def word(self, problem: GemmWorkload) -> str:
        return problem.at

    @override
    def details(self, problem: GemmWorkload) -> str:
        return "" if problem.uneven is None else f"rows {problem.uneven.text}"

    @override
    def flop(self, plan: GemmPlan, problem: GemmWorkload) -> float:
        del plan
        return problem.flop

    @override
    def refuse_problem(self, plan: GemmPlan, problem: GemmWorkload) -> None:
        from fa4gen.bench.grouped_work import refuse_groups, refuse_uneven
        from fa4gen.tune.contiguous import padded_problem, refusals

        refuse_groups(plan)
        refuse_uneven(plan, problem)
        found = refusals(plan, problem)
        if found:
            padded = self.word(padded_problem(plan, problem))
            raise ConfigError(
                Problem(
                    f"{self.word(problem)}: no call takes such contiguous matrices: {found[0]}",
                    f"Give {padded}, the extents to which calls pad such rows.",
                )
            )

    @override
    def array_bytes(self, plan: GemmPlan, problem: GemmWorkload) -> int:
        return problem.bytes_moved(plan)

    @override
    def doubt(self, plan: GemmPlan, problem: GemmWorkload) -> str:
        del plan
        p = problem
        order = "A matrix product's size is m x n x k, or batch x m x n x k"
        if p.batch == 1 and p.m <= HALF_ROWS and p.n <= FEW_COLUMNS and p.k > p.n:
            return f"{p.m} rows and {p.n} columns: is this attention's size? {order}."
        if p.batch > 1 and p.m <= FEW_COLUMNS and p.n > p.k and p.k in DEPTHS:
            return f"{p.m} rows, k = {p.k}: is this the shape of attention's arrays? {order}."
        return ""

    @override
    def predict(self, plan: GemmPlan, problem: GemmWorkload, chip: Chip) -> Prediction:
        return predict_gemm(GemmTile.of(plan), problem, chip)

    @override
    def suits(self, plan: GemmPlan, problem: GemmWorkload) -> bool:
        return GemmTile.of(plan).suits(problem)

    @override
    def is_refined(self, plan: GemmPlan, refined: GemmPlan) -> bool:
        same = plan.num_epi_stages == refined.num_epi_stages
        return same or plan.num_stages < refined.num_stages

    @override
    def problem_of_call(self, plan: GemmPlan, key: Any) -> GemmWorkload:
        from fa4gen.runtime.refusal import refusal

        a, b, _ = key
        if not 2 <= len(a) <= 3:
            raise refusal("a", f"shape {tuple(a)}", "(m, k) or (batch, m, k)")
        if not 2 <= len(b) <= 3 or b[-2] != a[-1]:
            raise refusal("b", f"shape {tuple(b)}", f"(k, n) with k = {a[-1]}")
        k, batch = a[-1] * plan.elements_per_byte, max(1, *a[:-2], *b[:-2], 1)
        rows = -(-a[-2] // batch) if plan.groups == "offsets" else a[-2]  # of a group, on average
        return GemmWorkload(max(1, rows), b[-1], k, batch)


GEMM = GemmFamily()
