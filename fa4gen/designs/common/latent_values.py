"""Values that follow from a config of latent attention on both architectures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fa4gen.designs.common.decode_memory import line_bytes
from fa4gen.designs.common.packed_fields import packed_fields
from fa4gen.designs.common.values import PANEL_BYTES, C, DesignValues

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import AttentionKeys
    from fa4gen.designs.common.model import Fields
    from fa4gen.designs.common.packed_fields import PackedValues

BLOCK_KEYS: Final = 64


@dataclass(frozen=True)
class LatentBlocks(DesignValues[C]):
    """Blocks of 64 keys, which shares are counted in, and whose panels are 128 bytes wide."""

    num_kv_stages: int
    rescale_threshold: float

    @property
    def BN(self) -> int:  # noqa: N802
        """Keys of a block."""
        return BLOCK_KEYS

    @property
    def part_keys(self) -> int:
        """Keys of a block, which are one part's."""
        return BLOCK_KEYS

    @property
    def is_wide(self) -> bool:
        """Rows are those of a wgmma, or of a product of tensor memory."""
        return True

    @property
    def unit_keys(self) -> int:
        """Keys that shares are counted in: a block."""
        return BLOCK_KEYS

    @property
    def split_blocks(self) -> int:
        """Blocks of a split of a fixed number of keys; 0 for even shares."""
        config: Any = self.config
        return 0 if config.split_keys == "auto" else config.split_keys.keys // BLOCK_KEYS

    @property
    def panel_columns(self) -> int:
        """Columns of a swizzled panel."""
        return PANEL_BYTES // self.element_bytes

    @property
    def num_panels(self) -> int:
        """Panels side by side along the depth."""
        config: Any = self.config
        return int(config.depth) // self.panel_columns


def latent_fields(values: PackedValues) -> Fields:
    """Return fields that the plans of both architectures have alike."""
    line, sums = line_bytes()
    return {
        **packed_fields(values, has_descales=False),
        "line_bytes": line,
        "line_sums_bytes": sums,
    }


def first_line(config: AttentionKeys) -> str:
    """Return types, depth and mask in words."""
    return (
        f"{config.dtype}, sums in float32; depth {config.depth}, of which the first "
        f"{config.resolved_value_depth} columns are the values; mask {config.resolved_mask.words}"
    )
