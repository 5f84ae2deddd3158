"""One column for all columns of the output: a bias along m, as where the output is transposed."""

from __future__ import annotations

from fa4gen.epilogues.loads import ALONG_COLUMNS_OF_SUMS, ALONG_ROWS_OF_SUMS
from fa4gen.epilogues.residual import Loads, Residual

COLUMN = Residual(
    name="column",
    axes=("m",),
    meaning="one column for all columns of the output (a bias along m)",
    parameter="added to every column",
    operation=", one column C for all columns",
    hopper={
        2: ALONG_ROWS_OF_SUMS,
        4: Loads(
            once=(
                "const uint32 c[2] = {load_shared(residual_slot + 4 * line) & keep,",
                "                     load_shared(residual_slot + 4 * (line + 8)) & keep};",
            ),
            words=("c[r]", "c[r]"),
        ),
    },
    hopper_swapped={2: ALONG_COLUMNS_OF_SUMS},
    blackwell={
        2: Loads(
            once=(
                "uint32 c = 0;",
                "if (has_residual) c = load_shared_in_both_halves(from + 2 * place.row);",
            ),
            words=("uint4{c, c, c, c}",),
        ),
        4: Loads(
            once=(
                "uint32 c = 0;",
                "if (has_residual) c = load_shared(from + 4 * place.row);",
            ),
            words=("uint4{c, c, c, c}",),
        ),
    },
    beta=1.0,
    short="bias along m",
)
