"""Rules between the keys of a Blackwell attention config, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.suggested_fixes import back_to_auto
from fa4gen.designs.attention_sm100.values import KEY_STEP, are_parts_of, panel_columns
from fa4gen.designs.common.limits import range_of_fp8
from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.values import Values


def broken_rules(values: Values) -> Iterator[Refusal]:
    """Yield the config's requests that do not go together."""
    yield from _parts_of_depth(values)
    yield from _parts_of_keys(values)
    yield from _fused_ring(values)
    yield from _staging(values)
    yield from _pair(values)
    yield from range_of_fp8(values)


def _parts_of_depth(values: Values) -> Iterator[Refusal]:
    parts, panels = values.num_qk_stages, values.num_panels
    if panels % parts:
        divisors = [n for n in range(parts, 0, -1) if panels % n == 0]
        yield Refusal(
            kind="parts of the depth",
            message=f"num_qk_stages: {parts} parts do not split the {panels} swizzled panels "
            f"({values.panel_columns} columns each) of depth {values.depth}",
            keys=("num_qk_stages",),
            remedies=([{"num_qk_stages": n} for n in divisors],),
        )


def _parts_of_keys(values: Values) -> Iterator[Refusal]:
    parts = values.num_pv_stages
    steps = values.BN // KEY_STEP
    if not are_parts_of(values.BN, parts):
        fitting = [n for n in range(parts, 0, -1) if steps % n == 0]
        yield Refusal(
            kind="parts of the keys",
            message=f"num_pv_stages: {parts} parts do not split the {steps} steps of {KEY_STEP} "
            f"keys of BN = {values.BN}",
            keys=("num_pv_stages", "BN"),
            remedies=([{"num_pv_stages": n} for n in fitting],),
        )


def _fused_ring(values: Values) -> Iterator[Refusal]:
    if values.kv_ring != "fused":
        return
    to_separate: Changes = {"kv_ring": "separate"}
    if values.num_qk_stages > 1:
        yield Refusal(
            kind="parts in a fused ring",
            message=f"num_qk_stages: {values.num_qk_stages} needs separate rings: a slot of a "
            "fused ring holds keys, then values, and arrives whole",
            keys=("num_qk_stages", "kv_ring"),
            remedies=([{"num_qk_stages": 1}], [to_separate]),
            last_resort=back_to_auto(values.config),
        )
    if values.num_kv_stages < 2:
        yield Refusal(
            kind="short fused ring",
            message="num_kv_stages: a fused ring of 1 slot deadlocks: the values of one block and "
            "the keys of the next are held at once",
            keys=("num_kv_stages", "kv_ring"),
            remedies=([{"num_kv_stages": 2}], [to_separate]),
            last_resort=back_to_auto(values.config),
        )


def _staging(values: Values) -> Iterator[Refusal]:
    if values.output_staging == "query" and values.out_bytes > values.query_bytes:
        yield Refusal(
            kind="wide output",
            message=f"output_staging: query has {values.query_bytes} bytes for a query tile, but "
            f"its output takes {values.out_bytes}",
            keys=("output_staging",),
            remedies=([{"output_staging": "own"}],),
            last_resort=back_to_auto(values.config),
        )


def _pair(values: Values) -> Iterator[Refusal]:
    if not values.is_pair:
        return
    if not panel_columns(values.value_depth // 2, values.element_bytes):
        yield Refusal(
            kind="half of the values",
            message=f"cta_group: 2 gives each CTA half of {values.value_depth} columns of values, "
            "which no swizzled panel of 32, 64 or 128 bytes tiles",
            keys=("cta_group",),
            remedies=([{"cta_group": 1}],),
            last_resort=({"cta_group": 1, **more} for more in back_to_auto(values.config)),
        )
