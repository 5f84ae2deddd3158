"""A sound call of a kernel of each kind, as shapes and types, for adapters that run nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

CAUSAL, SMALL, FP8 = "d128_causal_bf16", "d64_dense_small_bf16", "depth512_dense_fp8"
RAGGED, PAGED = "d128_ragged_causal_bf16", "d64_paged64_window_sinks_bf16"
DECODE, ALIBI = "decode_d128_bf16", "d128_alibi_causal_bf16"
SEQUENCES, SCALED = "fa4_d128_paged64_causal_fp8", "decode_d128_kv_fp8_bf16"
SCALED_PAGES = "decode_d128_paged64_kv_fp8_page_bf16"
RESIDUAL, MAJORS = "gemm_bf16_residual_sm90", "gemm_bf16_mn_major_sm90"
BLOCKS = "gemm_fp8_scaled_sm90"
GROUPED, MASKED = "gemm_grouped_bf16_sm90", "gemm_grouped_masked_fp8_scaled_sm90"
GATHERED = "gemm_gathered_bf16_sm90"
SCATTERED, LARGEST = "gemm_scattered_bf16_sm90", "gemm_bf16_amax_sm90"
QUANTISED, OF_C = "gemm_swiglu_fp8_out_sm90", "gemm_bf16_fp8_out_sm90"
SUMS = "gemm_weight_gradient_bf16_sm90"
MERGE = "merge_d128_bf16"
SWIGLU, IN_TURN = "gemm_swiglu_bf16_sm90", "gemm_swiglu_clamped_bf16"


class Spec(NamedTuple):
    """The shape of an array, and its type as NumPy's word."""

    shape: tuple[int, ...]
    dtype: str = "bfloat16"


class Call(NamedTuple):
    """A call, and what it returns."""

    arrays: dict[str, Spec]
    results: tuple[Spec, ...]


def attention(query: tuple[int, ...], key: tuple[int, ...], lse: bool = True, **more: Any) -> Call:
    """``more``: ``dtype`` and ``kv_dtype``, and the arrays beside the tensors."""
    dtype = more.pop("dtype", "bfloat16")
    kv_dtype = more.pop("kv_dtype", dtype)
    tensors = {"query": Spec(query, dtype)} | dict.fromkeys(("key", "value"), Spec(key, kv_dtype))
    *batch, rows, heads, _ = query
    results = (Spec(query), Spec((*batch, heads, rows), "float32"))
    return Call(tensors | more, results if lse else results[:1])


def words(*shape: int) -> Spec:
    """int32."""
    return Spec(shape, "int32")


def floats(*shape: int) -> Spec:
    """float32."""
    return Spec(shape, "float32")


