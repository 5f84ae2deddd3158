"""The predicted time of attention with packed heads and shared keys: decoding, a few rows.

Such a kernel streams keys and values. Memory gives them once; tiles of one key head read them again
through L2. The CTA with the most keys sets the time, after a start that no stream hides: the
launch, the first loads and the partial results that CTAs join.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.decode_cost import most_keys
from fa4gen.tune.model.prediction import Prediction

if TYPE_CHECKING:
    from fa4gen.designs.common.decode_model import SharedKeysPlan
    from fa4gen.masks.mask import Mask
    from fa4gen.tune.model.attention import AttentionProblem
    from fa4gen.tune.model.chips import Chip


@dataclass(frozen=True)
class SharedKeysTile:
    """The model's view of a kernel."""

    mask: Mask
    packed_rows: int
    unit_keys: int
    split_keys: int
    """Keys of a split of a fixed number; 0 for even shares."""
    key_bytes: int
    """Bytes of a key and its value."""
    row_bytes: int
    """Bytes of a query row and its output."""

    @classmethod
    def of(cls, plan: SharedKeysPlan) -> SharedKeysTile:
        """Return the tile of ``plan``."""
        queries = plan.depth * plan.element_bytes
        return cls(
            mask=plan.mask,
            packed_rows=plan.packed_rows,
            unit_keys=plan.unit_keys,
            split_keys=plan.split_blocks * plan.BN,
            key_bytes=(plan.depth + plan.value_depth) * plan.kv_element_bytes,
            row_bytes=queries + plan.value_depth * plan.out_element_bytes,
        )


def predict_shared_keys(tile: SharedKeysTile, problem: AttentionProblem, chip: Chip) -> Prediction:
    """Return the time that a launch of ``tile`` should take, with its parts.

    Sequences are taken to have one length, and all rows to see the keys that the first to the last
    one see.
    """
    costs, p = chip.attention, problem
    rows = p.heads // p.key_heads * p.rows
    tiles = p.batch * p.key_heads * -(-rows // tile.packed_rows)
    step = tile.split_keys or tile.unit_keys
    keys = _seen_keys(tile.mask, p)
    units = tiles * -(-keys // step)
    resident = chip.resident(1)
    ctas = min(units, resident)
    share = most_keys(tiles, keys, resident, unit=tile.unit_keys, split=step)
    most = share.fixed_splits if tile.split_keys else share.even_shares
    uneven = most * ctas / (tiles * keys) if tiles * keys else 1.0
    keys_bytes = p.batch * p.key_heads * keys * tile.key_bytes
    moved = keys_bytes + p.batch * p.heads * p.rows * tile.row_bytes
    memory = moved * max(1.0, uneven) / costs.stream / 1e6
    l2 = most * tile.key_bytes / costs.l2 / 1e3
    exponent = costs.overlap
    return Prediction(
        launch_us=costs.stream_start,
        multiply_us=0.0,
        l2_us=l2,
        memory_us=memory,
        overlapped_us=(l2**exponent + memory**exponent) ** (1 / exponent),
        epilogue_us=0.0,
        waves=1 if ctas else 0,
        tiles=tiles,
        ctas=ctas,
        resident=resident,
        l2_bytes=tiles * keys * tile.key_bytes,
        memory_bytes=moved,
    )


def _seen_keys(mask: Mask, problem: AttentionProblem) -> int:
    """Return the keys from the first that the first row sees to the last that the last row sees."""
    shift, keys = problem.keys - problem.rows, problem.keys
    first = max(0, int(mask.bounds(shift, keys)[0]))
    end = min(keys, int(mask.bounds(keys - 1, keys)[1]))
    return max(0, end - first)
