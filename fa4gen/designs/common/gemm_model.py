"""The plan of all matrix products: D = activation(alpha * A . B + beta * C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.gemm_scales import ATOM_ROWS
from fa4gen.designs.common.kernel_model import KernelPlan
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES, SHARED_BYTE
from fa4gen.epilogues import residual_of
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_config import GemmKeys
    from fa4gen.designs.common.gemm_scales import Operand, OperandScales, OutputScales
    from fa4gen.epilogues import Residual
    from fa4gen.epilogues.gate import GateLayout

LINE_UNIT = 16
"""Bytes: what TMA copies begins at a multiple."""
COSTLY = ("exp(", "tanh(", "sigmoid(", "silu(", "gelu(", "erf(", "log(", "sqrt(")
"""The calls of an activation that need registers of their own."""


def costly_calls(activation: str) -> int:
    """Count the calls in an activation that take registers of their own."""
    return sum(map(activation.count, COSTLY))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class GemmPlan(KernelPlan):
    """The plan of a matrix product.

    ``dtype`` is that of A and B, ``c_dtype`` that of C, and of D unless it is quantised.
    """

    RECORDED = (
        *KernelPlan.RECORDED, "a_major", "b_major", "residual", "activation", "activation_cuda",
        "BM", "BN", "BK", "num_stages", "num_epi_stages", "mma_k", "panel_columns",
        "out_panel_columns",
    )  # fmt: skip

    config: GemmKeys
    keeps_addresses: bool = True
    """The epilogue has registers left."""
    BM: int
    """Rows of a CTA's tile of the output."""
    BN: int
    """Columns of the tile; a pair has ``cta_group * BM`` rows of as many columns."""
    BK: int
    """Elements along k of one stage."""
    num_stages: int = 1
    num_epi_stages: int = 1
    """Slots for the residual; on Hopper the output passes through the same ones."""
    most_groups: int = 0
    """Groups that a call may have; 0 without groups."""
    scales: tuple[OperandScales, ...]
    """Those of blocks of A and of B, or none."""

    @property
    def a_major(self) -> str:
        """The extent of A whose elements are contiguous: "k" or "m"."""
        return self.config.a_major

    @property
    def b_major(self) -> str:
        """The extent of B whose elements are contiguous: "k" or "n"."""
        return self.config.b_major

    @property
    def residual(self) -> str:
        """The name of what C is; see ``c``."""
        return self.config.residual

    @property
    def groups(self) -> Literal["offsets", "masked"] | None:
        """How rows are divided into groups with a B of their own; None for one product a batch."""
        groups = self.config.groups
        return None if groups == "k_offsets" else groups

    @property
    def sums_by_group(self) -> bool:
        """Whether groups divide k: each product of the batch sums over rows of its own."""
        return self.config.groups == "k_offsets"

    @property
    def activation(self) -> str | None:
        """The activation of alpha * A . B + beta * C, as the config writes it."""
        return self.config.activation

    @property
    def gated(self) -> bool:
        """Whether the activation is one over gate and up: the output has half of B's columns."""
        return self.config.is_gated

    @property
    def gate_layout(self) -> GateLayout:
        """The order of a gated product's columns of B."""
        return self.config.gate_layout

    @property
    def out_columns(self) -> int:
        """Columns of the output in a CTA's tile, which has ``BN`` columns of B."""
        return self.BN // 2 if self.gated else self.BN

    @property
    def activation_words(self) -> str:
        """The activation's line of the summary."""
        order = {"halves": "are halves of", "interleaved": "take turns in"}
        words = f"; gate and up {order[self.gate_layout]} B's columns" if self.gated else ""
        return f"activation {self.activation}{words}"

    @property
    def column_unit(self) -> int:
        """The columns of the output are a multiple of it."""
        if self.scatters_rows:
            return LINE_UNIT // self.out_element_bytes
        shared = self.out_elements_per_byte
        if not self.gated or self.gate_layout == "interleaved":
            return shared
        units = [shared]
        for row in self.scales:  # no block, and no atom, is of both
            units.append(ATOM_ROWS if row.in_atoms else row.rows)
        if self.b_major == "n":  # up's first column begins a line of B
            units.append(LINE_UNIT // self.element_bytes)
        if self.c.axes == ("n",):
            units.append(LINE_UNIT // self.c_element_bytes)
        return max(units)  # powers of two

    def columns_of_b(self, columns: int) -> int:
        """Return the columns of B for these columns of the output."""
        return 2 * columns if self.gated else columns

    def output_columns(self, columns: int) -> int:
        """Return the columns of the output for these columns of B."""
        return columns // 2 if self.gated else columns

    def c_extents(self, m: int, n: int) -> tuple[int, ...]:
        """Return the shape of one C for an output of (m, n)."""
        extents: tuple[int, ...] = self.c.extents(
            m, n if self.c.is_matrix else self.columns_of_b(n)
        )
        return extents

    @property
    def activation_cuda(self) -> str | None:
        """The activation as a C++ expression over ``float x``, or ``gate`` and ``up``."""
        if self.activation is None:
            return None
        from fa4gen.epilogues.activation import parse_activation  # not for kernels without one

        return parse_activation(self.activation).cuda()

    @property
    def gathers_rows(self) -> bool:
        """Whether the rows of A are those that an index names, an argument of each call."""
        return False

    @property
    def places_atoms(self) -> bool:
        """Whether tiles have a place in atoms of scales, which each group begins."""
        of_output = self.output_scales is not None and self.output_scales.in_atoms
        in_atoms = of_output or any(one.in_atoms for one in self.scales)
        return self.groups == "offsets" and in_atoms

    @property
    def lists_atoms(self) -> bool:
        """Whether the atoms before a group are listed, as a tile has more than one."""
        return self.places_atoms and self.tile_rows != ATOM_ROWS

    @property
    def finds_tiles_by_warp(self) -> bool:
        """Whether the lanes of a warp look for the group of a tile together."""
        return False

    @property
    def scatters_rows(self) -> bool:
        """Whether rows go, weighted, to the rows of the output that an index names."""
        return False

    @property
    def panel_columns(self) -> int:
        """Elements of A and B in a row of 128 bytes, which the swizzle permutes."""
        return PANEL_BYTES // self.element_bytes * self.elements_per_byte

    @property
    def out_panel_columns(self) -> int:
        """Columns of the output that pass through shared memory together, a swizzled panel."""
        raise NotImplementedError

    @property
    def c_panel_columns(self) -> int:
        """Columns of a matrix C in a swizzled panel: fewer than the output's if it is quantised."""
        return self.out_panel_columns

    @property
    def a_bytes(self) -> int:
        """Bytes of A in a slot of the ring."""
        return self.BM * self.line_bytes(self.BK)

    def line_bytes(self, elements: int) -> int:
        """Return the bytes of contiguous elements of A or B."""
        return elements * self.element_bytes // self.elements_per_byte

    def out_line_bytes(self, columns: int) -> int:
        """Return the bytes of contiguous elements of the output."""
        return columns * self.out_element_bytes // self.out_elements_per_byte

    def scales_of(self, operand: Operand) -> OperandScales | None:
        """Return the scales of A or B, None where they have none."""
        return next((row for row in self.scales if row.operand == operand), None)

    @property
    def b_dtype(self) -> str:
        """The type of B; ``dtype`` is A's."""
        return self.config.resolved_b_dtype

    @property
    @override
    def out_dtype(self) -> str:
        return self.config.resolved_out_dtype

    @property
    def out_elements_per_byte(self) -> int:
        """Elements of the output that share a byte; 1 where none do."""
        return SHARED_BYTE.get(self.out_dtype, 1)

    @property
    def packed_dtype(self) -> str:
        """The 16-bit type that pairs of float32 are rounded to, and C is read in."""
        return self.c_dtype

    @property
    def c_dtype(self) -> str:
        """The type of C."""
        return self.config.resolved_c_dtype

    @property
    def c_element_bytes(self) -> int:
        """Bytes of an element of C."""
        return ELEMENT_BYTES[self.c_dtype]

    @property
    def output_scales(self) -> OutputScales | None:
        """The scales of a quantised output, None for another one."""
        return self.config.resolved_output_scales

    @property
    def counts_columns(self) -> bool:
        """Whether a quantising epilogue leaves out columns past n.

        They need not be zero: a NaN there would become the scale of a whole block.
        """
        scales = self.output_scales
        if scales is None or self.column_unit % scales.columns == 0:
            return False
        along_rows = self.c.exists and "n" not in self.c.axes
        return self.activation is not None or along_rows or self.out_elements_per_byte > 1

    @property
    def may_write_in_place(self) -> bool:
        """Whether the output may overwrite C: element by element."""
        return self.c.is_matrix and self.output_scales is None

    @property
    def finds_amax(self) -> bool:
        """Whether the kernel finds the largest magnitude of its output."""
        return self.config.output_scales == "amax"

    @property
    def c(self) -> Residual:
        """The residual C."""
        return residual_of(self.residual)

    @property
    def ctas_per_tile(self) -> int:
        """CTAs of a cluster that work on the same rows of the output."""
        return self.launch.cluster // self.cta_group

    @property
    def tile_rows(self) -> int:
        """Rows of the output that the CTAs of a cluster work on together."""
        return self.cta_group * self.BM

    @property
    def tile_columns(self) -> int:
        """Columns of the output that the CTAs of a cluster work on together."""
        return self.out_columns

    @property
    def columns_constant(self) -> str:
        """The kernel's constant for ``tile_columns``."""
        return "kOutColumns" if self.gated else "kBN"

    @property
    def operation(self) -> str:
        """The kernel's function, in a line."""
        scaled = "A . B" if not self.scales else "(scales * A) . (scales * B)"
        sums = f"alpha * {scaled}" + " + beta * C" * self.c.exists
        output = f"activation({sums})" if self.activation else sums
        if self.gated and self.c.is_matrix:
            output = f"activation(gate and up of alpha * {scaled}) + beta * C"
        elif self.gated:
            output = f"activation(gate and up of {sums})"
        if self.output_scales is not None:
            output = f"quantize({output})"
        return f"matrix product, D = {output}{self.c.operation}"

    @property
    def output_rings(self) -> tuple[str, ...]:
        """Barriers of the rings in which panels of every tile's output pass between roles."""
        return ()

    @property
    def panels_per_ring(self) -> int:
        """Panels of a tile that pass through each of ``output_rings``."""
        return 0

    @property
    def tile_per_ring(self) -> bool:
        """Whether each of ``output_rings`` has tiles of its own; else they share every tile."""
        return False
