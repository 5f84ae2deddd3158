"""Roles, tensor maps and summary of the Blackwell attention kernel at depth 512."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.values import BLOCK_KEYS, CTA_ROWS, DEPTH, PART
from fa4gen.designs.common.blackwell_values import OUT_BYTES
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import clipped_tensors, operand_maps

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100_depth512.values import Values
    from fa4gen.designs.common.model import TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor

OUT_PANEL_COLUMNS = 64


def attention_roles(values: Values) -> tuple[Role, ...]:
    """Return softmax, correction, then the warps that issue."""
    split = values.registers
    return (
        Role(
            "softmax", 0, 4, split.softmax,
            "scores to probabilities, two threads a row; log-sum-exp",
        ),
        Role(
            "correction", 4, 4, split.correction,
            "rescales the output when a maximum grew; at the end stores it",
        ),
        Role("mma", 8, 1, split.other, "in the leader issues Q.K and P.V; allocates tensor memory"),
        Role("load", 9, 1, split.other, "issues this CTA's TMA loads and hands out tiles"),
        Role("idle", 10, 2, split.other, "fill up the warpgroup"),
    )  # fmt: skip


def attention_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps: a box is what one TMA copy brings: a part of Q, of K, of V, half of O."""
    config, panels = values.config, PART // values.panel_columns
    rows = config.rows_of_box(PART)
    inputs: dict[Tensor, tuple[int, int]] = {
        "query": (CTA_ROWS, panels),
        "key": (rows, panels),
        "value": (rows, panels),
    }
    out: dict[Tensor, tuple[int, int]] = {"out": (CTA_ROWS, DEPTH // 2 // OUT_PANEL_COLUMNS)}
    clipped = clipped_tensors(config)
    return (
        *operand_maps(inputs, values.panel_columns, values.element_bytes, clipped),
        *operand_maps(out, OUT_PANEL_COLUMNS, OUT_BYTES, clipped),
    )


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    output = "" if config.resolved_out_dtype == config.dtype else f" to {config.resolved_out_dtype}"
    lines = [
        f"{config.dtype}{output}, sums in float32; depth {DEPTH}; "
        f"mask {config.resolved_mask.words}",
        f"a pair of CTAs takes {2 * CTA_ROWS} query rows x {BLOCK_KEYS} keys; "
        f"a ring of {values.num_kv_stages} slots for parts of keys and values",
        f"{values.scheduler} scheduler; {values.exp2_fma_share:.1%} of exp2 on the FMA pipe",
    ]
    if config.resolved_score.words:
        lines.append(config.resolved_score.words)
    if config.has_tile_lengths:
        lines.append(f"batching {config.batching}; keys {config.resolved_keys}")
    return tuple(lines)
