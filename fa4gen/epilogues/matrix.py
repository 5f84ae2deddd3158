"""A matrix of the output's shape."""

from __future__ import annotations

from fa4gen.epilogues.residual import Loads, Residual

_CHUNK = Loads(
    each=(
        "uint4 c{0, 0, 0, 0};",
        "if (has_residual) c = load_shared_chunk(from + place.in_slot(i));",
    ),
    words=("c",),
)
MATRIX = Residual(
    name="matrix",
    axes=("m", "n"),
    meaning="a matrix of the output's shape",
    parameter="n contiguous",
    hopper={
        2: Loads(
            each=(
                "uint32 c[4];",
                "load_matrices(c, address);",
                "for (uint32& word : c) word &= keep;",
            ),
            words=("c[0]", "c[1]", "c[2]", "c[3]"),
        ),
        4: Loads(
            each=("uint32 c[2];", "load_shared_v2(c, address);"),
            words=("c[0] & keep", "c[1] & keep"),
        ),
    },
    hopper_swapped={
        2: Loads(
            each=(
                "uint32 c[4];",
                "load_matrices_transposed(c, address);",
                "for (uint32& word : c) word &= keep;",
            ),
            words=("c[0]", "c[1]", "c[2]", "c[3]"),
        ),
    },
    blackwell={2: _CHUNK, 4: _CHUNK},
    beta=0.5,
    short="residual",
)
