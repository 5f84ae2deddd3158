"""The keys that exclude sums over the rows of each group, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile

WANTED: tuple[tuple[str, object, str], ...] = (
    ("a_major", "m", "a group begins anywhere along k, and TMA only at every 16 contiguous bytes"),
    ("b_major", "n", "a group begins anywhere along k, and TMA only at every 16 contiguous bytes"),
    ("rows", "contiguous", "an index of rows is made for a contiguous k"),
    ("swap_operands", False, "it is made for a contiguous k"),
    ("cta_group", 1, "copies that end with a group reach one CTA"),
    ("split_k", 1, "groups of few rows have no k to divide"),
    ("ping_pong", False, "a warpgroup would have to count the blocks of the other's groups"),
    ("output_in_ring", False, "a group without rows fills no slot of the ring"),
    ("evict_first", "none", "copies that end with a group have no policy for L2"),
)
"""Keys with the values that go with ``groups: k_offsets``, and why no other does."""


def rules_of_sums_by_group(
    plan: HopperGemmTile, last_resorts: Sequence[Changes]
) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``groups: k_offsets``.

    ``last_resorts``: the changes that leave every size to the plan, or more.
    """
    if not plan.sums_by_group:
        return
    config = plan.config
    whole: Changes = {"groups": None}

    def fault(key: str, said: object, why: str, fix: Changes) -> Refusal:
        return Refusal(
            kind=f"sums by group with {key}",
            message=f"{key}: {said}, but with groups: k_offsets {why}",
            keys=(key, "groups"),
            remedies=([fix], [whole]),
            last_resort=[{**changes, **whole} for changes in last_resorts],
        )

    if plan.element_bytes == 1:
        why = "m and n are contiguous, and wgmma takes fp8 operands only with k contiguous"
        types: Changes = {"dtype": "bf16", "b_dtype": "auto"}
        yield fault("dtype", config.dtype, why, types)
        return
    for key, value, why in WANTED:
        given = getattr(config, key)
        if given not in (value, "auto"):
            yield fault(key, _yaml(given), why, {key: value})
    if plan.gated:
        why = "the columns of B are those of one matrix"
        yield fault("activation", config.activation, why, {"activation": None})
    if config.most_groups != "auto":
        why = "a call may have any number of them"
        yield fault("most_groups", config.most_groups, why, {"most_groups": "auto"})


def _yaml(value: object) -> str:
    """Return a value as the config writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