TABLES = {"key_lengths": words(3), "page_table": words(3, 5)}
CALLS = {
    CAUSAL: attention((2, 100, 8, 128), (2, 90, 2, 128)),
    SMALL: attention((2, 100, 8, 64), (2, 90, 2, 64), lse=False),
    FP8: attention((1, 64, 2, 512), (1, 64, 2, 512), dtype="float8_e4m3fn"),
    RAGGED: attention(
        (300, 8, 128), (420, 2, 128), query_offsets=words(8), key_offsets=words(8)
    ),
    PAGED: attention(
        (30, 8, 64), (11, 64, 2, 64), sinks=floats(8), query_offsets=words(4), **TABLES
    ),
    DECODE: attention((3, 1, 16, 128), (3, 900, 2, 128)),
    ALIBI: attention((2, 100, 8, 128), (2, 90, 2, 128), slope=floats(8)),
    SEQUENCES: attention(
        (30, 8, 128), (11, 64, 2, 128), dtype="float8_e4m3fn", query_offsets=words(4), **TABLES
    ),
    SCALED: attention(
        (3, 1, 8, 128), (3, 70, 2, 128), kv_dtype="float8_e4m3fn", key_descale=floats(3, 2)
    ),
    SCALED_PAGES: attention(
        (3, 1, 8, 128), (11, 64, 2, 128), kv_dtype="float8_e4m3fn",
        key_descale=floats(11, 2), **TABLES,
    ),
    RESIDUAL: Call(
        {"a": Spec((3, 72, 64)), "b": Spec((64, 104)), "c": Spec((3, 72, 104))},
        (Spec((3, 72, 104)),),
    ),
    MAJORS: Call(
        {"a": Spec((3, 72, 64)), "b": Spec((3, 64, 104)), "c": floats(3, 72, 104)},
        (floats(3, 72, 104),),
    ),
    BLOCKS: Call(
        {
            "a": Spec((3, 72, 304), "float8_e4m3fn"), "b": Spec((304, 104), "float8_e4m3fn"),
            "scale_a": floats(3, 72, 3), "scale_b": floats(3, 1),
        },
        (Spec((3, 72, 104)),),
    ),
    GROUPED: Call(
        {"a": Spec((72, 64)), "b": Spec((5, 64, 104)), "row_offsets": words(6)},
        (Spec((72, 104)),),
    ),
    MASKED: Call(
        {
            "a": Spec((5, 72, 304), "float8_e4m3fn"), "b": Spec((5, 304, 104), "float8_e4m3fn"),
            "scale_a": floats(5, 72, 3), "scale_b": floats(5, 3, 1), "row_counts": words(5),
        },
        (Spec((5, 72, 104)),),
    ),
    GATHERED: Call(
        {
            "a": Spec((40, 64)), "b": Spec((5, 64, 104)), "row_offsets": words(6),
            "row_index": words(72),
        },
        (Spec((72, 104)),),
    ),
    SCATTERED: Call(
        {
            "a": Spec((72, 64)), "b": Spec((5, 64, 104)), "row_offsets": words(6),
            "out_index": words(72), "row_weights": floats(72), "out": Spec((90, 104)),
        },
        (Spec((90, 104)),),
    ),
    LARGEST: Call(
        {"a": Spec((3, 72, 64)), "b": Spec((64, 104)), "out_amax": floats(1)},
        (Spec((3, 72, 104)),),
    ),
    QUANTISED: Call(
        {
            "a": Spec((3, 72, 304), "float8_e4m3fn"), "b": Spec((304, 512), "float8_e4m3fn"),
            "scale_a": floats(3, 72, 3), "scale_b": floats(3, 4),
        },
        (Spec((3, 72, 256), "float8_e4m3fn"), floats(3, 72, 2)),
    ),
    OF_C: Call(
        {"a": Spec((72, 64)), "b": Spec((64, 304)), "c": Spec((304,))},
        (Spec((72, 304), "float8_e4m3fn"), floats(72, 3)),
    ),
    SUMS: Call(
        {
            "a": Spec((72, 64)), "b": Spec((64, 104)), "c": floats(5, 72, 104),
            "row_offsets": words(6),
        },
        (floats(5, 72, 104),),
    ),
    MERGE: Call(
        {"parts": Spec((3, 2, 100, 8, 128)), "part_lse": floats(3, 2, 8, 100)},
        (Spec((2, 100, 8, 128)), floats(2, 8, 100)),
    ),
    SWIGLU: Call({"a": Spec((3, 72, 64)), "b": Spec((64, 208))}, (Spec((3, 72, 104)),)),
    IN_TURN: Call(
        {"a": Spec((72, 64)), "b": Spec((64, 208)), "c": Spec((208,))}, (Spec((72, 104)),)
    ),
}  # fmt: skip

