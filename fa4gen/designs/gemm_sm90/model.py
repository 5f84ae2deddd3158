"""The plan of a matrix product on Hopper, in addition to that of any."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_maps import gemm_tensor_maps
from fa4gen.designs.common.gemm_model import costly_calls
from fa4gen.designs.common.gemm_parameters import gemm_parameters
from fa4gen.designs.common.grouped import GROUPS
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.roles import consumer_roles
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.designs.gemm_sm90.memory import HopperGemmMemory
from fa4gen.designs.gemm_sm90.tile import DEFAULT_REGISTERS, STORED_ROWS, WGMMA_ROWS
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import NamedBarriers, Parameter, TensorMapPlan
    from fa4gen.epilogues.residual import Loads

SINGLE_CALL = re.compile(r"\w+\(x\)")
"""An activation that is one function of x."""
GATHER_WARP = 3
"""The last warp of the producer warpgroup: no warp that stores output."""
COUNTS = {4: "four", 8: "eight"}
"""CTAs of a large cluster."""


@dataclass(frozen=True, kw_only=True)
class HopperGemmPlan(HopperGemmMemory):
    """A matrix product by wgmma, accumulators in registers (sm_90a)."""

    RECORDED = (
        *HopperGemmMemory.RECORDED, "swap_operands", "split_k", "cluster_rows", "cluster_columns",
        "shares_in_turns", "evict_first", "short_ends", "output_in_ring",
        "num_consumer_warpgroups", "ping_pong", "warpgroup_rows", "last_panel_columns",
        "producer_registers", "consumer_registers",
    )  # fmt: skip

    @property
    def split_k(self) -> int:
        """CTAs that divide k of a tile; they take turns in writing the tiles."""
        return self.config.split_k

    @property
    def short_ends(self) -> bool:
        """Whether clusters share from their first block on, and last stores wait for no other."""
        return self.config.short_ends

    @property
    @override
    def grid(self) -> str:
        if self.groups:
            unit = f" in clusters of {self.cluster}" if self.cluster > 1 else ""
            return f"as many CTAs as run at once{unit}, or as the tiles that groups may have"
        if self.is_pair:
            return "two CTAs a pair, at most as many as multiprocessors, or two a tile of the pair"
        if self.cta_group in COUNTS:
            count = COUNTS[self.cta_group]
            return (
                f"{count} CTAs a cluster, at most as many as run at once, or {count} a tile of the "
                "cluster"
            )
        if self.is_split:
            return "two CTAs a tile, at most as many as multiprocessors"
        return "as many CTAs as multiprocessors, or tiles where there are fewer"

    @property
    @override
    def named_barriers(self) -> NamedBarriers:
        if self.output_in_ring:  # the rules refuse both at once
            return (("ring_barrier", 1),)
        return (("turn_barrier", 1),) if self.ping_pong else ()

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        registers, count = self.registers, self.num_consumer_warpgroups
        transfers = "one thread stores the output of consumer"
        if self.c.exists:
            transfers = "one thread loads the residual ahead of, and stores the output of, consumer"
        if self.scatters_rows:
            transfers = "stores the rows of consumer"
        return (
            Role("load", 0, 1, registers.producer, self._load_work),
            *(
                Role(f"transfer {i}", 1 + i, 1, registers.producer, f"{transfers} {i}")
                for i in range(count)
            ),
            *(
                [Role("gather", GATHER_WARP, 1, registers.producer, "copies the other rows of A")]
                if self.gathers_rows
                else []
            ),
            *consumer_roles(registers, count, self._consumer_work),
        )

    @property
    def _load_work(self) -> str:
        if not self.gathers_rows:
            return "one thread issues the TMA loads of A and B"
        return "one warp copies half of the rows of A, a thread of it issues the TMA loads of B"

    def _consumer_work(self, consumer: int) -> str:
        if self.ping_pong:
            which = "second" if self.num_consumer_warpgroups == 2 else "next"
            return f"the products and the output of every {which} tile"
        rows = self.warpgroup_rows
        first = rows * consumer
        what = "columns" if self.swap_operands else "rows"
        return f"the products and the output of {what} {first} to {first + rows - 1}"

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # Boxes of 128 bytes by a number of lines: of a shared operand, the part of a CTA.
        return gemm_tensor_maps(
            self,
            panel_bytes=(PANEL_BYTES, PANEL_BYTES),
            a_lines=self.brought_a_lines,
            b_lines=self.brought_b_lines,
            out_rows=self.panel_rows,
            residual_rows=self.residual_rows,
            out_columns=self.out_panel_columns,
            last_columns=self.last_panel_columns,
        )

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        return gemm_parameters(
            self.config,
            last_maps=self.has_last_maps,
            columns=self.columns_constant,
            of_blocks=self.scales,
            gathers_rows=self.gathers_rows,
            scatters_rows=self.scatters_rows,
            of_output=self.output_scales,
            finds_amax=self.finds_amax,
        )

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        consumers = self.num_consumer_warpgroups
        lines = [
            f"{self._types}, A {self.a_major}-major, B {self.b_major}-major, sums in float32; "
            f"output {self.out_dtype}, {self.c.words}",
            *(["scales of " + ", ".join(row.words for row in self.scales)] if self.scales else []),
            f"tiles of {self.BM} x {self.BN}, {self.BK} along k a stage, {self.num_stages} "
            f"stages; {consumers} consumer warpgroup{'s' * (consumers > 1)}"
            + (", a tile each in turn" if self.ping_pong else ""),
        ]
        if self.gathers_rows:
            lines.append("rows of A are gathered by an index, 16 bytes a copy")
        if self.scatters_rows:
            lines.append("rows of the output are scattered by an index, each with a weight")
        if self.finds_amax:
            lines.append("the largest magnitude of the output is found before it is rounded")
        if self.swap_operands:
            read = "; B is read once" if self.BM <= WGMMA_ROWS else ""
            lines.append(f"columns of B are the rows of wgmma, rows of A its columns{read}")
        if self.is_split:
            lines.append(
                "two CTAs divide k of a tile; in turn, one adds the other's sums and stores"
            )
        if self.output_in_ring:
            lines.append(
                "the output passes through the ring of A and B, when all of it has been read"
            )
        if self.activation is not None:
            lines.append(self.activation_words)
        if self.config.groups is not None:
            lines.append(GROUPS[self.config.groups])
        if self.is_shared:
            lines.append(self._sharing)
        return tuple(lines)

    @property
    def _types(self) -> str:
        """The types of A and B in the summary."""
        if self.b_dtype == self.dtype:
            return self.dtype
        return f"A {self.dtype}, B {self.b_dtype}"

    @property
    def _sharing(self) -> str:
        """The line of the summary on what CTAs of a cluster share."""
        ctas = {2: "a pair of", 4: "a cluster of four"}.get(self.cta_group, "a cluster of eight")
        tiles = "tiles side by side" if self.cluster_columns > 1 else "row tiles"
        if self.shares_both:
            tiles = f"tiles in two rows of {self.cluster_columns}"
        turns = ", a block each in turn" if self.shares_in_turns else ""
        return (
            f"{ctas} CTAs works on neighbouring {tiles} and shares {self.shared_operands} by "
            f"multicast{turns}"
        )

    @property
    def orders_pieces(self) -> bool:
        """Whether a thread begins a piece of the output, 8 elements, when the last one is done.

        Measured: ptxas computes activations of many pieces at once and spills. A single function of
        x and C it does not, nor what takes few registers, unless a thread has few in addition to
        its sums.
        """
        text = self.activation or "x"
        single = SINGLE_CALL.fullmatch(text) is not None and self.c.exists
        costly = costly_calls(text)
        if self.gated and not self.scales:  # its sigmoid takes few registers, and scales take many
            costly -= text.count("sigmoid(") + text.count("silu(")
        simple = costly == 0 or single
        few = self.consumer_registers < DEFAULT_REGISTERS[self.num_consumer_warpgroups].consumer
        crowded = few or self.swap_operands or self.ping_pong or self.num_consumer_warpgroups > 2
        crowded = crowded or self.launch.cluster > 1
        return self.activation is not None and (crowded or not simple)

    @property
    @override
    def finds_tiles_by_warp(self) -> bool:
        return bool(self.groups) and bool(
            self.scales or self.output_scales or self.scatters_rows or self.finds_amax
        )

    @property
    def residual_loads(self) -> Loads | None:
        """The CUDA by which a consumer's thread reads its elements of C; None without a C."""
        if not self.c.exists:
            return None
        gate = self.gate_layout if self.gated else None
        return self.c.hopper_loads(self.c_element_bytes, swapped=self.swap_operands, gate=gate)

    @property
    def pads_panels(self) -> bool:
        """Whether slots of the output have 8 rows more than are stored: see ``STORED_ROWS``."""
        return self.swap_operands and self.BM % STORED_ROWS != 0

    @property
    def shares_a(self) -> bool:
        """Whether CTAs of a cluster load parts of A for one another."""
        return self.cluster_columns > 1

    @property
    def shares_b(self) -> bool:
        """Whether CTAs of a cluster load parts of B for one another."""
        return self.cluster_rows > 1

    @property
    @override
    def tile_rows(self) -> int:
        return self.cluster_rows * self.BM

    @property
    @override
    def tile_columns(self) -> int:
        return self.cluster_columns * self.out_columns

    @property
    @override
    def columns_constant(self) -> str:
        return "kTileColumns" if self.cluster_columns > 1 else super().columns_constant

    @property
    @override
    def output_rings(self) -> tuple[str, ...]:
        return tuple(f"epi{i}_ready" for i in range(self.num_consumer_warpgroups))

    @property
    def has_narrow_panel(self) -> bool:
        """Whether a tile's last panel has fewer columns than a line has room for."""
        return self.last_panel_columns < self.out_panel_columns

    @property
    @override
    def tile_per_ring(self) -> bool:
        return self.ping_pong

    @property
    @override
    def mma_dtypes(self) -> tuple[str, str]:
        types = self.dtype, self.b_dtype
        return types[::-1] if self.swap_operands else types

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """Columns of the sums of each kind of wgmma."""
        return (self.product_columns,)
