"""Refusals of decode kernels, with their suggested fixes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_config import AttentionKeys
from fa4gen.errors import ConfigError

ConfigOf = Callable[..., AttentionKeys]


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        ({"cta_group": 2}, "pack_heads: true needs cta_group: 1, got 2", "Set cta_group: 1"),
        ({"BM": 64}, "pack_heads: true has no BM, got 64", "Set BM: auto"),
        ({"BN": 64}, "pack_heads: true has no BN, got 64", "Set BN: auto"),
        ({"epilogue": "tma_store"}, "needs epilogue: direct, got tma_store", "epilogue: auto"),
        ({"scheduler": "dynamic"}, "needs scheduler: static, got dynamic", "scheduler: auto"),
        ({"overlap": False}, "needs overlap: true, got false", "Set overlap: true"),
        ({"batching": "ragged"}, "batching: ragged with pack_heads is not supported yet", "Set"),
        (
            {"batching": "ragged", "keys": "ragged"},
            "batching: ragged with pack_heads is not supported yet",
            "Set batching: dense and keys: auto; or pack_heads: false.",
        ),
        (
            {"depth": 512, "packed_rows": 64},
            "packed_rows: 64 at depth 512 is not supported yet: depths are 64, 128, 192, 256",
            "Set packed_rows: 8.",
        ),
        (
            {"depth": 512, "packed_rows": 16},
            "a thread of a consumer holds 512 / 16 * 16 / 8 * 4 of output = 256, but has 255",
            "Set packed_rows: auto.",
        ),
        (
            {"depth": 96, "packed_rows": 64},
            "packed_rows: 64 at depth 96 is not supported yet: depths are 64, 128, 192, 256",
            "Set packed_rows: 8.",
        ),
        ({"value_depth": 64}, "value_depth: 64 with pack_heads is not supported", "value_depth"),
        (
            {"score": "score / 2", "packed_rows": 64},
            "score with packed_rows: 64 is not supported yet: rows of a tile are of several heads",
            "Set packed_rows: 8; or score: null.",
        ),
        (
            {"mask": {"dilated": 4}, "packed_rows": 64},
            "hides keys between the first and the last that a row sees, which packed_rows: 64 does",
            "Set packed_rows: 8; or mask: causal; or mask: none.",
        ),
        (
            {"split_keys": {"keys": 192}},
            "split_keys: 192 keys are no multiple of the 128 of a block",
            "Set split_keys: {keys: 256}; or split_keys: auto.",
        ),
        ({"num_kv_stages": 7}, "7 * 32768 (kv)", "Set num_kv_stages: 6"),
    ],
)
def test_what_cannot_work_is_refused_with_a_suggested_fix(
    config_of: ConfigOf, keys: dict[str, object], message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        build_plan(config_of(pack_heads=True, **keys))
    text = str(raised.value)
    assert message in text
    assert remedy in text


BLACKWELL = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128}


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        ({"cta_group": 2}, "pack_heads: true needs cta_group: 1, got 2", "Set cta_group: 1"),
        ({"kv_ring": "separate"}, "needs kv_ring: fused, got separate", "Set kv_ring: auto"),
        ({"num_qk_stages": 2}, "needs num_qk_stages: 1, got 2", "num_qk_stages: auto"),
        ({"num_pv_stages": 2}, "needs num_pv_stages: 1, got 2", "num_pv_stages: auto"),
        ({"output_staging": "own"}, "has no output_staging, got own", "output_staging: auto"),
        ({"exp2_fma_share": 0.25}, "needs exp2_fma_share: 0.0, got 0.25", "exp2_fma_share: auto"),
        ({"dtype": "fp8_e4m3"}, "dtype: fp8_e4m3 is not possible; it must be", "pack_heads: false"),
        ({"out_dtype": "fp16"}, "out_dtype: fp16 with pack_heads is not supp", "out_dtype: auto"),
        (
            {"depth": 512, "keys": "paged", "page_size": 64, "kv_dtype": "fp8_e4m3"},
            "kv_dtype: fp8_e4m3 at depth 512 is not supported yet: depths are 64, 96, 128, 192",
            "Set kv_dtype: auto.",
        ),
        ({"num_kv_stages": 16}, "16 * 32768 (kv)", "num_kv_stages: 6."),
    ],
)
def test_blackwell_refuses_what_the_kernel_has_no_place_for(
    keys: dict[str, object], message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        build_plan(load_mapping({**BLACKWELL, "pack_heads": True, **keys}, "probe").config)
    assert message in str(raised.value)
    assert remedy in str(raised.value)
