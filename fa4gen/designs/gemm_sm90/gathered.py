"""The keys that exclude gathered rows of A, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile


def gathered_rules(plan: HopperGemmTile, automatic: Changes) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``rows: gathered``.

    ``automatic``: the changes that leave every size to the plan.
    """
    if not plan.gathers_rows:
        return
    last_resort: list[Changes] = [{**automatic, "rows": "contiguous"}]

    def fault(key: str, message: str, fixes: list[Changes]) -> Refusal:
        remedies: tuple[list[Changes], list[Changes]] = (fixes, [{"rows": "contiguous"}])
        return Refusal(f"gathered {key}", message, (key, "rows"), remedies, last_resort)

    config = plan.config
    if config.a_major != "k":
        message = f"a_major: {config.a_major}, but gathered rows are copied along a contiguous k"
        yield fault("a_major", message, [{"a_major": "k"}])
    if plan.cluster_columns > 1:
        key = "share" if config.share != "auto" else "cta_group"
        message = (
            f"{key}: {getattr(config, key)}, with which CTAs share A by multicast, but gathered "
            "rows are copied without one"
        )
        alone: tuple[Changes, ...] = {"share": "auto"}, {"cta_group": 2}, {"cta_group": 1}
        fixes = [change for change in alone if change != {key: getattr(config, key)}]
        yield fault(key, message, [*fixes, {"cta_group": 1, "share": "auto"}])
    if plan.num_consumer_warpgroups > 2:
        message = (
            f"num_consumer_warpgroups: {plan.num_consumer_warpgroups}, whose outputs leave one "
            "warp of the producer, but two copy gathered rows"
        )
        fewer: list[Changes] = [
            {"num_consumer_warpgroups": 2},
            {"BM": 128, "num_consumer_warpgroups": 2},
            {**automatic, "num_consumer_warpgroups": 2},
        ]
        key = "BM" if config.num_consumer_warpgroups == "auto" else "num_consumer_warpgroups"
        yield fault(key, message, fewer)
    if plan.evict_first == "both":
        message = "evict_first: both, but the lines of gathered rows have no policy for L2"
        yield fault("evict_first", message, [{"evict_first": "b"}])
