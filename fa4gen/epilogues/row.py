"""One row for all rows of the output: a bias along n."""

from __future__ import annotations

from fa4gen.epilogues.loads import (
    ALONG_COLUMNS_OF_SUMS,
    ALONG_ROWS_OF_SUMS,
    GATED_ALONG_COLUMNS_OF_SUMS,
    GATED_ALONG_ROWS_OF_SUMS,
    GATED_CHUNKS,
    GATED_FLOATS_ALONG_COLUMNS_OF_SUMS,
)
from fa4gen.epilogues.residual import Loads, Residual

_CHUNK = Loads(
    each=(
        "uint4 c{0, 0, 0, 0};",
        "if (has_residual) c = load_shared_chunk(from + place.in_row(i));",
    ),
    words=("c",),
)
ROW = Residual(
    name="row",
    axes=("n",),
    meaning="one row for all rows of the output (a bias)",
    parameter="added to every row",
    operation=", one row C for all rows",
    hopper={
        2: ALONG_COLUMNS_OF_SUMS,
        4: Loads(
            each=(
                "uint32 c[2];",
                "load_shared_v2(c, residual_slot + 32 * group + lane % 4 * 8);",
            ),
            words=("c[0] & keep", "c[1] & keep"),
        ),
    },
    hopper_swapped={2: ALONG_ROWS_OF_SUMS},
    hopper_gated={
        **{(layout, 2): loads for layout, loads in GATED_ALONG_COLUMNS_OF_SUMS.items()},
        **{(layout, 4): loads for layout, loads in GATED_FLOATS_ALONG_COLUMNS_OF_SUMS.items()},
    },
    hopper_swapped_gated={(layout, 2): loads for layout, loads in GATED_ALONG_ROWS_OF_SUMS.items()},
    blackwell={2: _CHUNK, 4: _CHUNK},
    blackwell_gated=GATED_CHUNKS,
    beta=1.0,  # PyTorch passes a bias to cuBLAS's epilogue only at 1
    short="bias",
)
