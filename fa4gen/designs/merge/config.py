"""The keys of kernels that merge partial results of attention."""

from __future__ import annotations

from typing import Literal

from fa4gen.designs.common.kernel_config import KernelConfig
from fa4gen.strict import Auto, rule


class MergeConfig(KernelConfig):
    """Merging of partial results of attention, on every architecture."""

    kernel: Literal["merge"]
    """Kernel family."""
    arch: Literal["sm_90a", "sm_100a", "sm_103a", "sm_100f"]
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16", "fp32"]
    """Element type of the parts. Sums are kept in float32."""
    out_dtype: Literal["bf16", "fp16", "fp32"] | Auto = "auto"
    """Element type of the merged output: as dtype when not given."""
    depth: Literal[32, 64, 80, 96, 112, 128, 160, 192, 256, 512]
    """Columns of a head's output, those of the values."""
    lse: bool = True
    """Also write the merged log-sum-exp, float32: parts may then be merged in steps."""
    rows_in_flight: Literal[1, 2, 4] = 2
    """Rows that a thread merges at once: more bytes in flight, and more registers."""

    @property
    def resolved_out_dtype(self) -> str:
        """Element type of the output."""
        return self.dtype if self.out_dtype == "auto" else self.out_dtype

    @rule
    def _types_are_convertible(self) -> None:
        if {self.dtype, self.resolved_out_dtype} == {"bf16", "fp16"}:
            raise ValueError(
                f"out_dtype: {self.out_dtype} for parts of {self.dtype}: write {self.dtype} or fp32"
            )