IN_PLACE = (SCATTERED, LARGEST)
"""Kernels that write into an array that is given: JAX has none."""
REFUSED: tuple[tuple[str, str, Spec | None, str], ...] = (
    (CAUSAL, "query", Spec((2, 10, 4, 64)), r"shape \(batch, rows, heads, 128\), got \(2, 10, "),
    (CAUSAL, "query", Spec((2, 10, 512)), r"shape .*, got \(2, 10, 512\)"),
    (CAUSAL, "query", Spec((2, 100, 8, 128), "float16"), "bfloat16, got float16"),
    (CAUSAL, "key", Spec((1, 90, 2, 128)), r"shape \(2, key rows, key heads, 128\)"),
    (CAUSAL, "value", Spec((2, 90, 1, 128)), r"shape \(2, 90, 2, 128\)"),
    (RESIDUAL, "a", Spec((8, 72, 64, 4)), r"shape \(m, k\), got \(8, 72, 64, 4\)"),
    (RESIDUAL, "b", Spec((72, 104)), r"shape \(64, n\), got \(72, 104\)"),
    (RESIDUAL, "c", Spec((3, 80, 104)), r"shape \(72, 104\)|c: expected shape \(3, 72, 104\)"),
    (BLOCKS, "scale_a", floats(3, 72, 2), r"shape \(72, 3\)|expected shape \(3, 72, 3\)"),
    (BLOCKS, "scale_b", floats(1, 3), r"shape \(3, 1\)"),
    (BLOCKS, "scale_b", Spec((3, 1)), "float32, got bfloat16"),
    (BLOCKS, "scale_a", None, "an array"),
    (GROUPED, "a", Spec((72, 56)), r"shape \(rows, 64\)"),
    (GROUPED, "b", Spec((64, 104)), r"shape \(groups, k, n\), got \(64, 104\)"),
    (GROUPED, "row_offsets", words(5), r"shape \(6\)|expected shape \(6,\)"),
    (GROUPED, "row_offsets", floats(6), "int32, got float32"),
    (GROUPED, "row_offsets", None, "an array, got None"),
    (MASKED, "row_counts", words(6), r"shape \(5\)|expected shape \(5,\)"),
    (MASKED, "scale_a", floats(72, 3), r"shape \(5, 72, 3\)"),
    (MASKED, "scale_b", floats(3, 1), r"shape \(5, 3, 1\)"),
    (GATHERED, "row_index", words(5, 72), r"shape \(m\)"),
    (GATHERED, "row_index", None, "an array, got None"),
    (SCATTERED, "out_index", words(71), r"shape \(72\)|expected shape \(72,\)"),
    (SCATTERED, "out_index", floats(72), "int32, got float32"),
    (SCATTERED, "row_weights", None, "an array, got None"),
    (SCATTERED, "row_weights", words(72), "float32, got int32"),
    (SCATTERED, "out", Spec((90, 96)), r"shape \(out rows, 104\)"),
    (LARGEST, "out_amax", floats(3), r"shape \(1\)|expected shape \(1,\)"),
    (LARGEST, "out_amax", None, "an array, got None"),
    (QUANTISED, "scale_a", floats(3, 72, 2), r"shape \(72, 3\)|expected shape \(3, 72, 3\)"),
    (OF_C, "c", Spec((304,), "float8_e4m3fn"), "bfloat16, got float8_e4m3fn"),
    (SUMS, "b", Spec((5, 64, 104)), r"shape \(64, n\)"),
    (SUMS, "c", floats(4, 72, 104), r"shape \(5, 72, 104\)"),
    (SUMS, "row_offsets", words(0), r"groups \+ 1 numbers, got none"),
    (SUMS, "row_offsets", words(2, 3), r"shape \(groups \+ 1\)"),
    (MERGE, "parts", Spec((3, 2, 100, 8, 64)), r"shape \(parts, batch, rows, heads, 128\), got"),
    (MERGE, "parts", Spec((100, 8, 128)), r"shape \(parts, batch, rows, heads, 128\), got \(100"),
    (MERGE, "parts", floats(3, 2, 100, 8, 128), "bfloat16, got float32"),
    (MERGE, "parts", None, "an array"),
    (MERGE, "part_lse", floats(3, 2, 100, 8), r"shape \(3, 2, 8, 100\), got \(3, 2, 100, 8\)"),
    (MERGE, "part_lse", floats(3, 8, 100), r"shape \(3, 2, 8, 100\), got \(3, 8, 100\)"),
    (MERGE, "part_lse", floats(2, 2, 8, 100), r"shape \(3, 2, 8, 100\), got \(2, 2, 8, 100\)"),
    (MERGE, "part_lse", Spec((3, 2, 8, 100)), "float32, got bfloat16"),
    (MERGE, "part_lse", None, "an array, got None"),
    (IN_TURN, "c", Spec((104,)), r"shape \(208\)|expected shape \(208,\)"),
    (RESIDUAL, "c", None, r"an array .the kernel has residual: matrix"),
    (PAGED, "sinks", Spec((8,)), "float32, got bfloat16"),
    (PAGED, "sinks", floats(7), r"shape \(8\), got \(7,\)"),
    (PAGED, "query_offsets", None, "an array, got None"),
    (PAGED, "query_offsets", words(0), r"sequences \+ 1 numbers, got none"),
    (PAGED, "key_lengths", words(2), r"shape \(3\), got \(2,\)"),
    (PAGED, "key_lengths", floats(3), "int32, got float32"),
    (PAGED, "page_table", words(4, 5), r"shape \(3, most pages\), got \(4, 5\)"),
    (PAGED, "page_table", words(15), r"shape \(3, most pages\), got \(15,\)"),
    (PAGED, "key", Spec((11, 63, 2, 64)), r"shape \(pages, 64, key heads, 64\)"),
    (ALIBI, "slope", floats(7), r"shape \(8\), got \(7,\)"),
    (ALIBI, "slope", words(8), "float32, got int32"),
    (SCALED, "key_descale", floats(11, 2), r"shape \(3, 2\), got \(11, 2\)"),
    (SCALED_PAGES, "key_descale", floats(3, 2), r"shape \(11, 2\), got \(3, 2\)"),
    (SCALED_PAGES, "key_descale", Spec((11, 2)), "float32, got bfloat16"),
    (SCALED_PAGES, "key", Spec((11, 64, 2, 128)), "float8_e4m3fn, got bfloat16"),
)
"""Arrays that are refused in the place of one of CALLS, and what is expected."""
