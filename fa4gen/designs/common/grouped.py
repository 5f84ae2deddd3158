"""Groups of rows in all matrix products: how many a call may have, their list, rules and words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.fitting import most_slots
from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.common.shared_memory import slots_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.designs.common.choices import ChoiceLog
    from fa4gen.designs.common.gemm_config import GemmKeys
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.model import SharedRegion

MOST_GROUPS = (512, 256, 128)
"""Groups that a call may have where the config does not say: two words of shared memory each."""
LISTED = ("offsets", "masked")
"""The kinds of groups for which a kernel lists tiles."""
GROUP_BYTES = 8
"""Bytes of a group in the list: two words."""
WORD_BYTES = 4
GROUPS = {
    "offsets": "rows in groups that lie one after the other, each multiplied by a B of its own",
    "masked": "groups of rows, each the first of a matrix, multiplied by a B of their own",
    "k_offsets": "groups of rows of A and B along k, each with an output of its own",
}


def least_groups(config: GemmKeys) -> int:
    """Return the fewest groups that a plan of ``config`` has room for; 0 without a list."""
    if config.groups not in LISTED:
        return 0
    return MOST_GROUPS[-1] if config.most_groups == "auto" else config.most_groups


def take_most_groups(draft: GemmPlan, log: ChoiceLog, most_stages: int) -> int:
    """Return the groups that a call may have; 0 without a list of them."""
    config = draft.config
    if draft.groups is None:
        return 0

    def stages(groups: int) -> int:
        most = most_stages if config.num_stages == "auto" else config.num_stages
        return most_slots(replace(draft, most_groups=groups), "num_stages", most)

    default = next(most for most in MOST_GROUPS if stages(most) == stages(MOST_GROUPS[-1]))
    counts = ", ".join(map(str, MOST_GROUPS))
    reason = f"the most of {counts} with a list that costs no stage of A and B"
    return log.take("most_groups", config.most_groups, default, reason)


def group_regions(plan: GemmPlan) -> list[SharedRegion]:
    """Return the list of groups in shared memory; nothing without groups."""
    if plan.groups is None:
        return []
    what = {"offsets": "its first row", "masked": "its rows"}[plan.groups]
    holds = f"For each group the row tiles of those before, and {what}; then the end"
    size = GROUP_BYTES * (plan.most_groups + 1)
    regions = [slots_of("groups", 1, size, holds, alignment=GROUP_BYTES)]
    if plan.lists_atoms:
        holds = "For each group the atoms of scales of those before"
        size = WORD_BYTES * plan.most_groups
        regions.append(slots_of("group_atoms", 1, size, holds, alignment=WORD_BYTES))
    return regions


def grouped_rules(plan: GemmPlan, last_resorts: Sequence[Changes]) -> Iterator[Refusal]:
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
