"""The keys of a matrix product on Blackwell."""

from __future__ import annotations

from typing import Annotated, Literal

from fa4gen.designs.common.gemm_config import GemmKeys
from fa4gen.strict import Auto, Field


class BlackwellGemmConfig(GemmKeys):
    """Matrix product with a fused residual on Blackwell (sm_100a, sm_103a, sm_100f)."""

    arch: Literal["sm_100a", "sm_103a", "sm_100f"]
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1"]
    """Element type of A and B, fp8_e5m2 and fp4_e2m1 with scales. Sums are kept in float32."""
    scales: Literal["mxfp8", "mxfp4", "nvfp4"] | None = None
    """Scales for blocks along k of each row of A and column of B."""
    scale_order: Literal["arranged", "row_major"] = "arranged"
    """Scales as fa4gen.scales.arrange returns them, or plain, which the kernel then arranges."""
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
