"""One row for all rows of the output: a bias along n."""

from __future__ import annotations

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
        2: Loads(
            each=(
                "const uint32 c0 = load_shared(residual_slot + 32 * group + lane % 4 * 4) & keep;",
                "const uint32 c1 = load_shared(residual_slot + 32 * group + 16 + lane % 4 * 4)"
                " & keep;",
            ),
            words=("c0", "c0", "c1", "c1"),
        ),
        4: Loads(
            each=(
                "uint32 c[2];",
                "load_shared_v2(c, residual_slot + 32 * group + lane % 4 * 8);",
            ),
            words=("c[0] & keep", "c[1] & keep"),
        ),
    },
    blackwell={2: _CHUNK, 4: _CHUNK},
    beta=1.0,  # PyTorch passes a bias to cuBLAS's epilogue only at 1
    short="bias",
)
