"""Rules between the keys of a Hopper matrix product, with ways to keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gated_rules import gated_rules
from fa4gen.designs.common.grouped import grouped_rules
from fa4gen.designs.common.limits import turns_of_one
from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.designs.gemm_sm90.gathered import gathered_rules
from fa4gen.designs.gemm_sm90.quantised import quantised_rules
from fa4gen.designs.gemm_sm90.scaled import scaled_rules
from fa4gen.designs.gemm_sm90.scattered import scattered_rules
from fa4gen.designs.gemm_sm90.sums_by_group import rules_of_sums_by_group
from fa4gen.designs.gemm_sm90.swapped import swapped_rules
from fa4gen.designs.gemm_sm90.tile import GRID, WARPGROUP_ROWS, WGMMA_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile

STORED_COLUMNS = 16
"""Columns of the output that a warp writes into a panel together."""
FP8 = ("fp8_e4m3", "fp8_e5m2")
SIZES = (
    "BM",
    "BN",
    "BK",
    "num_consumer_warpgroups",
    "ping_pong",
    "num_stages",
    "num_epi_stages",
    "registers",
)


def broken_rules(plan: HopperGemmTile) -> Iterator[Refusal]:
    """Yield the config's requests that do not go together."""
    if plan.swap_operands:
        yield from swapped_rules(plan, all_automatic(plan))
    else:
        yield from _rows(plan)
    yield from gated_rules(plan, *_gated_unit(plan), last_resorts(plan))
    yield from scaled_rules(plan, all_automatic(plan))
    yield from gathered_rules(plan, all_automatic(plan))
    yield from quantised_rules(plan, last_resorts(plan))
    yield from scattered_rules(plan, last_resorts(plan))
    yield from grouped_rules(plan, last_resorts(plan))
    yield from rules_of_sums_by_group(plan, last_resorts(plan))
    yield from _split(plan)
    yield from _share(plan)
    yield from _output_in_ring(plan)
    yield from _majors(plan)
    yield from _columns(plan)
    yield from _block(plan)


def all_automatic(plan: HopperGemmTile) -> Changes:
    """Return the changes that leave every size to the plan."""
    written = (key for key in SIZES if getattr(plan.config, key) != "auto")
    return dict.fromkeys(written, "auto")


def _gated_unit(plan: HopperGemmTile) -> tuple[int, str]:
    """Return what a gated tile's columns of B are a multiple of, and why."""
    if plan.swap_operands:  # their number follows from that of the warpgroups
        return 1, ""
    return 2 * STORED_COLUMNS, f"the output has half of them, stored by {STORED_COLUMNS}"


def last_resorts(plan: HopperGemmTile) -> list[Changes]:
    """Return the changes that leave every size to the plan, then those that divide no k, either."""
    undivided: list[Changes] = [{**all_automatic(plan), "split_k": 1}] if plan.is_split else []
    return [all_automatic(plan), *undivided]


def _rows(plan: HopperGemmTile) -> Iterator[Refusal]:
    rows, warpgroups = plan.BM, plan.num_consumer_warpgroups
    fixes: tuple[list[Changes], ...] = [{"num_consumer_warpgroups": 2}], [{"ping_pong": False}]
    yield from turns_of_one(plan, plan.ping_pong, fixes, last_resorts(plan))
    if plan.ping_pong and rows not in WARPGROUP_ROWS:
        yield Refusal(
            kind="rows",
            message=f"BM: {rows} rows, of which a warpgroup computes 64 or 128, and with ping_pong "
            "each has a tile of its own",
            keys=("BM", "ping_pong"),
            remedies=([{"BM": 128}], [{"ping_pong": False}]),
            last_resort=last_resorts(plan),
        )
    elif not plan.ping_pong and rows / warpgroups not in WARPGROUP_ROWS:
        yield Refusal(
            kind="rows",
            message=f"BM: {rows} rows for {warpgroups} consumer warpgroups, and each computes 64 "
            f"or 128 of them: {WGMMA_ROWS * warpgroups} or {2 * WGMMA_ROWS * warpgroups}",
            keys=("BM", "num_consumer_warpgroups"),
            remedies=(
                [{"BM": "auto"}, {"BM": WGMMA_ROWS * warpgroups}],
                [{"num_consumer_warpgroups": "auto"}],
                [{"swap_operands": True}],
            ),
            last_resort=last_resorts(plan),
        )


def _majors(plan: HopperGemmTile) -> Iterator[Refusal]:
    config = plan.config
    if config.dtype not in FP8:
        if config.b_dtype != "auto":
            message = (
                f"b_dtype: {config.b_dtype}, but only the types of fp8 may differ, and dtype is "
            )
            yield Refusal(
                kind="types",
                message=f"{message}{config.dtype}",
                keys=("b_dtype", "dtype"),
                remedies=([{"b_dtype": "auto"}], [{"dtype": config.b_dtype}]),
                last_resort=last_resorts(plan),
            )
        return
    for key, major in (("a_major", config.a_major), ("b_major", config.b_major)):
        if major != "k":
            yield Refusal(
                kind=key,
                message=f"{key}: {major}, but wgmma takes fp8 operands only with k contiguous",
                keys=(key,),
                remedies=([{key: "k"}],),
            )


