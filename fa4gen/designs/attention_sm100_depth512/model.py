"""The plan of an attention kernel of depth 512 on Blackwell, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.memory import Depth512Memory
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import operand_maps
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import NamedBarriers, TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor


@dataclass(frozen=True, kw_only=True)
class Depth512Config(Depth512Memory):
    """Attention forward at depth 512 by tcgen05 over a pair of CTAs (sm_100a, sm_103a)."""

    RECORDED = (*Depth512Memory.RECORDED, "staging_step")

    named_barriers: NamedBarriers = (("exchange_barrier", 1), ("epilogue_barrier", 2))
    barriers_by_warp: bool = True
    """The struct that holds them does it so."""

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        split = self.registers
        return (
            Role(
                "softmax", 0, 4, split.softmax,
                "scores to probabilities, two threads a row; log-sum-exp",
            ),
            Role(
                "correction", 4, 4, split.correction,
                "rescales the output when a maximum grew; at the end stores it",
            ),
            Role(
                "mma", 8, 1, split.other,
                "in the leader issues Q.K and P.V; allocates tensor memory",
            ),
            Role("load", 9, 1, split.other, "issues this CTA's TMA loads and hands out tiles"),
            Role("idle", 10, 2, split.other, "fill up the warpgroup"),
        )  # fmt: skip

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # A box is what one TMA copy brings: a part of Q, of K, of V, half of O.
        panels, rows = self.BK0 // self.panel_columns, self.key_source.box_rows(self.BK1)
        inputs: dict[Tensor, tuple[int, int]] = {
            "query": (self.BM, panels),
            "key": (rows, panels),
            "value": (rows, panels),
        }
        out_columns = self.out_panel_columns
        out: dict[Tensor, tuple[int, int]] = {"out": (self.BM, self.half_columns // out_columns)}
        clipped = self.clipped_tensors
        return (
            *operand_maps(inputs, self.panel_columns, self.element_bytes, clipped),
            *operand_maps(out, out_columns, self.out_element_bytes, clipped),
        )

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        return (
            self.types_line,
            f"a pair of CTAs takes {2 * self.BM} query rows x {self.BN} keys; "
            f"a ring of {self.ring.slots} slots for parts of keys and values",
            self.scheduler_line,
            *self.feature_lines,
        )

    @property
    def row_keys(self) -> int:
        """Keys of a block whose scores a softmax thread holds: two threads share a row."""
        return self.BN // 2
