"""Configs that the plan accepted and ptxas spilled: today they have room, whatever decides it."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from fa4gen.toolchain.batch import compile_many, find_compilers
from fa4gen.toolchain.model import Unit

HOPPER = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
BLACKWELL = {**HOPPER, "arch": "sm_100a"}
WINDOW = {"mask": {"sliding_window": {"left": 100, "right": 9}}}
BIAS = {
    "parameters": {"bias": {"dtype": "fp32", "shape": ["batch", "rows"]}},
    "score": "score + bias[batch, query]",
}
ALIBI = {
    "parameters": {"slope": {"dtype": "fp32", "shape": ["query_heads"]}},
    "score": "score - slope[head] * abs(query - key)",
}
PAIR = {**HOPPER, "cta_group": 2, "BM": 192, **WINDOW}
DECODE = {**HOPPER, "pack_heads": True, "packed_rows": 64}
IN_TURN = {**HOPPER, "overlap": True, "num_pv_chunks_in_flight": 0, "overlap_epilogue": True}
PREFIX = {**IN_TURN, "key_lengths": True, "scheduler": "static", "ping_pong": True}
FP8_PAIR = {
    **BLACKWELL,
    "dtype": "fp8_e4m3",
    "value_depth": 64,
    "cta_group": 2,
    **ALIBI,
    "exp2_fma_share": 0.25,
}
EVERY_15 = {"mask": "abs(query - key) <= 3 or key % 15 == 0"}
NEAR_OR_IN_CHUNK = "query - key < 87 or abs(query - key) <= 87 or key // 87 == query // 87"
CHUNKS = "abs(query - key) <= 714 or key // 714 == query // 714"
TURNS = {
    "kernel": "gemm",
    "arch": "sm_90a",
    "dtype": "fp16",
    "ping_pong": True,
    "b_major": "n",
    "num_epi_stages": 4,
    "activation": "min(min(erf(x), x), x)",
}
PRODUCT = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16"}
SWAPPED = {**PRODUCT, "swap_operands": True, "num_consumer_warpgroups": 1}
THREE = {**PRODUCT, "dtype": "fp8_e4m3", "BM": 192, "residual": "column"}
FOUR_HEADS = {**HOPPER, "tile_heads": 4}
IN_ORDER = {"orders_pieces": True}
TABLE = {"score": {"relative_bias": 64}}
LATENT = {**HOPPER, "depth": 576, "value_depth": 512, "pack_heads": True}
ALONE = {"num_consumer_warpgroups": 1}
FEW = {"registers": {"softmax": 128, "correction": 152, "other": 32}}
ROWS = {
    **HOPPER,
    "dtype": "fp16",
    "cta_group": 2,
    "BM": 128,
    "BN": 128,
    "depth": 64,
    "value_depth": 96,
}
LISTED = {"blocks": "listed", "mask": "documents", "BN": 192}
FP8_KEYS = {**BLACKWELL, "pack_heads": True, "packed_rows": 16, "kv_dtype": "fp8_e4m3"}
DEEP = {**HOPPER, "depth": 512, "cta_group": 2, "sinks": True, "batching": "ragged", **WINDOW}

ROW_SCORE = {
    "parameters": {"bias": {"dtype": "fp32", "shape": ["batch", "rows"]}},
    "score": "score + bias[batch, query]",
}
DOCUMENTS = {
    "parameters": {"document": {"dtype": "int32", "shape": ["batch", "rows"]}},
    "mask": "document[batch, query] == document[batch, key] and key <= query",
}
DEEP_FP8 = {
    **BLACKWELL,
    "dtype": "fp8_e4m3",
    "depth": 256,
    "value_depth": 128,
    "exp2_fma_share": 0.25,
}
DEEP_PAIR = {"depth": 256, "value_depth": 128, "cta_group": 2}
DIVIDED = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "BM": 128, "BN": 48, "split_k": 2}
LOGARITHM = {
    "kernel": "gemm",
    "arch": "sm_100a",
    "dtype": "bf16",
    "activation": "abs(log(x)) + 7.9 * sigmoid(x)",
}
SOFTMAX_136 = {"softmax": 136, "correction": 184, "other": 184}
BLACKWELL_96 = {
    **BLACKWELL,
    "depth": 96,
    "BM": 128,
    "BN": 96,
    "cta_group": 2,
    "exp2_fma_share": 0.25,
    "registers": SOFTMAX_136,
}

SIXTH = {"mask": "key % 100 == 0 or key <= query"}
HULL = {"mask": "key <= query or key < 59"}
CAPPED = {"softcap": 30.0}
VALUES_128 = {"depth": 192, "value_depth": 128}

LEFT_OR_CHUNK = {"mask": "query - key < 6364 or key // 6364 == query // 6364"}
PAGED_FP8_PAIR = {
    **BLACKWELL,
    "dtype": "fp8_e4m3",
    "value_depth": 64,
    "mask": "causal",
    "batching": "ragged",
    "keys": "paged",
    "page_size": 64,
    "cta_group": 2,
}
DECODE_96 = {**HOPPER, "pack_heads": True, "packed_rows": 16, "depth": 96, "key_lengths": True}

FP8_ROWS = {**BLACKWELL, "dtype": "fp8_e4m3", "value_depth": 64, "num_pv_stages": 1}
FAR_OR_EVEN = "abs(query - key) <= 84 or key % 2 == 0"
TABLE_512 = {**BLACKWELL, **TABLE, "depth": 512, "cta_group": 2}
PARTS = {**BLACKWELL, "depth": 96, "cta_group": 2, "BN": 128, "num_qk_stages": 3}
BOTH_READ = {**HOPPER, **TABLE, **DOCUMENTS}
GIVEN = {**HOPPER, "depth": 256, "cta_group": 2, "BM": 128, "ping_pong": True} | {
    "registers": {"producer": 144, "consumer": 176}
}
COLUMN_SCORE = {
    "parameters": {"bias": {"dtype": "fp32", "shape": ["query_heads", "rows"]}},
    "score": "score + bias[head, key]",
}

SPILLED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({**HOPPER, **BIAS, "mask": "causal"}, {"BN": 96, "num_pv_chunks_in_flight": 1}),
    ({**HOPPER, **BIAS, "depth": 96, "mask": "causal"}, {"BN": 96}),
    ({**HOPPER, **BIAS, "depth": 64, "value_depth": 96}, {"BN": 96}),
    ({**PREFIX, **ALIBI, "mask": "prefix"}, {"BN": 48}),
    ({**PAIR, "batching": "ragged"}, {"producer_registers": 56}),
    ({**PAIR, "key_lengths": True}, {"producer_registers": 56}),
    ({**DECODE, "key_lengths": True}, {"quads_at_once": 2}),
    ({**DECODE, "keys": "paged", "page_size": 64}, {"quads_at_once": 2}),
    ({**FP8_PAIR, "key_lengths": True, "mask": {"chunked": 4096}}, {"BN": 96}),
    ({**HOPPER, **ALIBI, "mask": "causal"}, {"BN": 80}),
    ({**HOPPER, **ALIBI, "depth": 96, "key_lengths": True}, {"BN": 96}),
    ({**HOPPER, **ALIBI, "depth": 64, "mask": {"dilated": 9}}, {"BN": 96}),
    ({**HOPPER, "depth": 192, "score": {"relative_bias": 64}}, {"BN": 96}),
    ({**HOPPER, "depth": 256, "score": {"relative_bias": 64}, **ALONE, **WINDOW}, {"BN": 48}),
    ({**PAIR, "key_lengths": True, "mask": CHUNKS}, {"BN": 48}),
    (
        {**HOPPER, "depth": 96, "value_depth": 64, "BM": 192, "batching": "ragged", **TABLE},
        {"BN": 64},
    ),
    ({**BLACKWELL, "depth": 96, **FEW}, {"BN": 64}),
    (
        {**BLACKWELL, "registers": {"softmax": 104, "correction": 192, "other": 40}},
        {"BN": 32},
    ),
    (
        {**BLACKWELL, **DOCUMENTS, "sinks": True, "exp2_fma_share": 0.25, "score": "score * 0.7"},
        {"BN": 96},
    ),
    (
        {**FP8_PAIR, **ROW_SCORE, "mask": "abs(query - key) <= 84 and key % 2 == 0"},
        {"BN": 96},
    ),
    ({**HOPPER, **SIXTH, "depth": 256, "keys": "paged", "page_size": 64}, {"BN": 32}),
    ({**HOPPER, **CAPPED, "depth": 256, "mask": {"dilated": 9}}, {"BN": 48}),
    ({**HOPPER, **ALIBI, **SIXTH, "depth": 192}, {"BN": 64}),
    ({**HOPPER, **HULL, **VALUES_128, "key_lengths": True}, {"BN": 80}),
    ({**HOPPER, **WINDOW, **VALUES_128, "key_lengths": True, "cta_group": 2}, {"BN": 48}),
    ({**HOPPER, **SIXTH, "value_depth": 64, "overlap": False}, {"BN": 64}),
    ({**HOPPER, **SIXTH, **CAPPED}, {"BN": 80}),
    (
        {**HOPPER, "score": "alibi", "mask": "causal", "key_lengths": True, "scheduler": "static"},
        {"BN": 80},
    ),
    ({**HOPPER, **HULL, **CAPPED, "depth": 96}, {"BN": 112}),
    ({**HOPPER, **HULL, **ALIBI, "depth": 64, "batching": "ragged"}, {"BN": 112}),
    ({**BLACKWELL, **SIXTH, "exp2_fma_share": 0.25}, {"BN": 96}),
    (
        {**BLACKWELL, **HULL, "depth": 256, "value_depth": 128, "dtype": "fp8_e4m3"},
        {"BN": 128, "exp2_fma_share": 0.125},
    ),
    (
        {"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16", "activation": "gelu(x) * silu(x)"},
        {"loads_in_parts": True},
    ),
    (
        {"kernel": "gemm", "arch": "sm_100a", "dtype": "fp16", "BM": 128, "BN": 256, "BK": 128}
        | {"activation": "gelu(silu(x)) + gelu(abs(x))", "residual": "column"}
        | {"num_accum_stages": 1, "stage_stride_cols": 512, "scheduler": "static"},
        {"loads_in_parts": True},
    ),
    (
        {**BLACKWELL, **CAPPED, **LEFT_OR_CHUNK, "batching": "ragged", "exp2_fma_share": 0.75},
        {"BN": 64},
    ),
    ({**BLACKWELL, "depth": 256, "value_depth": 96}, {"other_registers": 80}),
    ({**PAGED_FP8_PAIR, "score": "score * (1 + min(key, 3))"}, {"exp2_fma_share": 0.125}),
    (
        {**HOPPER, **HULL, **VALUES_128, "key_lengths": True, "cta_group": 2},
        {"producer_registers": 56},
    ),
    ({**HOPPER, "depth": 96, "score": "score - 0.707 * (query - key)"}, {"BN": 112}),
    ({**HOPPER, **DOCUMENTS, **TABLE}, {"BN": 32, "num_pv_chunks_in_flight": 0}),
    ({**HOPPER, **DOCUMENTS, **TABLE, "depth": 256}, {"BN": 16}),
    ({**HOPPER, **DOCUMENTS, **TABLE, "depth": 96, "value_depth": 64}, {"BN": 48}),
    ({**HOPPER, **ALIBI, "sinks": True, "epilogue": "tma_store"}, {"BN": 64}),
    ({**PRODUCT, "activation": "exp(gelu(x))"}, IN_ORDER),
    ({**PRODUCT, "dtype": "fp8_e4m3", "activation": "silu(max(x, x))"}, IN_ORDER),
    (
        {**PRODUCT, "split_k": 2, "num_epi_stages": 3, "activation": "((x - 7) + silu(x)) * x"},
        IN_ORDER,
    ),
    (TURNS, IN_ORDER),
    ({**SWAPPED, "BM": 256, "activation": "gelu(x)"}, IN_ORDER),
    ({**SWAPPED, "BM": 256, "activation": "log(x) * x + x"}, IN_ORDER),
    ({**SWAPPED, "BM": 232, "activation": "erf((x - 7.45))", "cta_group": 4}, IN_ORDER),
    ({**THREE, "activation": "gelu(x) * erf(x)"}, IN_ORDER),
    ({**THREE, "num_epi_stages": 3, "activation": "log(x) - gelu(x)"}, IN_ORDER),
    ({**HOPPER, "overlap": False, "blocks": "listed", "mask": "documents"}, {"BN": 80}),
    ({**PRODUCT, "dtype": "fp8_e4m3", "cta_group": 2, "activation": "silu(x)"}, IN_ORDER),
    ({**DEEP_FP8, "mask": "causal"}, {"BN": 96}),
    ({**DEEP_FP8, "mask": {"chunked": 1}}, {"BN": 96}),
    ({**BOTH_READ, **DEEP_PAIR}, {"BN": 64, "num_pv_chunks_in_flight": 1}),
    ({**FOUR_HEADS, "depth": 96, "epilogue": "tma_store", "dtype": "fp16"}, {"BN": 112}),
    ({**FOUR_HEADS, "depth": 96, "mask": {"chunked": 952}, "overlap_epilogue": True}, {"BN": 112}),
    (
        {**FOUR_HEADS, "depth": 192, "value_depth": 128, "softcap": 2301.9}
        | {"mask": {"sliding_window": {"left": 9, "right": 306806}}}
        | {"scheduler": "static", "num_consumer_warpgroups": 3},
        {"BN": 80},
    ),
    (
        {**FOUR_HEADS, "depth": 96, "ping_pong": True, "overlap_epilogue": True}
        | {"mask": "key // 282682 == query // 282682"},
        {"BN": 96},
    ),
    ({**PRODUCT, "activation": "gelu(x)"}, IN_ORDER),
    ({**PRODUCT, "dtype": "fp8_e4m3", "activation": "silu(x)"}, IN_ORDER),
    (
        {**PRODUCT, "cta_group": 4, "a_major": "m", "b_major": "n", "BM": 192, "BN": 192, "BK": 128}
        | {"num_stages": 1, "num_epi_stages": 2, "evict_first": "both", "output_in_ring": True},
        {"producer_registers": 40},
    ),
    ({**HOPPER, **EVERY_15, "depth": 64, "sinks": True}, {"BN": 48}),
    ({**HOPPER, **EVERY_15, "depth": 96, "softcap": 20.0, "batching": "ragged"}, {"BN": 48}),
    ({**HOPPER, **EVERY_15, "depth": 192}, {"BN": 64}),
    ({**HOPPER, **EVERY_15, "depth": 256}, {"BN": 32}),
    ({**HOPPER, **EVERY_15, "depth": 64, "cta_group": 2}, {"num_consumer_warpgroups": 2}),
    ({**HOPPER, **EVERY_15, "cta_group": 2}, {"BN": 48}),
    ({**BLACKWELL, "mask": NEAR_OR_IN_CHUNK}, {"BN": 64}),
    ({**BLACKWELL, **DOCUMENTS, "depth": 192, "value_depth": 64, "lse": False}, {"BN": 96}),
    ({**BLACKWELL, "depth": 64, "BM": 256, "exp2_fma_share": 0.25}, {"BN": 96}),
    ({**BLACKWELL, **DOCUMENTS, "depth": 256, "value_depth": 96, "cta_group": 2}, {"BN": 96}),
    (
        {**FP8_ROWS, **BIAS, "mask": {"dilated": 2}, "key_lengths": True, "sinks": True},
        {"BN": 128, "exp2_fma_share": 0.125},
    ),
    ({**FP8_ROWS, "mask": FAR_OR_EVEN}, {"BN": 128, "exp2_fma_share": 0.125}),
    ({**TABLE_512, "mask": "causal", "lse": False}, {"softmax_registers": 200}),
    (
        {**HOPPER, **TABLE, "depth": 256, "value_depth": 64, "BM": 128, "ping_pong": True}
        | {"registers": {"producer": 144, "consumer": 176}, "overlap_epilogue": True},
        {"BN": 64, "num_pv_chunks_in_flight": 0},
    ),
    (
        {**TABLE_512, **WINDOW, "keys": "paged", "page_size": 64, "batching": "ragged"}
        | {"sinks": True, "lse": False},
        {"softmax_registers": 200},
    ),
    (
        {**TABLE_512, **DOCUMENTS, "dtype": "fp8_e4m3", "scheduler": "dynamic"}
        | {"exp2_fma_share": 0.25, "out_dtype": "fp16", "num_kv_stages": 11},
        {"softmax_registers": 224},
    ),
    ({**GIVEN, **TABLE, "value_depth": 128, "overlap_epilogue": True}, {"BN": 32}),
    ({**GIVEN, **COLUMN_SCORE, "value_depth": 64}, {"BN": 64, "num_pv_chunks_in_flight": 0}),
    ({**BOTH_READ, **DEEP_PAIR, "depth": 192, "value_depth": 64}, {"BN": 64}),
    ({**BOTH_READ, **DEEP_PAIR, "value_depth": 192}, {"BN": 32}),
    ({**BOTH_READ, **DEEP_PAIR, "value_depth": 96, "num_consumer_warpgroups": 3}, {"BN": 16}),
]
"""Each with what of its plan makes the room."""


@pytest.mark.parametrize(("keys", "room"), SPILLED, ids=str)
def test_there_is_room(keys: dict[str, Any], room: dict[str, Any]) -> None:
    plan = build_plan(load_mapping(keys, "spilled").config)
    assert {key: getattr(plan, key) for key in room} == room


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({**HOPPER, "mask": "causal"}, {"BN": 96, "num_pv_chunks_in_flight": 3}),
        ({**PAIR}, {"producer_registers": 32}),
        ({**HOPPER, **SIXTH}, {"BN": 96}),
        ({**HOPPER, **HULL, **VALUES_128, "BM": 128}, {"BN": 96}),
        ({**HOPPER, "depth": 256, "mask": {"chunked": 4096}, "key_lengths": True}, {"BN": 80}),
        ({**BLACKWELL, **SIXTH}, {"BN": 128, "exp2_fma_share": 0.125}),
        ({**DECODE}, {"quads_at_once": 4}),
        ({**DECODE, "depth": 256, "key_lengths": True}, {"quads_at_once": 4}),
        ({**FP8_PAIR, "key_lengths": True, "mask": "causal"}, {"BN": 128}),
        (
            {**FP8_ROWS, "mask": {"dilated": 2}, "batching": "ragged"},
            {"BN": 128, "exp2_fma_share": 0.25},
        ),
        ({**FP8_ROWS, "mask": {"dilated": 2}, "BN": 96}, {"exp2_fma_share": 0.25}),
        ({**TABLE_512, **ALIBI}, {"softmax_registers": 216}),
        ({**PRODUCT, "residual": "row", "activation": "gelu(x)"}, {"orders_pieces": False}),
        ({**PRODUCT, "activation": "max(2 * x, 0)"}, {"orders_pieces": False}),
    ],
    ids=str,
)
def test_what_compiled_clean_keeps_its_tile(keys: dict[str, Any], kept: dict[str, Any]) -> None:
    plan = build_plan(load_mapping(keys, "kept").config)
    assert {key: getattr(plan, key) for key in kept} == kept


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        {**ROWS, **BIAS, "mask": "key % 100 == 0 or key <= query"},
        "registers",
        "Set BN: 112; or BM: ",
    ),
    ({**HOPPER, "depth": 256, "value_depth": 128, **LISTED}, "registers", "Set BN: 128"),
    (
        {**HOPPER, "depth": 192, "value_depth": 64, "BN": 240, **WINDOW},
        "registers",
        "Set BN: 224; or ",
    ),
    ({**FP8_KEYS, "key_lengths": True}, "registers", "Set packed_rows: 8."),
    (
        {**HOPPER, "depth": 512, "cta_group": 2, "score": {"relative_bias": 8}},
        "score reads parameters key by key",
        "Set score: null.",
    ),
    (
        {**LATENT, "sinks": True, "lse": False},
        "sinks without lse",
        "Set lse: true; or sinks: false.",
    ),
    (
        {**BLACKWELL_96, **ROW_SCORE},
        "registers",
        "Set BN: 64; or registers: auto.",
    ),
    (
        {**DIVIDED, "registers": {"producer": 24, "consumer": 176}},
        "registers: 24 for the producer",
        "Set registers: auto; or split_k: 1.",
    ),
    (
        {**HOPPER, "depth": 512, "cta_group": 2, "mask": "key < 5 or key // 300 == query // 300"},
        "mask divides",
        "Set mask: causal; or mask: none.",
    ),
    (
        {**FP8_KEYS, "arch": "sm_90a", "keys": "paged", "page_size": 64},
        "registers",
        "Set packed_rows: 8.",
    ),
    ({**LOGARITHM, "num_out_stages": 1}, "num_out_stages: 1", "Set num_out_stages: 2."),
    (
        {**HOPPER, "depth": 512, "cta_group": 2, "mask": "query - key < 100 or key < 200"},
        "mask asks how far each key is from the query",
        "Set mask: causal; or lse: false.",
    ),
    (
        {**PAIR, "depth": 256, "value_depth": 128, "BM": 128, "scheduler": "dynamic"}
        | {"keys": "paged", "page_size": 16},
        "scheduler: dynamic with cta_group: 2",
        "Set scheduler: static; or cta_group: 1.",
    ),
    (
        {**PRODUCT, "cta_group": 2, "registers": {"producer": 24, "consumer": 184}},
        "registers: 24 for the producer",
        "Set registers: auto; or cta_group: 1.",
    ),
    (
        {**PRODUCT, "registers": {"producer": 24, "consumer": 168}, "BN": 256}
        | {"activation": "erf(log((x * x)))"},
        "registers: a consumer thread holds 64 * 256 / 128 of the tile + 64",
        "Set BN: 192",
    ),
    (
        {**PRODUCT, "registers": {"producer": 136, "consumer": 168}, "split_k": 2, "BN": 256},
        "registers: a consumer thread holds 64 * 256 / 128 of the tile + 48",
        "Set BN: 192",
    ),
    (
        {**GIVEN, **COLUMN_SCORE, "value_depth": 64, "num_pv_chunks_in_flight": 1, "BN": 64},
        "registers: a consumer thread",
        "Set BN: 48; or num_pv_chunks_in_flight: 0.",
    ),
    (
        {**PRODUCT, "registers": {"producer": 40, "consumer": 200}, "ping_pong": True, "BN": 176},
        "registers: a consumer thread holds 128 * 176 / 128 of the tile + 40",
        "Set BN: 128",
    ),
    (
        {**PRODUCT, "split_k": 2, "residual": "column", "num_consumer_warpgroups": 1, "BN": 256},
        "BN: 256 with split_k: 2 and a column of C",
        "Set BN: 192; or split_k: 1.",
    ),
    (
        {**PRODUCT, "split_k": 2, "num_epi_stages": 1},
        "num_epi_stages: 1 with split_k: 2 and 128 sums",
        "Set num_epi_stages: 2; or num_epi_stages: auto; or split_k: 1.",
    ),
    (
        {**HOPPER, "depth": 512, "cta_group": 2, "mask": "tree", **CAPPED},
        "mask keeps what it reads of parameters",
        "Set scheduler: static; or lse: false.",
    ),
    (
        {**BLACKWELL, **DOCUMENTS, **TABLE, "dtype": "fp8_e4m3", "depth": 512, "cta_group": 2}
        | {"registers": {"softmax": 200, "correction": 240, "other": 40}},
        "registers: a softmax thread keeps 128 scores and needs 96 more",
        "Set registers: auto.",
    ),
    ({**DEEP, **ALIBI}, "score computes more", "Set mask: causal; or batching: dense"),
    (
        {**BLACKWELL, "depth": 512, "cta_group": 2, "score": "score - 0.5 * abs(query - key)"}
        | {"mask": "key % 64 == 0 or query - key < 177"},
        "score computes more than a multiple of the key, beside a mask that divides the key or",
        "Set mask: causal.",
    ),
    ({**DECODE_96, "score": {"relative_bias": 133}}, "registers", "Set packed_rows: 8."),
    ({**DECODE_96, **DOCUMENTS, "score": "alibi"}, "registers", "Set packed_rows: 8."),
    ({**HOPPER, "depth": 256, "BN": 112}, "registers", "Set BN: 96."),
    ({**HOPPER, "depth": 256, "value_depth": 192, "BN": 160}, "registers", "Set BN: 144"),
    (
        {**HOPPER, **DOCUMENTS, **TABLE, "BN": 128, "BM": 128, "num_pv_chunks_in_flight": 4}
        | {"ping_pong": True, "overlap_epilogue": True},
        "registers",
        "Set BN: ",
    ),
    ({**HOPPER, **TABLE, **ALONE, "depth": 64, "BN": 208}, "registers", "Set BN: 1"),
    ({**HOPPER, **CAPPED, "mask": "key <= query", "depth": 96, "BN": 128}, "registers", "Set BN: "),
    (
        {**BLACKWELL, **TABLE, "registers": {"softmax": 88, "correction": 56, "other": 48}},
        "registers: a softmax thread",
        "Set registers: auto.",
    ),
    ({**HOPPER, **WINDOW, **CAPPED, "depth": 256, "BN": 96}, "registers", "Set BN: 80; or "),
    (
        {**HOPPER, **CAPPED, "depth": 256, "value_depth": 128, "BN": 208, "sinks": True},
        "registers",
        "Set BN: 1",
    ),
    ({**HOPPER, "depth": 96, "BN": 256, **ALONE}, "registers", "Set BN: 240"),
    (
        {**HOPPER, "depth": 96, "value_depth": 64, **ALONE, **SIXTH, "BN": 256},
        "registers",
        "Set BN: ",
    ),
    (
        {**BLACKWELL, "key_lengths": True, "BN": 128}
        | {"registers": {"softmax": 168, "correction": 64, "other": 64}},
        "registers: a softmax thread",
        "Set BN: 96; or registers: auto.",
    ),
    (
        {**BLACKWELL, "depth": 256, "sinks": True, "BM": 128, "BN": 128, "exp2_fma_share": 0.25},
        "registers: a softmax thread",
        "Set BN: 96; or exp2_fma_share: 0.125.",
    ),
    (
        {**BLACKWELL, "value_depth": 192, "BM": 128, "BN": 160, "exp2_fma_share": 1.0}
        | {"registers": {"softmax": 256, "correction": 72, "other": 120}},
        "registers: a softmax thread",
        "Set BN: 128",
    ),
    (
        {**BLACKWELL, "BN": 160, "BM": 128, "mask": "key <= query and key % 2 == 0"},
        "registers: a softmax thread",
        "Set BN: 128.",
    ),
    (
        {**BLACKWELL, **DOCUMENTS, **TABLE, "depth": 256, "value_depth": 192, "BN": 32}
        | {"registers": {"softmax": 80, "correction": 64, "other": 200}},
        "registers: a softmax thread",
        "Set registers: auto.",
    ),
    (
        {**BLACKWELL, "depth": 256, "cta_group": 2, "num_kv_stages": 2, "num_pv_stages": 2}
        | {"registers": {"softmax": 176, "correction": 80, "other": 32}},
        "registers: other needs 48",
        "Set registers: {softmax: 176, correction: 80, other: 48}",
    ),
    (
        {**BLACKWELL, "depth": 192, "value_depth": 96, "lse": False}
        | {"registers": {"softmax": 200, "correction": 64, "other": 32}},
        "registers: other needs 48",
        "Set registers",
    ),
    (
        {**HOPPER, "depth": 64, "pack_heads": True, "packed_rows": 16, **TABLE}
        | {"kv_dtype": "fp8_e4m3"},
        "registers: a thread of a consumer",
        "Set packed_rows: 8",
    ),
    (
        {**FOUR_HEADS, **WINDOW, "depth": 64, "BN": 144, "ping_pong": True, "softcap": 421.0},
        "registers: a consumer thread",
        "Set BN: 128",
    ),
    (
        {**FOUR_HEADS, "depth": 256, "value_depth": 128, "num_consumer_warpgroups": 3, "BN": 80}
        | {"overlap_epilogue": True, "mask": {"chunked": 272}, "sinks": True}
        | {"num_pv_chunks_in_flight": 3, "dtype": "fp16"},
        "registers: a consumer thread",
        "Set BN: 64",
    ),
    (
        {**PARTS, "value_depth": 64, "BM": 128, "mask": {"chunked": 50836}}
        | {"registers": {"softmax": 176, "correction": 64, "other": 32}},
        "registers: other needs 40",
        "Set registers: {softmax: 176, correction: 64, other: 40}; or registers: auto.",
    ),
    (
        {**FP8_ROWS, "mask": {"dilated": 2}, "BN": 128, "exp2_fma_share": 0.25},
        "registers: a softmax thread",
        "Set BN: 96; or exp2_fma_share: 0.125.",
    ),
    (
        {**TABLE_512, "dtype": "fp8_e4m3"}
        | {"registers": {"softmax": 216, "correction": 56, "other": 80}},
        "registers: the score reads a tensor key by key, and with more than 200 for the softmax",
        "Set registers: {softmax: 200, correction: 56, other: 80}; or registers: auto.",
    ),
]
"""Each with the beginning of the message and of the remedy."""


@pytest.mark.parametrize(("keys", "message", "remedy"), REFUSED, ids=str)
def test_it_is_refused_with_a_remedy(keys: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_plan(load_mapping(keys, "spilled").config)
    [problem] = caught.value.problems
    assert problem.message.startswith(message)
    assert problem.remedy.startswith(remedy)


@pytest.mark.compile
@pytest.mark.parametrize(
    "number", [2, 3, 5, 7, 9, 21, 26, 32, 33, 38, 42, 46, 47, 56, 61, 63, *range(74, 85)]
)
def test_it_compiles_clean(number: int) -> None:
    loaded = load_mapping(SPILLED[number][0], "spilled")
    kernel = render(build_plan(loaded.config), loaded, open_templates())
    unit = Unit(kernel.name, kernel.source, kernel.headers, kernel.arch)
    (outcome,) = compile_many([unit], find_compilers("nvrtc"), cache=None, jobs=1)
    assert outcome.kernel is not None
    assert outcome.problems == ()


@pytest.mark.parametrize(
    ("keys", "remedy"),
    [
        ({**LATENT, "mask": {"chunked": 300}, "split_keys": {"keys": 64}}, "Set split_keys: auto"),
        ({**LATENT, "arch": "sm_100a", "cta_group": 2, **HULL}, "Set mask: causal."),
    ],
    ids=str,
)
def test_latent_masks_that_did_not_compile_are_refused(keys: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_plan(load_mapping(keys, "latent").config)
    [problem] = caught.value.problems
    assert problem.remedy.startswith(remedy)
