"""The keys of a matrix product on Hopper."""

from __future__ import annotations

from typing import Annotated, Literal

from fa4gen.designs.common.gemm_config import GemmKeys
from fa4gen.designs.common.kernel_config import RegisterBudget
from fa4gen.overriding import override
from fa4gen.strict import Auto, Field, Strict


class BlockScales(Strict):
    """Scales of fp8 operands, one for each block of 128 along k; sums of a block are promoted."""

    a: Literal["1x128"]
    """Block of A: 128 elements of a row."""
    b: Literal["1x128", "128x128"]
    """Block of B: 128 elements of a column, or of each of 128 columns."""
    dtype: Literal["fp32", "ue8m0"] = "fp32"
    """Type of a scale; ue8m0 is a power of two in a byte."""


class HopperGemmConfig(GemmKeys):
    """Matrix product with a fused residual on Hopper (sm_90a)."""

    arch: Literal["sm_90a"]
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16", "fp8_e4m3", "fp8_e5m2"]
    """Element type of A, and of B if b_dtype says no other. Sums are kept in float32."""
    b_dtype: Literal["auto", "fp8_e4m3", "fp8_e5m2"] = "auto"
    """Element type of B where A has the other of these types; as dtype when not given."""
    scales: BlockScales | None = None
    """Scales of blocks of A and B, such as {a: 1x128, b: 128x128}; for fp8."""
    rows: Literal["contiguous", "gathered"] = "contiguous"
    """gathered: row i of the product is row row_index[i] of A, an argument of each call."""
    out_rows: Literal["contiguous", "scattered"] = "contiguous"
    """scattered: row i of the product, times row_weights[i], is row out_index[i] of the output."""
    multiply_ahead: bool | Auto = "auto"
    """With scales: a warpgroup issues products before it has added the last ones to its sums."""
    cta_group: Literal[1, 2, 4, 8] | Auto = "auto"
    """2, 4: CTAs of neighbouring row tiles share B by multicast; with swap_operands, A. 8: both."""
    share: Literal["auto", "a", "b", "both"] = "auto"
    """Operands that a cluster shares: b down a column of tiles, a along a row, both in two rows."""
    BM: Annotated[int, Field(ge=16, le=256, multiple_of=8)] | Auto = "auto"
    """Rows of a CTA's tile of the output: 64, 128, 192, 256; multiples of 8 with swap_operands."""
    swap_operands: bool = False
    """For few rows of A: they are the columns of wgmma, and the columns of B are its rows."""
    split_k: Literal[1, 2] = 1
    """2: a cluster of two CTAs divides k of a tile; one of them adds what the other sends to it."""
    evict_first: Literal["auto", "none", "b", "both"] = "auto"
    """Operands whose lines leave L2 first: weights (B) that few row tiles read, or both."""
    short_ends: bool = False
    """The first loads of a CTA and its last stores wait for less: for a tile or two a CTA."""
    output_in_ring: bool = False
    """The output passes through the slots of A and B, free by then: for a large tile a CTA."""
    num_consumer_warpgroups: Annotated[int, Field(ge=1, le=3)] | Auto = "auto"
    """Warpgroups that multiply: each on its rows of the tile, or in turn with ping_pong."""
    ping_pong: bool | Auto = "auto"
    """Two consumer warpgroups work on a tile each, one multiplies while the other stores."""
    registers: RegisterBudget | Auto = "auto"
    """Registers per thread of the producer warpgroup and of each consumer warpgroup."""

    @property
    @override
    def resolved_b_dtype(self) -> str:
        return self.dtype if self.b_dtype == "auto" else self.b_dtype
