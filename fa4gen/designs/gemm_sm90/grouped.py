"""Rules of products of groups of rows, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile


def grouped_rules(plan: HopperGemmTile, last_resorts: Sequence[Changes]) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``groups``.

    ``last_resorts``: the changes that leave every size to the plan, or more.
    """
    config = plan.config
    if config.groups is None and config.most_groups != "auto":
        message = f"most_groups: {config.most_groups}, which is for products with groups"
        fixes: list[Changes] = [{"most_groups": "auto"}]
        yield Refusal("groups", message, ("most_groups",), (fixes, [{"groups": "offsets"}]))
    if config.groups != "offsets":
        return
    given = config.most_groups != "auto"
    whole: Changes = {"groups": None, **({"most_groups": "auto"} if given else {})}
    # A copy by TMA begins at a multiple of 16 bytes along the contiguous extent.
    for key, value, change in (
        ("a_major", "m", {"a_major": "k"}),
        ("residual", "column", {"residual": "none"}),
    ):
        if getattr(config, key) == value:
            what = {"a_major": "rows of A are", "residual": "a C of one column is"}[key]
            message = (
                f"{key}: {value}, but with groups: offsets a group begins at any row, and where "
                f"{what} contiguous TMA only begins at every 16 bytes"
            )
            yield Refusal(
                kind=f"groups with {key}",
                message=message,
                keys=(key, "groups"),
                remedies=([change], [{"groups": "masked"}], [whole]),
                last_resort=[{**changes, **whole} for changes in last_resorts],
            )
