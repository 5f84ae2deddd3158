"""The tuning of attention forward: see ``family``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from fa4gen.errors import ConfigError, Problem
from fa4gen.overriding import override
from fa4gen.runtime.problem_limits import largest_query_count
from fa4gen.tune.family import Family
from fa4gen.tune.model.attention import AttentionProblem, AttentionTile, predict_attention
from fa4gen.tune.model.shared_keys import SharedKeysTile, predict_shared_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.decode_model import SharedKeysPlan
    from fa4gen.tune.model.chips import Chip
    from fa4gen.tune.model.prediction import Prediction

_NUMBER = r"([0-9]{1,7})(k?)"
_PROBLEM = re.compile(rf"{_NUMBER}x{_NUMBER}(?:/{_NUMBER})?x{_NUMBER}(?:x{_NUMBER})?")
MOST = 1 << 20
MANY_HEADS = 1024
"""More query heads than models have."""


class AttentionFamily(Family):
    """Attention forward, of sequences of one length."""

    name = "attention"
    columns = ("batch", "heads", "key_heads", "rows", "keys")
    axes = ("keys", "rows")
    arrays = ("query", "key")
    alike = 1.05
    tuning_keys = frozenset(
        {
            "BM",
            "BN",
            "tile_heads",
            "packed_rows",
            "split_keys",
            "num_kv_stages",
            "num_qk_stages",
            "num_pv_stages",
            "kv_ring",
            "output_staging",
            "cta_group",
            "scheduler",
            "overlap",
            "num_pv_chunks_in_flight",
            "ping_pong",
            "overlap_epilogue",
            "epilogue",
            "registers",
        }
    )

    @override
    def parse_problem(self, text: str) -> AttentionProblem:
        match = _PROBLEM.fullmatch(text.strip().lower())
        numbers = [] if match is None else [match.group(i, i + 1) for i in range(1, 11, 2)]
        values = [int(n) * (1024 if k else 1) if n else None for n, k in numbers]
        if match is not None and all(value is None or 1 <= value <= MOST for value in values):
            batch, heads, key_heads, rows, keys = values
            given = {"batch": batch, "heads": heads, "key_heads": key_heads, "rows": rows}
            more = {"keys": keys}
            return self.problem({k: v for k, v in (given | more).items() if v is not None})
        raise ConfigError(
            Problem(
                f"{text.strip()!r} is not the problem of attention",
                "Give batch x heads x rows, or batch x heads/key heads x rows x keys: 2x16x4k, "
                "2x32/8x512x16k.",
            )
        )

    @override
    def problem(self, extents: Mapping[str, int]) -> AttentionProblem:
        defaults = {"batch": 1}
        if "heads" in extents:
            defaults["key_heads"] = extents["heads"]
        if "rows" in extents:
            defaults["keys"] = extents["rows"]
        found = AttentionProblem(**self.read_extents(extents, defaults))
        if found.heads % found.key_heads:
            what = f"{found.heads} query heads are no multiple of {found.key_heads} key heads"
            raise ConfigError(Problem(what, "Each key head serves as many query heads."))
        return found

    @override
    def word(self, problem: AttentionProblem) -> str:
        p = problem
        heads = str(p.heads) if p.heads == p.key_heads else f"{p.heads}/{p.key_heads}"
        return f"{p.batch}x{heads}x{p.rows}x{p.keys}"

    @override
    def bench_size(self, problem: AttentionProblem) -> Any:
        from fa4gen.bench.batches import Batch

        p = problem
        rows, keys, heads = (p.rows,) * p.batch, (p.keys,) * p.batch, (p.heads, p.key_heads)
        return Batch(self.word(problem), rows, keys, heads)

    @override
    def flop(self, plan: AttentionPlan, problem: AttentionProblem) -> float:
        from fa4gen.bench.workload import visible_pairs

        pairs = visible_pairs(plan.mask, problem.rows, problem.keys)
        columns = plan.depth + plan.value_depth
        return 2.0 * problem.batch * problem.heads * columns * pairs

    @override
    def refuse(self, plan: AttentionPlan) -> None:
        if plan.splits_keys and plan.depth != plan.value_depth:
            raise ConfigError(
                Problem(
                    f"{plan.name}: the cost model does not know kernels whose keys hold the values",
                    "`fa4gen bench` times such kernels on a GPU.",
                )
            )

    @override
    def refuse_set(self, plan: AttentionPlan) -> None:
        self.refuse(plan)
        if plan.has_tile_lengths:
            raise ConfigError(
                Problem(
                    f"{plan.name}: only kernels of dense tensors are picked by shapes, without "
                    "pages, lengths and packed batches",
                    "Load the config alone; `fa4gen explain --problem` predicts its time.",
                )
            )

    @override
    def refuse_problem(self, plan: AttentionPlan, problem: AttentionProblem) -> None:
        most = largest_query_count(plan)
        if problem.rows > most:
            raise ConfigError(
                Problem(
                    f"{self.word(problem)}: {problem.rows} query rows, and a call of {plan.name} "
                    f"has at most {most}",
                    "Give fewer rows.",
                )
            )

    @override
    def array_bytes(self, plan: AttentionPlan, problem: AttentionProblem) -> int:
        p = problem
        columns = plan.depth + plan.value_depth
        keys = p.key_heads * p.keys * columns * plan.kv_element_bytes
        queries = plan.depth * plan.element_bytes + plan.value_depth * plan.out_element_bytes
        return p.batch * (keys + p.heads * p.rows * queries)

    @override
    def doubt(self, plan: AttentionPlan, problem: AttentionProblem) -> str:
        p = problem
        order = "Attention's size is batch x heads x rows, or batch x heads/key heads x rows x keys"
        if p.heads > MANY_HEADS:
            other = "an array's shape" if p.keys == plan.depth else "a matrix product's size"
            return f"{p.heads} heads: is this {other}? {order}."
        if p.keys == plan.depth and p.rows > p.keys:
            return f"{p.keys} keys, as many as the depth: is this an array's shape? {order}."
        return ""

    @override
    def predict(self, plan: AttentionPlan, problem: AttentionProblem, chip: Chip) -> Prediction:
        self.refuse(plan)
        if plan.splits_keys:
            tile = SharedKeysTile.of(cast("SharedKeysPlan", plan))
            return predict_shared_keys(tile, problem, chip)
        return predict_attention(AttentionTile.of(plan), problem, chip)

    @override
    def takes(self, plan: AttentionPlan, problem: AttentionProblem) -> bool:
        if problem.rows > largest_query_count(plan):
            return False
        return problem.heads // max(1, problem.key_heads) % plan.tile_heads == 0

    @override
    def problem_of_call(self, plan: AttentionPlan, key: Any) -> AttentionProblem:
        from fa4gen.runtime.refusal import refusal

        query, keys, layout = key
        for name, shape in (("query", query), ("key", keys)):
            if len(shape) != 4:
                raise refusal(name, f"shape {tuple(shape)}", "4 axes, of a dense kernel")
        rows, heads = (2, 1) if layout == "bhsd" else (1, 2)
        del plan
        return AttentionProblem(query[0], query[heads], keys[heads], query[rows], keys[rows])


ATTENTION = AttentionFamily()