def _share(plan: HopperGemmTile) -> Iterator[Refusal]:
    config = plan.config
    said = f"cta_group: {GRID}" if config.share == "auto" else f"share: {config.share}"
    fixes: list[Changes]
    if config.share == "auto" and plan.cta_group != GRID:
        return
    if config.share in ("a", "b") and plan.cta_group == GRID:
        message = f"share: {config.share}, but with cta_group: {GRID} a cluster shares both"
        fixes = [{"share": "both"}, {"cta_group": 4}]
    elif plan.cta_group == 1:
        message = f"share: {config.share}, but with cta_group: 1 every CTA loads for itself"
        fixes = [{"cta_group": 4 if config.share == "both" else 2}]
    elif config.share == "b" and config.swap_operands:
        message = "share: b, but with swap_operands the CTAs of a cluster share A"
        fixes = [{"share": "a"}]
    elif config.share != "b" and config.a_major != "k":
        message = f"{said} with a_major: {config.a_major} is not supported yet"
        fixes = [{"share": "b"}, {"cta_group": 4}]
    elif config.share == "both" and plan.cta_group == 2:
        message = "share: both, but of a pair of CTAs a grid has one row or one column"
        fixes = [{"cta_group": 4}, {"share": "b"}]
    else:
        return
    automatic: Changes = {"share": "auto"}
    if plan.cta_group == GRID:
        automatic = {"share": "auto", "cta_group": 4}
    last_resort = [{**changes, **automatic} for changes in last_resorts(plan)]
    yield Refusal("share", message, ("share", "cta_group"), ([automatic], fixes), last_resort)


def _split(plan: HopperGemmTile) -> Iterator[Refusal]:
    if not plan.is_split:
        return
    last_resort = [{**all_automatic(plan), "split_k": 1}]
    for key, value, what in (
        ("cta_group", 1, f"cta_group: {plan.cta_group}, but the cluster of two CTAs"),
        ("ping_pong", False, "ping_pong: true, which is not supported yet where a cluster"),
    ):
        if getattr(plan, key) != value:
            yield Refusal(
                kind=f"split with {key}",
                message=f"{what} divides k with split_k: 2",
                keys=(key, "split_k"),
                remedies=([{key: value}], [{"split_k": 1}]),
                last_resort=last_resort,
            )


def _output_in_ring(plan: HopperGemmTile) -> Iterator[Refusal]:
    config = plan.config
    if not config.output_in_ring:
        return
    apart: Changes = {"output_in_ring": False}
    last_resort = [{**changes, **apart} for changes in last_resorts(plan)]

    def fault(kind: str, message: str, key: str, fixes: list[Changes]) -> Refusal:
        both = ("output_in_ring", key)
        return Refusal(
            kind, f"output_in_ring: true, but {message}", both, ([apart], fixes), last_resort
        )

    if plan.c.is_matrix:
        message = "residual: matrix comes into the output's slots while the ring is full"
        yield fault("ring with residual", message, "residual", [])
    if plan.ping_pong:
        message = "with ping_pong: true the ring has the other tile's blocks meanwhile"
        yield fault("ring with ping_pong", message, "ping_pong", [{"ping_pong": False}])
    if plan.is_split:
        message = "it is not supported yet with split_k: 2"
        yield fault("ring with split_k", message, "split_k", [{"split_k": 1}])
    if plan.output_bytes > plan.ring_bytes:
        panels = plan.num_consumer_warpgroups * plan.num_epi_stages
        message = (
            f"{panels} * {plan.epi_bytes} bytes for panels of the output do not fit the "
            f"{plan.num_stages} * {plan.a_bytes + plan.b_bytes} of the ring"
        )
        fewer: list[Changes] = [
            {"num_epi_stages": slots} for slots in range(plan.num_epi_stages - 1, 0, -1)
        ]
        yield fault("room in the ring", message, "num_epi_stages", fewer)


def _columns(plan: HopperGemmTile) -> Iterator[Refusal]:
    panel = plan.panel_columns
    if plan.config.b_major == "k" or plan.BN % panel == 0:
        return
    whole = [panels * panel for panels in (plan.BN // panel, plan.BN // panel + 1) if panels]
    yield Refusal(
        kind="columns",
        message=f"BN: {plan.BN} columns, but where B has n contiguous a tile has whole panels of "
        f"{panel} columns ({PANEL_BYTES} bytes)",
        keys=("BN", "b_major"),
        remedies=([{"BN": columns} for columns in whole], [{"b_major": "k"}]),
        last_resort=last_resorts(plan),
    )


def _block(plan: HopperGemmTile) -> Iterator[Refusal]:
    panel = plan.panel_columns
    if plan.BK not in (panel, 2 * panel):
        yield Refusal(
            kind="block",
            message=f"BK: {plan.BK} elements of {plan.element_bytes} bytes, but a stage brings "
            f"{PANEL_BYTES} or {2 * PANEL_BYTES} bytes along k: {panel} or {2 * panel}",
            keys=("BK",),
            remedies=([{"BK": panel}, {"BK": 2 * panel}],),
            last_resort=last_resorts(plan),
        )
