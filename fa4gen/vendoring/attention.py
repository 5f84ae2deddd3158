"""Attention in vendoring: an object for the protocol in ``family``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fa4gen.designs.common.score_text import GIVEN
from fa4gen.errors import ConfigError, Problem
from fa4gen.masks import mask_numbers
from fa4gen.masks.expression import ExpressionMask
from fa4gen.runtime.arguments import OPTIONAL, Arguments
from fa4gen.runtime.problem_limits import largest_row_count
from fa4gen.runtime.schedule import in_groups
from fa4gen.scores import score_numbers
from fa4gen.scores.expression import ExpressionScore
from fa4gen.vendoring.call_structs import attention_args
from fa4gen.vendoring.expression_c import expression_in_c
from fa4gen.vendoring.launcher_facts import ARRAYS, DTYPES, MAP_DTYPES
from fa4gen.vendoring.passed_tensors import passed_tensors
from fa4gen.vendoring.selftest_facts import SelftestFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.expressions.tree import Node
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.vendoring.binding import AttentionArgs
    from fa4gen.vendoring.launcher_facts import LauncherFacts, MapFacts
    from fa4gen.verify.memory import AttentionMemory


class AttentionFamily:
    """Attention forward."""

    IN_EVERY_FOLDER = True

    def refuse(self, plan: AttentionPlan) -> None:
        """Raise ConfigError for a kernel that the C launcher cannot call."""
        if plan.declared_tensors and plan.has_tile_lengths:
            raise ConfigError(
                Problem(
                    "parameters: the C launcher passes no tensors with sequences of different "
                    "lengths yet",
                    remedy="call the kernel by fa4gen.load",
                    key="parameters",
                )
            )
        if plan.has_lines_of_keys:
            raise ConfigError(
                Problem(
                    "value_major: keys: the C launcher takes values with contiguous columns only",
                    remedy="call the kernel by fa4gen.load",
                    key="value_major",
                )
            )
        if plan.takes_blocks:
            raise ConfigError(
                Problem(
                    "blocks: the C launcher passes no lists of blocks that a call names yet",
                    remedy="call the kernel by fa4gen.load, or use blocks: listed",
                    key="blocks",
                )
            )
        passed_tensors(plan)
        if isinstance(plan.mask, ExpressionMask) and plan.splits_keys:
            raise ConfigError(
                Problem(
                    f"mask: {plan.mask.name}: the C self-test has no reference for conditions of "
                    "decode kernels yet",
                    remedy="call the kernel by fa4gen.load, or use a mask with a name",
                    key="mask",
                )
            )

    def launcher_facts(self, plan: AttentionPlan, facts: LauncherFacts) -> LauncherFacts:
        """Return ``facts`` with those of attention."""
        if plan.tile_list is not None:
            facts = replace(
                facts,
                list_entry=plan.tile_list.entry_point,
                list_threads=plan.tile_list.threads,
                list_rows=plan.tile_list.tile_rows,
                group_keys=plan.group_keys,
                list_parameters=tuple(row.name for row in plan.tile_list.parameters),
            )
        if plan.splits_keys:
            facts = _with_shares(plan, facts)
        places = {name: f"given[{number}]" for number, name in enumerate(plan.given_names)}
        named = not isinstance(plan.mask, ExpressionMask) and not plan.score.IS_EXPRESSION
        return replace(
            facts,
            parameters=tuple(places.get(name, name) for name in facts.parameters),
            tensors=passed_tensors(plan),
            lists_blocks=plan.lists_blocks,
            score_is_expression=plan.score.IS_EXPRESSION,
            maps=tuple(_with_panels(plan, row) for row in facts.maps),
            ctas_per_tile=plan.ctas_per_tile,
            tile_heads=plan.tile_heads,
            mixed_tile_heights=plan.mixed_tile_heights,
            grouped=in_groups(plan),
            arrays=_arrays(plan),
            page_size=plan.page_size or 0,
            page_scales=plan.has_page_scales,
            kv_element_bytes=plan.kv_element_bytes,
            values_in_keys=plan.values_in_keys,
            max_extent=largest_row_count(plan),
            max_query_rows=plan.mask.most_rows or 0,
            default_scale=plan.depth**-0.5,
            depth=plan.depth,
            value_depth=plan.value_depth,
            mask=f"MASK_{plan.mask.name.upper()}" if named else "",
            in_order=plan.mask.IN_ORDER,
            mask_numbers=tuple(plan.mask.numbers().get(name, 0) for name in mask_numbers()),
            score=plan.score.name,
            score_numbers=tuple(plan.score.numbers().get(name, 0.0) for name in score_numbers()),
            lse=plan.lse,
        )

    def selftest_facts(self, plan: AttentionPlan) -> SelftestFacts:
        """Return the facts of a kernel for the self-test."""
        from fa4gen.verify.rounding import Precision

        precision = Precision.of(plan)
        named = not isinstance(plan.mask, ExpressionMask)
        return SelftestFacts(
            rows=plan.tile_queries,
            columns=plan.BN,
            stage_depth=0,
            ring=plan.keys_past_ring,
            part_rows=plan.part_rows,
            descales=plan.has_descales,
            kv_dtype=DTYPES[plan.kv_dtype],
            operand=DTYPES[plan.operand_dtype],
            rescale_threshold=precision.rescale_threshold,
            probability_shift=precision.probability_shift,
            exp2_error=precision.exp2_error,
            cut_units=precision.sums.score_units if precision.sums else 0.0,
            products_per_step=0,
            alignment_bits=0,
            activation=None,
            activation_float=None,
            condition=_condition(plan),
            score=_in_c(plan, plan.score.tree) if isinstance(plan.score, ExpressionScore) else None,
            mask=f"MASK_{plan.mask.name.upper()}" if named else "",
        )

    def case_args(
        self, plan: AttentionPlan, views: Mapping[str, TensorView], memory: AttentionMemory
    ) -> AttentionArgs:
        """Return the arguments of a call with the tensors of one of verify's cases.

        A softmax scale that is the default is left to the launcher.
        """
        scale = 0.0 if memory.softmax_scale is None else memory.softmax_scale
        return _args(plan, views, scale, memory.layout)

    def peer_args(
        self, plan: AttentionPlan, views: Mapping[str, TensorView], *, alpha: float, beta: float
    ) -> AttentionArgs:
        """Return the arguments of a call for bench."""
        del alpha, beta
        return _args(plan, views, plan.depth**-0.5, "bshd")


def _args(
    plan: AttentionPlan, views: Mapping[str, TensorView], softmax_scale: float, layout: str
) -> AttentionArgs:
    """Return the arguments of a call with the views, by the names of the arguments."""
    optional: Any = {name: views.get(name) for name in OPTIONAL}
    return attention_args(
        plan,
        Arguments(
            views["query"], views["key"], views["value"], views["out"], views.get("lse"),
            softmax_scale, layout, **optional,
            tensors=tuple((name.removeprefix(GIVEN), views.get(name)) for name in plan.given_names),
        ),
    )  # fmt: skip


def _condition(plan: AttentionPlan) -> str | None:
    return _in_c(plan, plan.mask.tree) if isinstance(plan.mask, ExpressionMask) else None


def _in_c(plan: AttentionPlan, tree: Node) -> str:
    return expression_in_c(tree, plan.declared_tensors)


def _with_shares(plan: AttentionPlan, facts: LauncherFacts) -> LauncherFacts:
    """Return ``facts`` of a kernel whose CTAs share keys; tickets are what a launch leaves zero."""
    by_split = plan.workspace_bytes(1, 2) != plan.workspace_bytes(1, 1)
    return replace(
        facts,
        workspace_bytes=plan.ticket_bytes,
        share_limit=plan.most_ctas,
        share_blocks=plan.line_step,
        share_keys=plan.line_keys,
        share_bytes=plan.workspace_bytes(1, 1) - plan.ticket_bytes,
        by_split=by_split,
        sequence_limit=plan.most_sequences or 0,
    )


def _arrays(plan: AttentionPlan) -> int:
    """Return the ARRAYS that the kernel takes, as bits."""
    taken = {table.name for table in (*plan.query_source.tables, *plan.key_source.tables)}
    taken |= {f"{name}_descale" for name in plan.descaled}
    taken |= {"sinks"} if plan.sinks else set()
    return sum(1 << i for i, name in enumerate(ARRAYS) if name in taken)


def _with_panels(plan: AttentionPlan, row: MapFacts) -> MapFacts:
    depth = plan.value_depth if row.tensor in ("value", "out") else plan.depth
    if row.tensor in ("key", "value"):
        row = replace(row, dtype=MAP_DTYPES[plan.kv_dtype])
    return replace(row, panels=depth // row.box[0])


ATTENTION = AttentionFamily()
