"""Matrix products in vendoring: an object for the protocol in ``family``."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.errors import ConfigError, Problem
from fa4gen.runtime.gemm_arguments import LARGEST_EXTENT, GemmArguments
from fa4gen.vendoring.call_structs import gemm_args
from fa4gen.vendoring.launcher_facts import DTYPES, MAP_DTYPES
from fa4gen.vendoring.passed_scales import passed_output_scales, passed_scales
from fa4gen.vendoring.selftest_facts import SelftestFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.vendoring.binding import GemmArgs
    from fa4gen.vendoring.launcher_facts import LauncherFacts
    from fa4gen.verify.gemm.memory import GemmMemory

_FLOAT_LITERAL = re.compile(r"(\d\.?\d*(?:e[+-]?\d+)?)f\b")
_FLOAT_FUNCTION = re.compile(r"\b(erf|exp2?|log2?|tanh|sqrt|fabs|fmax|fmin)f\(")


PLACES = {
    "scale_a_m_stride": "scale_a_stride",
    "scale_a_rows_stride": "scale_a_stride",
    "scale_b_n_stride": "scale_b_stride",
    "scale_b_n_blocks_stride": "scale_b_stride",
    **{
        name: f"written.scattered.{name}"
        for name in ("out", "out_index", "row_weights", "out_row_chunks", "out_rows")
    },
    "out_scales": "written.quantised.out_scales",
    **{
        f"out_scales_{axis}_stride": f"written.quantised.{axis}_stride"
        for axis in ("batch", "m", "blocks")
    },
    TENSOR_SCALE: f"written.quantised.{TENSOR_SCALE}",
    "out_scales_m_atoms_stride": "written.quantised.m_stride",
    "out_scales_block_atoms_stride": "written.quantised.blocks_stride",
    "out_amax": "written.out_amax",
}
"""Where the launcher has a kernel's parameter, unless it is under its own name."""
GATES = {"halves": 1, "interleaved": 2}
"""The launcher's numbers for the order of a gated product's columns of B."""


class GemmFamily:
    """Matrix products."""

    IN_EVERY_FOLDER = True

    def refuse(self, plan: GemmPlan) -> None:
        """Raise ConfigError for a kernel that the C launcher cannot call."""
        key = message = ""
        if "fp8_e5m2" in (plan.dtype, plan.b_dtype):
            key = "dtype" if plan.dtype == "fp8_e5m2" else "b_dtype"
            message = f"{key}: vendored folders take no operands of fp8_e5m2 yet"
        if message:
            remedy = (
                "Call the kernel by `fa4gen.load`, or compile the files of `fa4gen render` with a "
                "launcher of your own."
            )
            raise ConfigError(Problem(message, remedy, key=key))

    def launcher_facts(self, plan: GemmPlan, facts: LauncherFacts) -> LauncherFacts:
        """Return ``facts`` with those of matrix products."""
        c_dtype = "" if plan.c_dtype == plan.out_dtype or not plan.c.exists else plan.c_dtype
        return replace(
            facts,
            parameters=tuple(PLACES.get(name, name) for name in facts.parameters),
            maps=tuple(
                replace(row, dtype=MAP_DTYPES[plan.c_dtype]) if row.tensor == "c" else row
                for row in facts.maps
            ),
            cta_group=plan.launch.cluster,
            ctas_per_tile=plan.ctas_per_tile,
            max_extent=LARGEST_EXTENT,
            tile_rows=plan.tile_rows,
            tile_columns=plan.tile_columns,
            a_m_major=plan.a_major == "m",
            b_n_major=plan.b_major == "n",
            residual=f"RESIDUAL_{plan.residual.upper()}",
            c_axes=plan.c.axes,
            activation="NULL" if plan.activation is None else json.dumps(plan.activation),
            gate=GATES[plan.gate_layout] if plan.gated else 0,
            column_unit=plan.columns_of_b(plan.column_unit),
            groups=plan.config.groups or "",
            most_groups=plan.most_groups if plan.groups else 0,
            gathers_rows=plan.gathers_rows,
            scatters_rows=plan.scatters_rows,
            c_dtype=DTYPES[c_dtype] if c_dtype else "",
            c_element_bytes=plan.c_element_bytes,
            out_scales=passed_output_scales(plan),
            finds_amax=plan.finds_amax,
            scales=passed_scales(plan),
            elements_per_byte=plan.elements_per_byte,
            out_elements_per_byte=plan.out_elements_per_byte,
            has_tensor_scale=plan.output_scales is not None and plan.output_scales.has_tensor_scale,
        )

    def selftest_facts(self, plan: GemmPlan) -> SelftestFacts:
        """Return the facts of a kernel for the self-test."""
        from fa4gen.verify.gemm.tolerance import Accumulation

        how = Accumulation.of(plan)
        cuda = plan.activation_cuda
        return SelftestFacts(
            rows=plan.tile_rows,
            columns=plan.tile_columns,
            stage_depth=plan.BK,
            ring=(plan.num_stages + 1) * plan.BK,
            descales=False,
            kv_dtype="",
            operand="",
            rescale_threshold=0.0,
            probability_shift=0,
            exp2_error=0.0,
            products_per_step=how.products_per_step,
            alignment_bits=how.alignment_bits,
            gated=plan.gated,
            activation=None if cuda is None else double_expression(cuda),
            activation_float=None if cuda is None else float_expression(cuda),
            condition=None,
            scales_elements=any(row.in_tensor_cores for row in plan.scales),
        )

    def case_args(
        self, plan: GemmPlan, views: Mapping[str, TensorView], memory: GemmMemory
    ) -> GemmArgs:
        """Return the arguments of a call with the tensors of one of verify's cases."""
        return self.peer_args(plan, views, alpha=memory.alpha, beta=memory.beta)

    def peer_args(
        self, plan: GemmPlan, views: Mapping[str, TensorView], *, alpha: float, beta: float
    ) -> GemmArgs:
        """Return the arguments of a call for bench."""
        matrices = views["a"], views["b"], views.get("c"), views["out"]
        others = {name: views[name] for name in GemmArguments._fields[6:] if name in views}
        return gemm_args(plan, GemmArguments(*matrices, alpha, beta, **others))


def double_expression(cuda: str) -> str:
    """Return C over double for an activation's CUDA over float: ``1.f`` -> ``1.``."""
    text = float_expression(cuda)
    for name in ("divide", "sigmoid"):
        text = text.replace(f"{name}_float(", f"{name}(")
    return _FLOAT_FUNCTION.sub(r"\1(", _FLOAT_LITERAL.sub(r"\1", text))


def float_expression(cuda: str) -> str:
    """Return C over float: functions that only CUDA and the kernels have get other names."""
    found = cuda.replace("__fdividef(", "divide_float(")
    return found.replace("sigmoid_by_exp2(", "sigmoid_float(")


GEMM = GemmFamily()
