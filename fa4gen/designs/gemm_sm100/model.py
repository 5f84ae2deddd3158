"""The plan of a matrix product on Blackwell, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_maps import gemm_tensor_maps
from fa4gen.designs.common.gemm_model import costly_calls
from fa4gen.designs.common.gemm_parameters import gemm_parameters
from fa4gen.designs.common.grouped import GROUPS
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import tensor_map
from fa4gen.designs.gemm_sm100.memory import BlackwellGemmMemory
from fa4gen.designs.gemm_sm100.scaling import ATOM_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import NamedBarriers, Parameter, TensorMapPlan
    from fa4gen.epilogues.residual import Loads

EPILOGUE_WARPS = 4
WORD_BYTES = 4
SUMS_LOADED = 32
"""Columns of tensor memory that a thread loads at once."""


@dataclass(frozen=True, kw_only=True)
class BlackwellGemmPlan(BlackwellGemmMemory):
    """A matrix product by tcgen05, accumulators in tensor memory (sm_100a, sm_103a)."""

    RECORDED = (
        *BlackwellGemmMemory.RECORDED, "num_accum_stages", "stage_stride_cols", "num_out_stages",
        "tensor_memory", "tensor_memory_columns", "num_scale_stages",
        "elements_per_byte",
    )  # fmt: skip

    named_barriers: NamedBarriers = (("epilogue_barrier", 1),)

    @property
    @override
    def threads(self) -> int:
        # Epilogue, scheduler, load, mma, residual, arrange: those that there are.
        others = (self.scheduler == "dynamic") + 2 + self.c.exists + self.arrange_warps
        return 32 * (EPILOGUE_WARPS + others)

    @property
    def registers_per_thread(self) -> int:
        """The registers that a thread may use: no role gives any to another."""
        each = self.hardware.registers // self.threads // 8 * 8
        return min(each, self.hardware.max_registers_per_thread)

    @property
    @override
    def grid(self) -> str:
        each = "two CTAs" if self.is_pair else "one CTA"
        if self.groups:
            unit = " in pairs" * self.is_pair
            return f"as many CTAs as run at once{unit}, or as the tiles that groups may have"
        if self.scheduler == "dynamic":
            return (
                f"{each} a tile; those that run take over the tiles of those that have not started"
            )
        return f"{each} a tile, at most as many as multiprocessors"

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        leader = " for both CTAs" if self.is_pair else ""
        scaled, arranges = bool(self.block_scales.kind), self.arranges_scales
        and_scales = " and their scales" * (scaled and not arranges)
        rows = [
            ("epilogue", EPILOGUE_WARPS, "reads the sums, adds the residual, stores the output"
             if self.c.exists else "reads the sums, stores the output"),
        ]  # fmt: skip
        if self.scheduler == "dynamic":
            rows.append(("scheduler", 1, f"asks the hardware for the next tile{leader}"))
        rows += [
            ("load", 1, f"issues the TMA loads of A and B{and_scales}"),
            (
                "mma",
                1,
                f"{'copies scales to tensor memory, ' * scaled}issues the products{leader}; "
                "allocates tensor memory",
            ),
        ]
        if self.c.exists:
            rows.append(("residual", 1, "issues the TMA loads of C, ahead of the epilogue"))
        if arranges:
            work = "bring row-major scales into the order of the tensor cores"
            rows.append(("arrange", self.arrange_warps, work))
        roles = []
        first = 0
        for name, warps, work in rows:
            roles.append(Role(name, first, warps, self.registers_per_thread, work))
            first += warps
        return tuple(roles)

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # A box of A, B, C and the output is a swizzled panel. In a pair a CTA brings its rows of A,
        # and the part of B for half of the tile's columns.
        operands = gemm_tensor_maps(
            self,
            panel_bytes=(self.a_panel_bytes, self.b_panel_bytes),
            b_lines=self.b_columns if self.b_major == "k" else self.BK,
            out_rows=self.BM,
            out_columns=self.out_panel_columns,
        )
        return operands + self._scale_maps

    @property
    def _scale_maps(self) -> tuple[TensorMapPlan, ...]:
        """The maps of the scales of A and B, by words of 4 bytes: a box has whole atoms."""
        scales = self.block_scales
        if not scales.kind or self.arranges_scales:
            return ()
        box = (ATOM_BYTES // WORD_BYTES, scales.k_atoms)
        # Each CTA of a pair brings one of two atoms into both; gate's and up's are apart.
        b_atoms = 1 if self.is_pair or self.gated else scales.b_atoms
        return (
            tensor_map(
                "scale_a", ("word", "k_atoms", "m_atoms", "batch"), (*box, 1, 1), WORD_BYTES,
                swizzled=False,
            ),
            tensor_map(
                "scale_b", ("word", "k_atoms", "n_atoms", "batch"), (*box, b_atoms, 1), WORD_BYTES,
                swizzled=False,
            ),
        )  # fmt: skip

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        return gemm_parameters(
            self.config,
            columns=self.columns_constant,
            of_blocks=self.scales,
            of_output=self.output_scales,
            finds_amax=self.finds_amax,
        )

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        slots = f", {self.num_epi_stages} slots" if self.c.exists else ""
        rows = self.cta_group * self.BM
        lines = [
            f"{self.dtype}, A {self.a_major}-major, B {self.b_major}-major, sums in float32; "
            f"output {self.out_dtype}, {self.num_out_stages} slots",
            f"tiles of {rows} x {self.BN}, {self.BK} along k a stage, {self.num_stages} stages; "
            f"{self.num_accum_stages} accumulators",
            f"{self.c.words}{slots}; {self.scheduler} scheduler",
        ]
        if self.activation is not None:
            lines.append(self.activation_words)
        if self.groups:
            lines.append(GROUPS[self.groups])
        if self.scales:
            lines.append(self._scale_words)
        if self.is_pair:
            lines.append(
                "a pair of CTAs multiplies together, each with its rows of A and half of B"
            )
        return tuple(lines)

    @property
    def _scale_words(self) -> str:
        """The line of the summary on scales."""
        scales = self.block_scales
        kind = "powers of two" if scales.powers_of_two else "in e4m3"
        kind += ", row-major" * self.arranges_scales
        return (
            f"{self.config.scales}: a scale for {scales.columns} elements along k of each row of A "
            f"and column of B, {kind}; {self.num_scale_stages} slots in tensor memory"
        )

    @property
    @override
    def finds_tiles_by_warp(self) -> bool:
        return bool(self.groups)

    @property
    def residual_loads(self) -> Loads | None:
        """The CUDA by which the epilogue's thread reads its elements of C; None without a C."""
        if not self.c.exists:
            return None
        gate = self.gate_layout if self.gated else None
        return self.c.blackwell_loads(self.c_element_bytes, gate=gate)

    @property
    def loads_in_parts(self) -> bool:
        """Whether the epilogue loads the sums of a step in parts of 32 columns.

        Measured: of 64 at once ptxas computes two functions ahead and spills, where no matrix C is
        loaded in between.
        """
        if self.output_scales is not None:
            return True
        wide = self.out_element_bytes == 2 and self.accumulator_layout != "quarters"
        if self.gated:  # twice as many sums
            return wide and self.out_panel_columns % SUMS_LOADED == 0
        return wide and costly_calls(self.activation or "") > 1 and not self.c.is_matrix
