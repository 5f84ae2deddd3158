"""What a decode kernel refuses, and what it suggests instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.config.schema import AttentionConfig
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError

ConfigOf = Callable[..., AttentionConfig]


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        ({"cta_group": 2}, "pack_heads: true needs cta_group: 1, got 2", "Set cta_group: 1."),
        ({"BM": 64}, "pack_heads: true needs BM: auto, got 64", "Set BM: auto."),
        ({"BN": 64}, "pack_heads: true needs BN: auto, got 64", "Set BN: auto."),
        ({"epilogue": "tma_store"}, "needs epilogue: direct, got tma_store", "epilogue: auto"),
        ({"scheduler": "dynamic"}, "needs scheduler: static, got dynamic", "scheduler: auto"),
        ({"overlap": False}, "needs overlap: true, got false", "Set overlap: true."),
        ({"batching": "ragged"}, "batching: ragged with pack_heads is not supported yet", "Set"),
        ({"depth": 512}, "depth: 512 with pack_heads is not supported yet", "pack_heads: false"),
        ({"value_depth": 64}, "value_depth: 64 with pack_heads is not supported", "value_depth"),
        (
            {"depth": 256, "packed_rows": 16},
            "256 / 16 * 16 / 8 * (2 of queries + 4 of output) + 72 of scores, row state and "
            "addresses = 264, but has 255",
            "Set packed_rows: 8.",
        ),
        (
            {"split_keys": {"keys": 192}},
            "split_keys: 192 keys are no multiple of the 128 of a block",
            "Set split_keys: {keys: 256}; or split_keys: auto.",
        ),
        ({"num_kv_stages": 7}, "7 * 32768 for blocks of keys and values", "Set num_kv_stages: 6."),
    ],
)
def test_what_cannot_work_is_refused_with_a_suggested_fix(
    config_of: ConfigOf, keys: dict[str, object], message: str, remedy: str
) -> None:
    config = config_of(pack_heads=True, **keys)
    with pytest.raises(ConfigError) as raised:
        build_plan(config)
    text = str(raised.value)
    assert message in text
    assert remedy in text


def test_blackwell_has_no_such_key() -> None:
    keys = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128}
    with pytest.raises(ConfigError) as raised:
        load_mapping({**keys, "pack_heads": True}, "probe")
    assert "sm_90a" in str(raised.value)
