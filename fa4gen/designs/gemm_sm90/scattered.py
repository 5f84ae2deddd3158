"""The keys that exclude scattered rows of the output, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.designs.gemm_sm90.tile import HopperGemmTile

WANTED: tuple[tuple[str, object, str], ...] = (
    ("groups", "offsets", "they are those of groups with offsets"),
    ("residual", "none", "an index names no rows of C"),
    ("out_dtype", "auto", "rows of 16 bits are stored"),
    ("output_scales", None, "scales are not stored by an index"),
    ("output_in_ring", False, "the ring waits for copies of TMA"),
    ("short_ends", False, "a warp stores the output, and no copy of TMA"),
)
"""Keys with the values that go with ``out_rows: scattered``, and why no other does."""


def scattered_rules(plan: HopperGemmTile, last_resorts: Sequence[Changes]) -> Iterator[Refusal]:
    """Yield requests that do not go together with ``out_rows: scattered``.

    ``last_resorts``: the changes that leave every size to the plan, or more.
    """
    if not plan.scatters_rows:
        return
    config = plan.config
    apart: Changes = {"out_rows": "contiguous"}

    def fault(key: str, said: object, why: str, fixes: list[Changes]) -> Refusal:
        text = str(said).lower() if isinstance(said, bool) else said
        return Refusal(
            kind=f"scattered {key}",
            message=f"{key}: {text}, but with out_rows: scattered {why}",
            keys=(key, "out_rows"),
            remedies=(fixes, [apart]),
            last_resort=[{**changes, **apart} for changes in last_resorts],
        )

    for key, value, why in WANTED:
        given = getattr(config, key)
        narrow = key == "out_dtype" and plan.out_element_bytes == 2
        if given != value and not narrow:
            yield fault(key, "null" if given is None else given, why, [{key: value}])
    if plan.gated:
        why = "weights are those of rows, not of gate and up"
        yield fault("activation", config.activation, why, [{"activation": None}])
    if plan.last_panel_columns < plan.out_panel_columns:
        panel = plan.out_panel_columns
        why = f"a tile has whole panels of {panel} columns"
        yield fault("BN", plan.BN, why, [{"BN": 128}, {"BN": 256}, {"BN": 64}])
