"""The plan of an attention kernel of depth 512 on Hopper, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.memory import CHUNK_KEYS, HopperPairMemory
from fa4gen.designs.common.attention_parameters import attention_parameters, out_pointer
from fa4gen.designs.common.model import Parameter
from fa4gen.designs.common.roles import WARPGROUP_ROWS, consumer_roles
from fa4gen.designs.common.tensor_maps import operand_maps
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Role, TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor


@dataclass(frozen=True, kw_only=True)
class HopperPairAttentionPlan(HopperPairMemory):
    """Attention forward by wgmma, one tile of query rows computed by a pair of CTAs (sm_90a)."""

    RECORDED = (
        *HopperPairMemory.RECORDED, "num_consumer_warpgroups", "own_keys", "own_columns",
        "producer_registers", "consumer_registers",
    )  # fmt: skip

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        rows = WARPGROUP_ROWS
        consumers = consumer_roles(
            self.registers,
            self.num_consumer_warpgroups,
            lambda i: (
                f"rows {rows * i} to {rows * (i + 1) - 1}: Q.K and softmax of half of the keys, "
                "P.V and output of half of the columns"
            ),
        )
        return (self.loader_role, *consumers)

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # A box of Q and K is a panel, of K with no more rows than a page; that of V has half of
        # the columns.
        boxes: dict[Tensor, tuple[int, int]] = {
            "query": (self.BM, 1),
            "key": (self.key_source.box_rows(self.own_keys), 1),
            "value": (CHUNK_KEYS, self.own_columns // self.panel_columns),
        }
        clipped = self.clipped_tensors
        several: tuple[Tensor, ...] = ("value",)
        return operand_maps(boxes, self.panel_columns, self.element_bytes, clipped, several=several)

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        out = out_pointer(f"output, {self.dtype}")
        rows = attention_parameters(self, out)
        if not self.key_source.clipped:
            return rows
        steps = "to the next, in steps of the map's places"
        strides = (
            Parameter(f"value_{one}_steps", "int32", f"from one {one} of the values {steps}")
            for one in ("row", "head")
        )
        return (*rows, *strides)

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        return (
            self.types_line,
            f"a pair of CTAs takes {self.BM} query rows through blocks of {self.BN} keys",
            f"each CTA computes the scores of {self.own_keys} keys of a block, and "
            f"{self.own_columns} columns of the output",
            f"{self.scheduler} scheduler, output from registers",
            *self.feature_lines,
        )

    @property
    def reads_along_keys(self) -> bool:
        """Whether a declared tensor is empty without keys: a block past them may be walked."""
        return any("keys" in tensor.shape for tensor in self.declared_tensors)

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """Columns of the sums of each kind of wgmma: scores and output."""
        return tuple(dict.fromkeys((self.own_keys, self.own_columns)))
