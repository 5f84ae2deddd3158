"""The tensor-memory map of the Blackwell matrix product. Columns of 128 lanes x 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.model import TensorMemoryRegion

if TYPE_CHECKING:
    from fa4gen.designs.gemm_sm100.values import Values


def tensor_memory_regions(values: Values) -> tuple[TensorMemoryRegion, ...]:
    """Return the accumulators, ``stage_stride_cols`` columns apart, then the slots of scales."""
    where = {
        "rows": "",
        "quarters": ", 16 rows in each quarter of the lanes",
        "halves": ", the second half of the columns in lanes 64 to 127",
    }[values.layout]
    accumulators = tuple(
        TensorMemoryRegion(
            f"accumulator_{i}",
            i * values.stage_stride_cols,
            values.accumulator_columns,
            f"accumulator {i}: {values.BM} x {values.BN} float32{where}",
        )
        for i in range(values.num_accum_stages)
    )
    return accumulators + _scales(values)


def _scales(values: Values) -> tuple[TensorMemoryRegion, ...]:
    scales, first = values.scales, values.accumulators_end
    of_b = scales.tensor_columns - scales.a_columns
    return tuple(
        TensorMemoryRegion(
            f"scales_{i}",
            first + i * scales.tensor_columns,
            scales.tensor_columns,
            f"scales {i}: of a block of k, {scales.a_columns} columns for A, then {of_b} for B",
        )
        for i in range(values.num_scale_stages)
    )


def columns_needed(values: Values) -> int:
    """Return the columns that the stages take."""
    return values.accumulators_end + values.num_scale_stages * values.scales.tensor_columns
