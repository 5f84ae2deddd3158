"""Latent attention on both architectures: the values are the first columns of the keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.decode_model import SharedKeysPlan
from fa4gen.designs.common.decode_parameters import PROMOTION
from fa4gen.designs.common.tensor_maps import operand_maps
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Parameter, TensorMapPlan

VALUE_PARAMETERS: Final = ("value_map", "value_page_rows")
"""The parameters of decode kernels with values in a tensor of their own."""
BLOCK_KEYS: Final = 64


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class LatentPlan(SharedKeysPlan):
    """Blocks of 64 keys, which shares are counted in, and whose panels are 128 bytes wide."""

    BN: int = BLOCK_KEYS
    num_kv_stages: int = 2
    """No more blocks fit beside the query."""
    part_keys: int = BLOCK_KEYS
    values_in_keys: bool = True
    is_wide: bool = True

    @property
    @override
    def unit_keys(self) -> int:
        return self.BN

    @property
    @override
    def panel_columns(self) -> int:
        return PANEL_BYTES // self.element_bytes

    @property
    def key_rows(self) -> int:
        """Keys of a block that a CTA brings in for the scores."""
        return self.BN // self.cta_group

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # K, which has V: a box is a panel of the rows that are in one place.
        rows = self.key_source.box_rows(self.key_rows)
        boxes = operand_maps(
            {"key": (rows, 1)}, self.panel_columns, self.element_bytes, self.clipped_tensors
        )
        return tuple(replace(row, l2_promotion=PROMOTION) for row in boxes)

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(row for row in super().parameters if row.name not in VALUE_PARAMETERS)

    @property
    def types_line(self) -> str:
        """The first line of the summary: types, depth and mask."""
        return (
            f"{self.dtype}, sums in float32; depth {self.depth}, of which the first "
            f"{self.value_depth} columns are the values; mask {self.mask.words}"
        )
