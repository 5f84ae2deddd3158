"""The plan of attention with tensor memory, as both designs have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.attention_parameters import attention_parameters, out_map, out_pointer
from fa4gen.designs.common.model import SharedRegion
from fa4gen.designs.common.rings import End, Ring, tile_ring
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.common.values import probability_shift
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import BlackwellPrefillKeys, RoleRegisters
    from fa4gen.designs.common.model import Parameter


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class BlackwellAttentionPlan(AttentionPlan):
    """The common part of both attention plans with tensor memory."""

    RECORDED = (
        *AttentionPlan.RECORDED, "BK0", "BK1", "num_qk_stages", "num_pv_stages",
        "out_panel_columns", "probability_shift", "exp2_fma_share", "registers_at_entry",
        "softmax_registers", "correction_registers", "other_registers", "tensor_memory",
        "tensor_memory_columns",
    )  # fmt: skip

    config: BlackwellPrefillKeys
    epilogue: str = "tma_store"
    num_qk_stages: int
    num_pv_stages: int
    exp2_fma_share: float = 0.0
    registers: RoleRegisters
    votes_on_rescaling: bool = True
    """Whatever the threshold."""

    @property
    @override
    def out_dtype(self) -> str:
        return self.config.resolved_out_dtype

    @property
    @override
    def has_descales(self) -> bool:
        return self.dtype == "fp8_e4m3"

    @property
    def BK0(self) -> int:  # noqa: N802
        """Columns of query and key that one stage of Q.K multiplies."""
        return self.depth // self.num_qk_stages

    @property
    def BK1(self) -> int:  # noqa: N802
        """Keys that one P.V multiplies: of a block, or of a slot."""
        raise NotImplementedError

    @property
    def out_panel_columns(self) -> int:
        """Columns of a swizzled panel of the output."""
        raise NotImplementedError

    @property
    @override
    def probability_shift(self) -> int:
        return probability_shift(self.element_bytes, self.rescale_threshold)

    @property
    def registers_at_entry(self) -> int:
        """Registers per thread that the launch gives out, before setmaxnreg."""
        return min(self.hardware.registers // self.threads // 8 * 8, 256)

    @property
    def register_pool(self) -> int:
        """The registers of the launch: what one warpgroup takes, another has given up."""
        return self.registers_at_entry * self.threads

    @property
    def softmax_registers(self) -> int:
        """Registers per thread of the softmax."""
        return self.registers.softmax

    @property
    def correction_registers(self) -> int:
        """Registers per thread of the correction."""
        return self.registers.correction

    @property
    def other_registers(self) -> int:
        """Registers per thread of the other warps."""
        return self.registers.other

    def scales(self, writers: str, slots: int, names: tuple[str, str] = ("", "")) -> Ring:
        """Return the factors of rows, from the softmax to the correction and back."""
        rows = WARPGROUP
        return Ring(
            name="scale",
            slots=slots,
            slot_bytes=4 * rows,
            holds="What the softmax sends to the correction: a factor for each row, then 1 / sum",
            alignment=16,
            full=End(
                arrivals=rows,
                arrived_by=writers,
                waited_by="the correction",
                meaning="each row's factor is in shared memory",
                name=names[0],
            ),
            empty=End(
                arrivals=rows,
                arrived_by="every thread of the correction",
                waited_by="the softmax",
                meaning="the factors have been read",
                name=names[1],
            ),
        )

    def tiles_to(self, warps: int, *, shared: bool) -> Ring:
        """Return the slots that tiles pass through, to ``warps`` warps of the other roles."""
        return tile_ring(
            self.config,
            warps,
            shared=shared,
            readers="every other role",
            reader_warps="every warp of the other roles",
            both="in both CTAs",
            holds="other roles: first row, head, batch",
        )

    @property
    def address_region(self) -> SharedRegion:
        """The word for the address of the allocation."""
        return SharedRegion("tensor_memory", 0, 4, 4, 1, "Address of the allocated tensor memory")

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        return attention_parameters(
            self,
            out_map(f"output, {self.out_dtype}"),
            out_pointer("the same output, for rows that see no key"),
        )

    @property
    def scheduler_line(self) -> str:
        """The line of the summary on the order of tiles and the exponentials."""
        return f"{self.scheduler} scheduler; {self.exp2_fma_share:.1%} of exp2 on the FMA pipe"

    @property
    def fma_keys(self) -> int:
        """The keys of every 16, the last ones, whose exponentials the FMA pipe computes."""
        return round(16 * self.exp2_fma_share)

    @property
    def packed_registers(self) -> int:
        """Registers of a row's probabilities of 32 keys."""
        return 32 * self.element_bytes // 4
