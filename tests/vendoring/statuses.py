"""The statuses of a vendored library, by the names of the header's constants."""

from __future__ import annotations

from typing import Final

REASONS: Final = (
    "OK", "IS_NULL", "NOT_TAKEN", "MISALIGNED", "BAD_STRIDE", "BAD_EXTENT", "BAD_HEADS",
    "OVERLAPS", "BAD_VALUE", "TOO_SMALL", "BAD_SIZE", "WRONG_DEVICE", "TOO_MANY_TILES",
    "NO_KERNEL", "NO_DRIVER", "OLD_DRIVER", "BAD_IMAGE", "MAP_REFUSED",
)  # fmt: skip
"""``enum <prefix>_reason``, by number."""
ARGUMENTS: Final = (
    "NONE", "QUERY", "KEY", "VALUE", "OUT", "LSE", "QUERY_DESCALE", "KEY_DESCALE", "VALUE_DESCALE",
    "SOFTMAX_SCALE", "A", "B", "C", "ALPHA", "BETA", "WORKSPACE", "ARGS", "KERNEL", "PREPARED",
    "PROBLEM", "DEVICE", "SINKS", "QUERY_OFFSETS", "KEY_OFFSETS", "KEY_LENGTHS", "PAGE_TABLE",
    "TENSORS", "SCALE_A", "SCALE_B", "ROW_OFFSETS", "ROW_COUNTS", "ROW_INDEX",
    "OUT_INDEX", "ROW_WEIGHTS", "OUT_SCALES", "OUT_AMAX", "PARTS", "PART_LSE",
    "OUT_TENSOR_SCALE",
)  # fmt: skip
"""``enum <prefix>_argument``, by number; PARTS and PART_LSE in folders with merging kernels."""
DRIVER_ERROR: Final = 0x10000


def describe_status(status: int) -> tuple[str, str]:
    """Return reason and argument; of a driver's error ("DRIVER_ERROR", its number)."""
    if status >= DRIVER_ERROR:
        return "DRIVER_ERROR", str(status - DRIVER_ERROR)
    return REASONS[status % 256], ARGUMENTS[status // 256]
