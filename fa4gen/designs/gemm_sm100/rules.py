"""Rules between the keys of a Blackwell matrix product, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gated_rules import gated_rules
from fa4gen.designs.common.grouped import grouped_rules
from fa4gen.designs.common.refusal import Refusal
from fa4gen.designs.gemm_sm100.limits import back_to_auto, narrower
from fa4gen.designs.gemm_sm100.quantised import quantised_rules
from fa4gen.designs.gemm_sm100.scaling import ATOM_ROWS, FORMS
from fa4gen.designs.gemm_sm100.tile import LANES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm100.memory import BlackwellGemmMemory


def broken_rules(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    """Yield the config's requests that do not go together."""
    yield from _stride(plan)
    yield from _order(plan)
    yield from _groups(plan)
    yield from grouped_rules(plan, list(back_to_auto(plan.config)))
    yield from gated_rules(plan, 1, "", list(back_to_auto(plan.config)))
    if plan.gated:
        yield from _gated(plan)
    yield from quantised_rules(plan)
    wrong_types = list(_types_of_scales(plan))
    yield from wrong_types
    if plan.block_scales.kind and not wrong_types:
        yield from _tile_of_scales(plan)
        yield from _majors_of_scales(plan)


def _gated(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    """Yield what a gated activation excludes: a thread has gate's sums and those of up."""
    if plan.accumulator_layout == "halves":
        yield Refusal(
            kind="gated rows",
            message=f"BM: {plan.BM} rows of each CTA of a pair, but then half of the columns are "
            "in other lanes of tensor memory: gate's sums are another thread's than up's",
            keys=("BM", "cta_group", "activation"),
            remedies=([{"BM": LANES}, {"BM": "auto"}], [{"cta_group": 1}]),
            last_resort=list(back_to_auto(plan.config)),
        )
    if not plan.scales:
        return
    if plan.gate_layout == "interleaved":
        yield Refusal(
            kind="interleaved scales",
            message=f"gate_layout: interleaved, but an atom of scales {plan.config.scales} is for "
            f"{ATOM_ROWS} neighbouring columns of B, and gate and up are apart",
            keys=("gate_layout", "scales"),
            remedies=([{"gate_layout": "halves"}],),
        )
    if plan.BN != 2 * ATOM_ROWS:
        yield Refusal(
            kind="gated scales",
            message=f"BN: {plan.BN} columns of B, but with scales {plan.config.scales} gate and up "
            f"have whole atoms of {ATOM_ROWS} columns each",
            keys=("BN", "scales"),
            remedies=([{"BN": 2 * ATOM_ROWS}],),
            last_resort=list(back_to_auto(plan.config)),
        )


def _groups(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    if plan.sums_by_group:
        yield Refusal(
            kind="sums by group",
            message="groups: k_offsets, but sums over the rows of groups are made for Hopper",
            keys=("groups",),
            remedies=([{"groups": None}],),
            last_resort=[{**keys, "groups": None} for keys in back_to_auto(plan.config)],
        )
    if plan.groups is not None and plan.scheduler == "dynamic":
        yield Refusal(
            kind="scheduler of groups",
            message=f"scheduler: dynamic, but with groups: {plan.groups} the launch does not know "
            "how many tiles there are",
            keys=("scheduler", "groups"),
            remedies=([{"scheduler": "static"}, {"scheduler": "auto"}], [{"groups": None}]),
            last_resort=list(back_to_auto(plan.config)),
        )


def _order(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    if plan.config.scales is None and plan.config.scale_order != "arranged":
        yield Refusal(
            kind="order of scales",
            message=f"scale_order: {plan.config.scale_order} is for products with block scales, "
            "and the config has none",
            keys=("scale_order", "scales"),
            remedies=([{"scale_order": "arranged"}],),
            last_resort=[{"scale_order": "arranged"}],
        )


def _types_of_scales(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    dtype, scales = plan.config.dtype, plan.config.scales
    fit = [name for name, form in FORMS.items() if dtype in form.dtypes]
    if scales is None and dtype in ("fp8_e5m2", "fp4_e2m1"):
        yield Refusal(
            kind="types of scales",
            message=f"dtype: {dtype} is for products with block scales, and the config has none",
            keys=("dtype",),
            remedies=([{"scales": name} for name in fit], [{"dtype": "fp8_e4m3"}]),
        )
    elif scales is not None and scales not in fit:
        known = FORMS[scales].dtypes
        yield Refusal(
            kind="types of scales",
            message=f"scales: {scales} are for elements of {' or '.join(known)}, and dtype is "
            f"{dtype}",
            keys=("scales", "dtype"),
            remedies=(
                [{"dtype": name} for name in known],
                [{"scales": name} for name in fit],
                [] if fit else [{"scales": None}],
            ),
        )


def _tile_of_scales(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    if plan.BM != ATOM_ROWS:
        yield Refusal(
            kind="rows of scales",
            message=f"BM: scales are for {ATOM_ROWS} rows at a time, and a tile has {plan.BM}",
            keys=("BM", "scales"),
            remedies=([{"BM": ATOM_ROWS}, {"BM": "auto"}],),
        )
    atom = plan.block_scales.atom_k
    if plan.BK % atom:
        yield Refusal(
            kind="scales of a stage",
            message=f"BK: {plan.config.scales} has {plan.block_scales.columns} elements a scale, "
            f"{atom} in four scales, which are read together; a stage has {plan.BK}",
            keys=("BK", "scales"),
            remedies=(({"BK": n} for n in (128, 256) if n % atom == 0), [{"BK": "auto"}]),
            last_resort=back_to_auto(plan.config),
        )


def _majors_of_scales(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    for key in ("a_major", "b_major"):
        major = getattr(plan.config, key)
        if plan.elements_per_byte > 1 and major != "k":
            yield Refusal(
                kind=f"{key} of fp4",
                message=f"{key}: elements of {plan.config.dtype} share bytes along k, which has "
                f"to be contiguous; {key} is {major}",
                keys=(key, "dtype"),
                remedies=([{key: "k"}],),
            )


def _stride(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    stride, needed = plan.stage_stride_cols, plan.accumulator_columns
    if stride >= needed or plan.may_overlap:
        return
    halves = (
        " (in a pair, 64 rows take half of the columns)"
        if plan.accumulator_layout == "halves"
        else ""
    )
    yield Refusal(
        kind="stride of the accumulators",
        message=f"stage_stride_cols: an accumulator of BN = {plan.BN} takes {needed} columns of "
        f"tensor memory{halves}, the next one would begin after {stride}",
        keys=("stage_stride_cols", "BN"),
        remedies=(
            [{"stage_stride_cols": needed}, {"stage_stride_cols": "auto"}],
            narrower(plan),
        ),
        last_resort=back_to_auto(plan.config),
    )
