"""The keys that configs of all matrix products have.

D = activation(alpha * A . B + beta * C), with A (m, k), B (k, n), C and D (m, n), all optionally
with a batch in front. alpha and beta are arguments of the call.

Of a gated activation D is (m, n / 2). A C with one axis is a bias, part of both numbers: gate and
up are columns of alpha * A . B + beta * C. A matrix C has the shape of D, and beta * C is added to
what the activation gives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from fa4gen.designs.common.gemm_scales import OUTPUT_FORMS, OutputScales
from fa4gen.designs.common.kernel_config import KernelConfig
from fa4gen.epilogues import ResidualValue, residual_of
from fa4gen.epilogues.gate import GateLayout, names_a_gate
from fa4gen.strict import Auto, Field, Read

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


class GemmKeys(KernelConfig):
    """Keys of every config of a matrix product, for all architectures."""

    kernel: Literal["gemm"]
    """Kernel family."""
    dtype: Literal["bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1"]
    """Element type of A and B. Sums are kept in float32."""
    out_dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    """Element type of C and of an output without scales: auto is dtype, and bf16 for fp8."""
    output_scales: Literal["1x128", "mxfp8", "nvfp4", "amax"] | None = None
    """The output is quantised, with a scale for each block of a row; amax only finds its amax."""
    output_scale_dtype: Literal["fp32", "ue8m0"] | None = None
    """Type of a scale of 1x128: fp32 when not given; ue8m0 is a power of two in a byte."""
    output_scale_order: Literal["row_major", "arranged"] = "row_major"
    """Order of scales of mxfp8 and nvfp4: arranged, as Blackwell's products read A's, or rows."""
    a_major: Literal["k", "m"] = "k"
    """The extent of A that is contiguous in memory."""
    b_major: Literal["k", "n"] = "k"
    """The extent of B that is contiguous in memory; k for the weights of a linear layer."""
    residual: ResidualValue = "none"
    groups: Literal["offsets", "masked", "k_offsets"] | None = None
    """Rows of A, each group with a B of its own; k_offsets: rows of k, each with its own output."""
    most_groups: Annotated[int, Field(ge=1, le=4096)] | Auto = "auto"
    """With groups: the most of a call; their first tiles are kept in shared memory."""
    activation: Expression | None = None
    """Applied to x = alpha * A . B + beta * C: an expression over x, or over gate and up."""
    gate_layout: GateLayout = "halves"
    """Columns of B of a gated activation: gate's half, then up's; or gate and up in turn."""
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
        """The residual C."""
        return residual_of(self.residual)

    @property
    def is_gated(self) -> bool:
        """Whether the activation is one over gate and up."""
        return self.activation is not None and names_a_gate(self.activation)

    @property
    def resolved_b_dtype(self) -> str:
        """Element type of B."""
        return self.dtype

    @property
    def resolved_c_dtype(self) -> str:
        """Element type of C, and of an output that is not quantised."""
        if self.out_dtype != "auto":
            return self.out_dtype
        return self.dtype if self.dtype in ("bf16", "fp16") else "bf16"

    @property
    def resolved_output_scales(self) -> OutputScales | None:
        """The scales of a quantised output."""
        if self.output_scales is None or self.output_scales == "amax":
            return None
        form = OUTPUT_FORMS.get(self.output_scales)
        if form is None:
            return None
        in_atoms = self.output_scale_order == "arranged"
        return replace(form, dtype=self.output_scale_dtype or form.dtype, in_atoms=in_atoms)

    @property
    def resolved_out_dtype(self) -> str:
        """Element type of the output."""
        scales = self.resolved_output_scales
        return self.resolved_c_dtype if scales is None else scales.element


def without_output_scales(config: GemmKeys) -> dict[str, object]:
    """Return the changes of a config that leave its output as it is."""
    changes: dict[str, object] = {"output_scales": None}
    if config.output_scale_dtype is not None:
        changes["output_scale_dtype"] = None
    if config.output_scale_order != "row_major":
        changes["output_scale_order"] = "row_major"
    return changes
