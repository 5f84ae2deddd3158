"""The contents that a config may have, before anything is computed from it."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.common.gemm_config import GemmKeys
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
from fa4gen.designs.registry import DESIGNS, models_of, validated
from fa4gen.masks import Causal, Chunked, NoMask, SlidingWindow
from fa4gen.masks.mask import MAX_REACH, Mask
from fa4gen.masks.sliding_window import SlidingWindowValue, WindowExtent
from fa4gen.strict import ModelError

MINIMAL: dict[str, Any] = {
    "kernel": "attention",
    "name": "any",
    "arch": "sm_90a",
    "dtype": "bf16",
    "depth": 128,
}
INT32_MAX = 2**31 - 1


def config_with(**keys: object) -> Any:
    return validated({**MINIMAL, **keys})


def test_all_but_five_keys_have_defaults() -> None:
    config = config_with()
    assert config.model_fields_set == set(MINIMAL)
    required = {n for n, field in HopperAttentionConfig.model_fields.items() if field.is_required()}
    assert required == set(MINIMAL)
    assert (config.mask, config.lse, config.cta_group, config.BN) == ("none", True, 1, "auto")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("depth", 100),
        ("depth", 128.0),
        ("depth", "128"),
        ("depth", True),
        ("dtype", "float16"),
        ("arch", "sm_90"),
        ("name", "Upper"),
        ("name", "9lives"),
        ("name", "with-dash"),
        ("name", ""),
        ("name", "a" * 101),
        ("lse", 1),
        ("lse", "true"),
        ("cta_group", 3),
        ("cta_group", True),
        ("BM", 32),
        ("BM", 256),
        ("BN", 24),
        ("BN", 0),
        ("BN", 272),
        ("BN", "automatic"),
        ("num_kv_stages", 0),
        ("num_kv_stages", 17),
        ("num_pv_chunks_in_flight", -1),
        ("num_pv_chunks_in_flight", 17),
        ("ping_pong", 0),
        ("epilogue", "tma"),
        ("scheduler", "persistent"),
        ("softcap", 0.0),
        ("softcap", -1.0),
        ("softcap", 1e-5),
        ("softcap", 1e5),
        ("softcap", float("inf")),
        ("softcap", float("nan")),
        ("rescale_threshold", -0.5),
        ("rescale_threshold", 11.0),
        ("rescale_threshold", float("nan")),
        ("mask", "full"),
        ("mask", {"sliding_window": 0}),
        ("mask", {"chunked": 0}),
        ("mask", {"chunked": 8, "sliding_window": 8}),
        ("mask", {"sliding_window": MAX_REACH + 1}),
        ("mask", {"sliding_window": {"left": 1}}),
        ("mask", {"sliding_window": {"left": -1, "right": 0}}),
        ("mask", {"sliding_window": {"left": 0, "right": MAX_REACH + 1}}),
        ("mask", {"sliding_window": {"left": 0, "right": 0, "top": 0}}),
        ("mask", {"window": 4}),
        ("registers", {"producer": 32}),
        ("registers", {"producer": 16, "consumer": 160}),
        ("registers", {"producer": 32, "consumer": 161}),
        ("registers", {"producer": 32, "consumer": 264}),
        ("kv_dtype", "fp16"),
        ("stages", 2),
    ],
)
def test_what_is_not_allowed(key: str, value: object) -> None:
    with pytest.raises(ModelError) as caught:
        config_with(**{key: value})
    assert {str(fault.path[0]) for fault in caught.value.faults} == {key}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("BN", 16),
        ("BN", 256),
        ("BM", 192),
        ("num_kv_stages", 16),
        ("softcap", 50),
        ("softcap", 1e-4),
        ("softcap", 1e4),
        ("softcap", None),
        ("rescale_threshold", 0),
        ("rescale_threshold", 10.0),
        ("name", "a" * 100),
        ("name", "z_9"),
        ("mask", {"sliding_window": MAX_REACH}),
    ],
)
def test_what_is_just_allowed(key: str, value: object) -> None:
    config = config_with(**{key: value})
    assert config.data()[key] == value


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_keys_of_packed_heads_need_packed_heads(arch: str) -> None:
    keys = {**MINIMAL, "arch": arch, "packed_rows": 8, "split_keys": {"keys": 64}}
    with pytest.raises(ModelError) as caught:
        validated(keys)
    assert [fault.message for fault in caught.value.faults] == [
        f"pack_heads: false has no {key}, got {value}: kernels with pack_heads: true alone read it"
        for key, value in (("packed_rows", "8"), ("split_keys", "{keys: 64}"))
    ]
    assert validated({**keys, "pack_heads": True})


def test_a_config_is_a_value() -> None:
    config = config_with(mask={"sliding_window": 5}, registers={"producer": 32, "consumer": 160})
    again = validated(config.data())
    assert again == config
    assert hash(again) == hash(config)
    with pytest.raises(AttributeError, match="cannot be changed"):
        config.BN = 64


def test_keys_of_fp8_need_packed_heads() -> None:
    assert config_with(kv_dtype="fp8_e4m3", pack_heads=True).resolved_kv_dtype == "fp8_e4m3"
    assert config_with(pack_heads=True).resolved_kv_dtype == config_with().dtype
    with pytest.raises(ModelError, match=r"pack_heads: false has no kv_dtype"):
        config_with(kv_dtype="fp8_e4m3")


def test_values_as_deep_as_512_need_keys_as_deep() -> None:
    assert config_with(depth=192, value_depth=128).resolved_value_depth == 128
    pair = config_with(depth=512, value_depth=512, cta_group=2)
    assert pair.resolved_value_depth == 512
    with pytest.raises(ModelError) as caught:
        config_with(depth=256, value_depth=512)
    assert [fault.path for fault in caught.value.faults] == [("value_depth",)]


@pytest.mark.parametrize(
    ("value", "mask"),
    [
        ("none", NoMask()),
        ("causal", Causal()),
        ({"sliding_window": 1}, SlidingWindow(0, 0)),
        ({"sliding_window": 1024}, SlidingWindow(1023, 0)),
        ({"sliding_window": {"left": 7, "right": 3}}, SlidingWindow(7, 3)),
        ({"chunked": 8192}, Chunked(8192)),
    ],
)
def test_the_mask_that_a_value_means(value: object, mask: Mask) -> None:
    assert config_with(mask=value).resolved_mask == mask


def test_a_window_as_objects() -> None:
    mask = SlidingWindowValue(sliding_window=WindowExtent(left=2, right=1))
    assert config_with(mask=mask).resolved_mask == SlidingWindow(2, 1)


def test_the_widest_window_leaves_32_bits_for_as_many_rows() -> None:
    rows = keys = 2**30 - 4096
    tile, block = 2 * 192, 256  # of a pair; rows and keys are rounded up to these
    diagonal = keys - rows
    assert rows + tile + diagonal + MAX_REACH + 1 + block <= INT32_MAX
    assert -rows - MAX_REACH - block >= -INT32_MAX


HOPPER = ["attention_sm90", "attention_sm90_depth512", "attention_latent", "attention_decode"]
BLACKWELL = [
    "attention_sm100", "attention_sm100_depth512", "attention_latent_sm100", "attention_decode"
]  # fmt: skip
EVERY = [design.name for design in DESIGNS]


@pytest.mark.parametrize(
    ("data", "designs"),
    [
        ({"kernel": "attention", "arch": "sm_90a", "depth": 64}, ["attention_sm90"]),
        ({"kernel": "attention", "arch": "sm_103a", "depth": 512}, ["attention_sm100_depth512"]),
        ({"kernel": "attention", "arch": "sm_90a", "depth": 576}, ["attention_latent"]),
        (
            {"kernel": "attention", "arch": "sm_90a", "depth": 512, "pack_heads": True},
            ["attention_decode"],
        ),
        (
            {"kernel": "attention", "arch": "sm_90a", "depth": 512, "pack_heads": 1},
            ["attention_sm90_depth512", "attention_decode"],
        ),
        ({"kernel": "attention", "arch": "sm_90a"}, HOPPER),
        ({"kernel": "attention", "arch": "sm_90a", "depth": 100, "pack_heads": True}, HOPPER),
        ({"kernel": "attention", "arch": "sm_103a", "BK": 64}, BLACKWELL),
        ({"kernel": "gemm", "arch": "sm_90a", "depth": 64}, ["gemm_sm90"]),
        ({"kernel": "gemm", "arch": "sm_100a"}, ["gemm_sm100"]),
        ({"kernel": "gemm"}, ["gemm_sm90", "gemm_sm100"]),
        ({"kernel": "gemm", "arch": "sm_90"}, ["gemm_sm90", "gemm_sm100"]),
        ({"arch": "sm_90a", "depth": 512}, [*HOPPER, "gemm_sm90", "merge"]),
        ({"kernel": "gem", "arch": "sm_103a"}, [*BLACKWELL, "gemm_sm100", "merge"]),
        ({"kernel": ["gemm"], "arch": {}}, EVERY),
        ({"arch": "sm_90"}, EVERY),
        ({}, EVERY),
    ],
)
def test_four_keys_tell_the_design(data: dict[str, Any], designs: list[str]) -> None:
    found = (model.design.name for model in models_of(data))
    assert list(dict.fromkeys(found)) == designs


GEMM: dict[str, Any] = {"kernel": "gemm", "name": "any", "arch": "sm_90a", "dtype": "bf16"}


def gemm_with(arch: str = "sm_90a", /, **keys: object) -> GemmKeys:
    config = {**GEMM, "arch": arch, **keys}
    made = validated(config)
    assert isinstance(made, GemmKeys)
    return made


@pytest.mark.parametrize("model", [HopperGemmConfig, BlackwellGemmConfig])
def test_a_matrix_product_needs_no_more_than_its_type(model: type[GemmKeys]) -> None:
    required = {n for n, field in model.model_fields.items() if field.is_required()}
    assert required == set(GEMM)
    config = gemm_with()
    assert (config.residual, config.activation, config.BN) == ("none", None, "auto")
    assert (config.a_major, config.b_major, config.out_dtype) == ("k", "k", "auto")


@pytest.mark.parametrize(
    ("arch", "key", "value"),
    [
        ("sm_90a", "dtype", "fp32"),
        ("sm_90a", "out_dtype", "fp8_e4m3"),
        ("sm_90a", "a_major", "n"),
        ("sm_90a", "b_major", "m"),
        ("sm_90a", "residual", "diagonal"),
        ("sm_90a", "residual", True),
        ("sm_90a", "activation", ""),
        ("sm_90a", "activation", "x; y"),
        ("sm_90a", "activation", "relu"),
        ("sm_90a", "activation", "3"),
        ("sm_90a", "activation", "x" + " + x" * 34),
        ("sm_90a", "BM", 44),
        ("sm_90a", "split_k", 3),
        ("sm_90a", "swap_operands", 1),
        ("sm_100a", "BM", 32),
        ("sm_100a", "split_k", 2),
        ("sm_90a", "BN", 88),
        ("sm_90a", "BN", 272),
        ("sm_100a", "BN", 96),
        ("sm_90a", "BN", 128.0),
        ("sm_90a", "BK", 32),
        ("sm_90a", "num_stages", 0),
        ("sm_90a", "num_stages", 17),
        ("sm_90a", "num_epi_stages", 5),
        ("sm_90a", "num_consumer_warpgroups", 4),
        ("sm_90a", "ping_pong", 1),
        ("sm_90a", "cta_group", 3),
        ("sm_90a", "registers", {"producer": 24}),
        ("sm_90a", "num_accum_stages", 2),
        ("sm_90a", "depth", 64),
        ("sm_100a", "BM", 192),
        ("sm_100a", "num_accum_stages", 5),
        ("sm_100a", "stage_stride_cols", 48),
        ("sm_100a", "stage_stride_cols", 544),
        ("sm_100a", "num_out_stages", 0),
        ("sm_100a", "scheduler", "atomic"),
        ("sm_100a", "ping_pong", True),
        ("sm_100a", "registers", {"producer": 24, "consumer": 240}),
        ("sm_100a", "mask", "none"),
    ],
)
def test_what_is_not_allowed_of_a_matrix_product(arch: str, key: str, value: object) -> None:
    with pytest.raises(ModelError) as caught:
        gemm_with(arch, **{key: value})
    assert {str(fault.path[0]) for fault in caught.value.faults} == {key}


@pytest.mark.parametrize(
    ("arch", "key", "value"),
    [
        ("sm_90a", "BM", 256),
        ("sm_90a", "BN", 192),
        ("sm_90a", "BK", 256),
        ("sm_90a", "num_stages", 16),
        ("sm_90a", "activation", "x" + " + x" * 33),
        ("sm_90a", "registers", {"producer": 24, "consumer": 240}),
        ("sm_103a", "arch", "sm_103a"),
        ("sm_100a", "BM", 64),
        ("sm_100a", "num_accum_stages", 4),
        ("sm_100a", "stage_stride_cols", 512),
    ],
)
def test_what_is_just_allowed_of_a_matrix_product(arch: str, key: str, value: object) -> None:
    assert gemm_with(arch, **{key: value}).data()[key] == value


def test_the_type_of_a_products_output() -> None:
    assert gemm_with(dtype="fp16").resolved_out_dtype == "fp16"
    assert gemm_with(dtype="fp8_e4m3").resolved_out_dtype == "bf16"
    assert gemm_with("sm_100a", dtype="fp8_e4m3", out_dtype="fp32").resolved_out_dtype == "fp32"


def test_an_activation_is_kept_on_one_line() -> None:
    assert gemm_with(activation=" max(x,\n 0) ").activation == "max(x, 0)"


def blackwell_with(**keys: object) -> Any:
    return validated({**MINIMAL, "arch": "sm_100a", **keys})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dtype", "fp8"),
        ("dtype", "e4m3"),
        ("depth", 500),
        ("value_depth", 100),
        ("value_depth", 64.0),
        ("out_dtype", "fp8_e4m3"),
        ("cta_group", 4),
        ("BM", 192),
        ("BM", 128.0),
        ("BN", 48),
        ("BN", 288),
        ("num_kv_stages", 33),
        ("kv_ring", "shared"),
        ("num_qk_stages", 0),
        ("num_pv_stages", 9),
        ("epilogue", "direct"),
        ("output_staging", "key"),
        ("rescale_threshold", 11),
        ("exp2_fma_share", 0.1),
        ("exp2_fma_share", 1.125),
        ("registers", {"producer": 24, "consumer": 240}),
        ("registers", {"softmax": 192, "correction": 64}),
        ("registers", {"softmax": 192, "correction": 64, "other": 20}),
        ("ping_pong", True),
        ("num_consumer_warpgroups", 2),
    ],
)
def test_what_is_not_allowed_on_blackwell(key: str, value: object) -> None:
    with pytest.raises(ModelError) as caught:
        blackwell_with(**{key: value})
    assert {str(fault.path[0]) for fault in caught.value.faults} == {key}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("arch", "sm_103a"),
        ("BM", 256),
        ("BN", 32),
        ("num_kv_stages", 32),
        ("rescale_threshold", 0),
        ("rescale_threshold", "auto"),
        ("exp2_fma_share", 0),
        ("exp2_fma_share", 0.375),
        ("registers", {"softmax": 192, "correction": 64, "other": 48}),
    ],
)
def test_what_is_just_allowed_on_blackwell(key: str, value: object) -> None:
    assert blackwell_with(**{key: value}).data()[key] == value


def test_depth_and_type_of_the_output_follow_the_input() -> None:
    config = blackwell_with(depth=192, dtype="fp16")
    assert (config.resolved_value_depth, config.resolved_out_dtype) == (192, "fp16")
    config = blackwell_with(depth=192, value_depth=128, dtype="fp8_e4m3")
    assert (config.resolved_value_depth, config.resolved_out_dtype) == (128, "bf16")
    assert blackwell_with(dtype="fp8_e4m3", out_dtype="fp16").resolved_out_dtype == "fp16"


@pytest.mark.parametrize("shape", [["batch", "rows"], ["query_heads", "keys"]])
def test_pages_without_a_size_are_refused_whatever_tensors_are_declared(shape: list[str]) -> None:
    with pytest.raises(ModelError, match="keys: paged needs page_size"):
        validated(
            {
                **MINIMAL,
                "keys": "paged",
                "parameters": {"bias": {"dtype": "fp32", "shape": shape}},
                "score": f"score + bias[{'batch, query' if 'batch' in shape else 'head, key'}]",
            }
        )
