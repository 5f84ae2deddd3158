"""What a user may write in a config of a matrix product, as typed models.

D = activation(alpha * A . B + beta * C), with A (m, k), B (k, n), C and D (m, n), all optionally
with a batch in front. alpha and beta are arguments of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fa4gen.epilogues import ResidualValue, residual_of
from fa4gen.strict import Auto, Field, Read, Strict

if TYPE_CHECKING:
    from fa4gen.epilogues import Residual


def _tidied(activation: str) -> str:
    from fa4gen.epilogues.activation import parse_activation  # not for configs without one

    return parse_activation(activation).text


Expression = Annotated[
    str,
    Field(min_length=1, max_length=200),
    Read(_tidied),
]


class GemmKeys(Strict):
    """Keys of every config of a matrix product, for all architectures."""

    kernel: Literal["gemm"]
    """Kernel family."""
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
    """Name of the kernel, its files and its entry point; the file's stem when not given."""
    arch: str
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16", "fp8_e4m3"]
    """Element type of A and B. Sums are kept in float32."""
    out_dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    """Element type of C and of the output: as dtype when not given, and bf16 for fp8."""
    a_major: Literal["k", "m"] = "k"
    """The extent of A that is contiguous in memory."""
    b_major: Literal["k", "n"] = "k"
    """The extent of B that is contiguous in memory; k for the weights of a linear layer."""
    residual: ResidualValue = "none"
    activation: Expression | None = None
    """Applied to x = alpha * A . B + beta * C: an expression over x, such as max(x, 0)."""
    BN: Annotated[int, Field(ge=16, le=256, multiple_of=16)] | Auto = "auto"
    """Columns of a tile of the output; multiples of 64 where B has n contiguous."""
    BK: Literal[64, 128, 256] | Auto = "auto"
    """Elements along k in one stage: 128 or 256 bytes of them."""
    num_stages: Annotated[int, Field(ge=1, le=16)] | Auto = "auto"
    """Slots of the ring of A and B."""
    num_epi_stages: Annotated[int, Field(ge=1, le=4)] | Auto = "auto"
    """Slots of the ring in which the residual waits for the epilogue; see also num_out_stages."""

    @property
    def c(self) -> Residual:
        """What C is."""
        return residual_of(self.residual)

    @property
    def resolved_out_dtype(self) -> str:
        """Element type of C and of the output."""
        if self.out_dtype != "auto":
            return self.out_dtype
        return "bf16" if self.dtype == "fp8_e4m3" else self.dtype


class GemmRegisters(Strict):
    """Registers per thread of each kind of warp after ``setmaxnreg``."""

    producer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    consumer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]


class HopperGemmConfig(GemmKeys):
    """Matrix product with a fused residual on Hopper (sm_90a)."""

    arch: Literal["sm_90a"]
    """Architecture that the kernel is written for."""
    cta_group: Literal[1, 2, 4, 8] | Auto = "auto"
    """2, 4: CTAs of neighbouring row tiles share B by multicast; with swap_operands, A. 8: both."""
    share: Literal["auto", "a", "b", "both"] = "auto"
    """What a cluster shares: b down a column of tiles, a along a row, or both: two rows of them."""
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
    registers: GemmRegisters | Auto = "auto"
    """Registers per thread of the producer warpgroup and of each consumer warpgroup."""


class BlackwellGemmConfig(GemmKeys):
    """Matrix product with a fused residual on Blackwell (sm_100a, sm_103a)."""

    arch: Literal["sm_100a", "sm_103a"]
    """Architecture that the kernel is written for."""
    cta_group: Literal[1, 2] | Auto = "auto"
    """2: a cluster pair multiplies together: twice BM rows, each CTA loads half of B."""
    BM: Literal[64, 128] | Auto = "auto"
    """Rows of a CTA's tile of the output."""
    BN: Literal[64, 128, 192, 256] | Auto = "auto"
    """Columns of a tile of the output."""
    num_accum_stages: Annotated[int, Field(ge=1, le=4)] | Auto = "auto"
    """Accumulators in tensor memory: the epilogue reads one while the products fill another."""
    stage_stride_cols: Annotated[int, Field(ge=32, le=512, multiple_of=32)] | Auto = "auto"
    """Columns of tensor memory from one accumulator to the next."""
    num_out_stages: Annotated[int, Field(ge=1, le=4)] | Auto = "auto"
    """Slots through which the output passes to global memory."""
    scheduler: Literal["auto", "static", "dynamic"] = "auto"
    """Tiles in a fixed order, or assigned by the hardware (clusterlaunchcontrol)."""
