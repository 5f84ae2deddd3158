"""Fields that plans of kernels with packed heads have alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.designs.common.decode_model import MOST_CTAS, MOST_SEQUENCES
from fa4gen.designs.common.float32 import as_float32_constant

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Fields


class PackedValues(Protocol):
    """Values of a design whose CTAs share the keys of a tile."""

    @property
    def config(self) -> Any:
        """The config."""

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the query and the output."""

    @property
    def BM(self) -> int:  # noqa: N802
        """Packed rows of a tile."""

    @property
    def BN(self) -> int:  # noqa: N802
        """Keys of a block."""

    @property
    def packed_rows(self) -> int:
        """Packed rows of a tile, by the name of the key."""

    @property
    def num_kv_stages(self) -> int:
        """Slots of the ring."""

    @property
    def panel_columns(self) -> int:
        """Columns of a swizzled panel."""

    @property
    def num_panels(self) -> int:
        """Panels side by side along the depth."""

    @property
    def num_consumer_warps(self) -> int:
        """Warps of all parts."""

    @property
    def num_parts(self) -> int:
        """Warps, or warpgroups, with keys and a softmax of their own."""

    @property
    def part_keys(self) -> int:
        """Keys of a block that one part takes."""

    @property
    def part_words(self) -> str:
        """The name of a part: "warp", "warpgroup" or "pair"."""

    @property
    def is_wide(self) -> bool:
        """Whether the rows of a tile are those of a wgmma, and the parts warpgroups."""

    @property
    def unit_keys(self) -> int:
        """Keys that shares are counted in."""

    @property
    def exchange_columns(self) -> int:
        """Columns of the output that parts put together at once."""

    @property
    def split_blocks(self) -> int:
        """Blocks of a split of a fixed number of keys; 0 for even shares."""

    @property
    def rescale_threshold(self) -> float:
        """The growth of a maximum above which the output is rescaled."""


def packed_fields(values: PackedValues, *, has_descales: bool) -> Fields:
    """Return the fields; ``has_descales``: keys and values come with scales."""
    return {
        "out_dtype": values.config.dtype,
        "out_element_bytes": values.element_bytes,
        "scheduler": "static",
        "epilogue": "direct",
        "mixed_tile_heights": False,
        "has_descales": has_descales,
        "rescale_threshold": as_float32_constant(values.rescale_threshold),
        "BM": values.BM,
        "BN": values.BN,
        "packed_rows": values.packed_rows,
        "num_kv_stages": values.num_kv_stages,
        "panel_columns": values.panel_columns,
        "num_panels": values.num_panels,
        "num_consumer_warps": values.num_consumer_warps,
        "num_parts": values.num_parts,
        "part_keys": values.part_keys,
        "part_words": values.part_words,
        "is_wide": values.is_wide,
        "unit_keys": values.unit_keys,
        "exchange_columns": values.exchange_columns,
        "split_blocks": values.split_blocks,
        "most_sequences": MOST_SEQUENCES,
        "most_ctas": MOST_CTAS,
    }
