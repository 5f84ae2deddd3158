"""The plan of an attention kernel on Blackwell, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.memory import SCORE_BUFFERS, TILE_ROWS, FA4Memory
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import operand_maps
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import (
        NamedBarriers,
        TensorMapPlan,
        TensorMemoryRegion,
    )
    from fa4gen.designs.common.tensor_maps import Tensor


@dataclass(frozen=True, kw_only=True)
class FA4Config(FA4Memory):
    """Attention forward by tcgen05, accumulators in tensor memory (sm_100a, sm_103a).

    The name and the words in it are those of the systems that it follows.
    """

    RECORDED = (
        *FA4Memory.RECORDED, "num_qo", "padded_depth", "pv_parts", "kv_ring",
        "output_staging", "mma_k", "value_panel_columns",
    )  # fmt: skip

    named_barriers: NamedBarriers = (("epilogue_barrier", 1),)

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        split, tiles = self.registers, self.num_qo
        softmax = [
            Role(
                f"softmax {i}", 4 * i, 4, split.softmax,
                f"scores of query tile {i} to probabilities; log-sum-exp",
            )
            for i in range(tiles)
        ]  # fmt: skip
        first = 4 * tiles
        return (
            *softmax,
            Role(
                "correction", first, 4, split.correction,
                "rescales the outputs when a maximum grew; stores them",
            ),
            Role("mma", first + 4, 1, split.other, "issues Q.K and P.V; allocates tensor memory"),
            Role("load", first + 5, 1, split.other, "issues the TMA loads and hands out tiles"),
            Role("idle", first + 6, 2, split.other, "fill up the warpgroup"),
        )  # fmt: skip

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # A box is what one TMA copy brings: a part of a query tile, of a block of keys, a block of
        # values, an output. In a pair a CTA brings half of the keys of K, and half of the columns
        # of V. Of clipped tensors a box is a panel of that; of pages, the rows that one page has.
        clipped = self.clipped_tensors
        parts = self.num_panels // self.num_qk_stages
        value_panels = self.value_depth // self.value_panel_columns // self.cta_group
        out_columns = self.out_panel_columns
        inputs: dict[Tensor, tuple[int, int]] = {
            "query": (TILE_ROWS, parts),
            "key": (self.key_source.box_rows(self.BN // self.cta_group), parts),
        }
        values: dict[Tensor, tuple[int, int]] = {
            "value": (self.key_source.box_rows(self.BN), value_panels)
        }
        out: dict[Tensor, tuple[int, int]] = {"out": (TILE_ROWS, self.value_depth // out_columns)}
        size = self.element_bytes
        return (
            *operand_maps(inputs, self.panel_columns, size, clipped),
            *operand_maps(values, self.value_panel_columns, size, clipped),
            *operand_maps(out, out_columns, self.out_element_bytes, clipped),
        )

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        tiles = "two query tiles" if self.num_qo == 2 else "one query tile, two score buffers"
        slots = self.rings[0].slots
        rings = (
            f"a ring of {slots} slots for keys and values"
            if len(self.rings) == 1
            else f"rings of {slots} key and value slots"
        )
        pair = "a pair of CTAs multiplies together, each with half of keys and values"
        return (
            self.types_line,
            f"{tiles} of {TILE_ROWS} rows x {self.BN} keys; {rings}",
            self.scheduler_line,
            *self.feature_lines,
            *([pair] if self.is_pair else []),
        )

    @property
    def score_stages(self) -> int:
        """Buffers of scores of a query tile."""
        return SCORE_BUFFERS // self.num_qo

    @property
    def pv_ranges(self) -> tuple[tuple[int, int], ...]:
        """First key and end of each part of P."""
        ends = tuple(accumulate(self.pv_parts))
        return tuple(zip((0, *ends), ends, strict=False))

    def columns(self, name: str) -> TensorMemoryRegion:
        """Return the tensor-memory region called ``name``; KeyError when there is none."""
        return {region.name: region for region in self.tensor_memory}[name]

    def probability_column(self, key: int) -> int:
        """Return the columns of tensor memory that the probabilities before ``key`` take."""
        return key * self.element_bytes // 4
