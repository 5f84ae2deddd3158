"""CUDA by which a thread reads a C with one axis for its sums of a wgmma: 2-byte elements."""

from __future__ import annotations

from fa4gen.epilogues.residual import Loads

ALONG_COLUMNS_OF_SUMS = Loads(
    each=(
        "const uint32 c0 = load_shared(residual_slot + 32 * group + lane % 4 * 4) & keep;",
        "const uint32 c1 = load_shared(residual_slot + 32 * group + 16 + lane % 4 * 4) & keep;",
    ),
    words=("c0", "c0", "c1", "c1"),
)
"""An element for each column."""
ALONG_ROWS_OF_SUMS = Loads(
    once=(
        "const uint32 of_row = residual_slot + 2 * (16 * warp + lane / 4);",
        "const uint32 c0 = load_shared_in_both_halves(of_row) & keep;",
        "const uint32 c1 = load_shared_in_both_halves(of_row + 2 * 8) & keep;",
    ),
    words=("c0", "c1", "c0", "c1"),
)
"""An element for each row."""
