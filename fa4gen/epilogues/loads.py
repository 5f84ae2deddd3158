"""CUDA by which a thread reads a C with one axis for its sums of a wgmma: 2-byte elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.epilogues.residual import Loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.epilogues.gate import GateLayout

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


# ---- of a gated activation: the elements of gate's columns and of up's ----

GATED_ALONG_COLUMNS_OF_SUMS: Mapping[GateLayout, Loads] = {
    "halves": Loads(
        each=(
            "const uint32 c0 = load_shared(residual_slot + 32 * group + lane % 4 * 4) & keep;",
            "const uint32 c1 = load_shared(residual_slot + 32 * group + 16 + lane % 4 * 4) & keep;",
            "const uint32 up_slot = residual_slot + kResidualBytes / 2;",
            "const uint32 d0 = load_shared(up_slot + 32 * group + lane % 4 * 4) & keep;",
            "const uint32 d1 = load_shared(up_slot + 32 * group + 16 + lane % 4 * 4) & keep;",
        ),
        words=("c0", "c0", "c1", "c1"),
        up_words=("d0", "d0", "d1", "d1"),
    ),
    "interleaved": Loads(
        each=(
            "uint32 c[2], d[2];  // two columns' elements of gate and of up",
            "load_shared_v2(c, residual_slot + 64 * group + lane % 4 * 8);",
            "load_shared_v2(d, residual_slot + 64 * group + 32 + lane % 4 * 8);",
        ),
        words=tuple(f"__byte_perm({one}[0], {one}[1], 0x5410) & keep" for one in "ccdd"),
        up_words=tuple(f"__byte_perm({one}[0], {one}[1], 0x7632) & keep" for one in "ccdd"),
    ),
}
"""Elements of 2 bytes, one for each column."""
GATED_FLOATS_ALONG_COLUMNS_OF_SUMS: Mapping[GateLayout, Loads] = {
    "halves": Loads(
        each=(
            "uint32 c[2], d[2];",
            "load_shared_v2(c, residual_slot + 32 * group + lane % 4 * 8);",
            "load_shared_v2(d, residual_slot + kResidualBytes / 2 + 32 * group + lane % 4 * 8);",
        ),
        words=("c[0] & keep", "c[1] & keep"),
        up_words=("d[0] & keep", "d[1] & keep"),
    ),
    "interleaved": Loads(
        each=("const uint4 c = load_shared_chunk(residual_slot + 64 * group + lane % 4 * 16);",),
        words=("c.x & keep", "c.z & keep"),
        up_words=("c.y & keep", "c.w & keep"),
    ),
}
"""Elements of 4 bytes, one for each column."""
GATED_ALONG_ROWS_OF_SUMS: Mapping[GateLayout, Loads] = {
    "halves": Loads(
        once=(
            *ALONG_ROWS_OF_SUMS.once,
            "const uint32 up_row = of_row + kResidualBytes / 2;",
            "const uint32 d0 = load_shared_in_both_halves(up_row) & keep;",
            "const uint32 d1 = load_shared_in_both_halves(up_row + 2 * 8) & keep;",
        ),
        words=("c0", "c1", "c0", "c1"),
        up_words=("d0", "d1", "d0", "d1"),
    ),
    "interleaved": Loads(
        once=(
            "const uint32 of_row = residual_slot + 4 * (16 * warp + lane / 4);",
            "const uint32 c0 = load_shared(of_row) & keep;  // of gate, then of up",
            "const uint32 c1 = load_shared(of_row + 4 * 8) & keep;",
        ),
        words=tuple(f"__byte_perm({one}, {one}, 0x1010)" for one in ("c0", "c1", "c0", "c1")),
        up_words=tuple(f"__byte_perm({one}, {one}, 0x3232)" for one in ("c0", "c1", "c0", "c1")),
    ),
}
"""Elements of 2 bytes, one for each row."""
_CHUNKS_APART = Loads(
    each=(
        "uint4 c{0, 0, 0, 0}, d{0, 0, 0, 0};",
        "if (has_residual) c = load_shared_chunk(from + place.in_row(i));",
        "if (has_residual) d = load_shared_chunk(from + kRowPieceBytes + place.in_row(i));",
    ),
    words=("c",),
    up_words=("d",),
)
_CHUNKS_IN_TURN = (
    "uint4 c{0, 0, 0, 0}, d{0, 0, 0, 0};",
    "if (has_residual) c = load_shared_chunk(from + 2 * place.in_row(i));",
    "if (has_residual) d = load_shared_chunk(from + 2 * place.in_row(i) + 16);",
)


def _picked(bytes_of: str) -> tuple[str]:
    """Return a chunk of every other element of 2 bytes of two chunks."""
    pairs = ("c.x, c.y", "c.z, c.w", "d.x, d.y", "d.z, d.w")
    words = ", ".join(f"__byte_perm({pair}, {bytes_of})" for pair in pairs)
    return (f"uint4{{{words}}}",)


GATED_CHUNKS: Mapping[tuple[GateLayout, int], Loads] = {
    ("halves", 2): _CHUNKS_APART,
    ("halves", 4): _CHUNKS_APART,
    ("interleaved", 2): Loads(
        each=_CHUNKS_IN_TURN, words=_picked("0x5410"), up_words=_picked("0x7632")
    ),
    ("interleaved", 4): Loads(
        each=_CHUNKS_IN_TURN,
        words=("uint4{c.x, c.z, d.x, d.z}",),
        up_words=("uint4{c.y, c.w, d.y, d.w}",),
    ),
}
"""Chunks of a row on Blackwell."""
