"""Rules between the keys of a Blackwell attention config, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.limits import back_to_auto
from fa4gen.designs.attention_sm100.memory import KEY_STEP, are_parts_of, panel_columns
from fa4gen.designs.common.limits import range_of_fp8
from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.memory import FA4Memory


def broken_rules(plan: FA4Memory) -> Iterator[Refusal]:
    """Yield the config's requests that do not go together."""
    yield from _parts_of_depth(plan)
    yield from _parts_of_keys(plan)
    yield from _fused_ring(plan)
    yield from _staging(plan)
    yield from _pair(plan)
    yield from range_of_fp8(plan)


def _parts_of_depth(plan: FA4Memory) -> Iterator[Refusal]:
    parts, panels = plan.num_qk_stages, plan.num_panels
    if panels % parts:
        divisors = [n for n in range(parts, 0, -1) if panels % n == 0]
        yield Refusal(
            kind="parts of the depth",
            message=f"num_qk_stages: {parts} parts do not split the {panels} swizzled panels "
            f"({plan.panel_columns} columns each) of depth {plan.depth}",
            keys=("num_qk_stages",),
            remedies=([{"num_qk_stages": n} for n in divisors],),
        )


def _parts_of_keys(plan: FA4Memory) -> Iterator[Refusal]:
    parts = plan.num_pv_stages
    steps = plan.BN // KEY_STEP
    if not are_parts_of(plan.BN, parts):
        fitting = [n for n in range(parts, 0, -1) if steps % n == 0]
        yield Refusal(
            kind="parts of the keys",
            message=f"num_pv_stages: {parts} parts do not split the {steps} steps of {KEY_STEP} "
            f"keys of BN = {plan.BN}",
            keys=("num_pv_stages", "BN"),
            remedies=([{"num_pv_stages": n} for n in fitting],),
        )


def _fused_ring(plan: FA4Memory) -> Iterator[Refusal]:
    if plan.kv_ring != "fused":
        return
    to_separate: Changes = {"kv_ring": "separate"}
    if plan.num_qk_stages > 1:
        yield Refusal(
            kind="parts in a fused ring",
            message=f"num_qk_stages: {plan.num_qk_stages} needs separate rings: a slot of a "
            "fused ring holds keys, then values, and arrives whole",
            keys=("num_qk_stages", "kv_ring"),
            remedies=([{"num_qk_stages": 1}], [to_separate]),
            last_resort=back_to_auto(plan.config),
        )
    if plan.num_kv_stages < 2:
        yield Refusal(
            kind="short fused ring",
            message="num_kv_stages: a fused ring of 1 slot deadlocks: the values of one block and "
            "the keys of the next are held at once",
            keys=("num_kv_stages", "kv_ring"),
            remedies=([{"num_kv_stages": 2}], [to_separate]),
            last_resort=back_to_auto(plan.config),
        )


def _staging(plan: FA4Memory) -> Iterator[Refusal]:
    if plan.output_staging == "query" and plan.out_bytes > plan.query_bytes:
        yield Refusal(
            kind="wide output",
            message=f"output_staging: query has {plan.query_bytes} bytes for a query tile, but "
            f"its output takes {plan.out_bytes}",
            keys=("output_staging",),
            remedies=([{"output_staging": "own"}],),
            last_resort=back_to_auto(plan.config),
        )


def _pair(plan: FA4Memory) -> Iterator[Refusal]:
    if not plan.is_pair:
        return
    if not panel_columns(plan.value_depth // 2, plan.element_bytes):
        yield Refusal(
            kind="half of the values",
            message=f"cta_group: 2 gives each CTA half of {plan.value_depth} columns of values, "
            "which no swizzled panel of 32, 64 or 128 bytes tiles",
            keys=("cta_group",),
            remedies=([{"cta_group": 1}],),
            last_resort=({"cta_group": 1, **more} for more in back_to_auto(plan.config)),
        )
