from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from fa4gen.config.load import load_mapping
from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
from fa4gen.designs.attention_sm100_depth512.model import Depth512Config
from fa4gen.designs.build import build_plan

if TYPE_CHECKING:
    from collections.abc import Callable

Keys = dict[str, object]

BASE: Keys = {
    "kernel": "attention",
    "name": "any",
    "arch": "sm_100a",
    "dtype": "bf16",
    "depth": 512,
    "cta_group": 2,
}


def _or_auto(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.just("auto") | values


_extents = st.integers(0, 2**30)
_multiples_of_8 = st.integers(3, 32).map(lambda n: 8 * n)
_registers: st.SearchStrategy[object] = st.fixed_dictionaries(
    {"softmax": _multiples_of_8, "correction": _multiples_of_8, "other": _multiples_of_8}
) | st.sampled_from([(216, 128, 64), (216, 192, 96), (224, 128, 64), (144, 144, 144)]).map(
    lambda split: dict(zip(("softmax", "correction", "other"), split, strict=True))
)
_REQUIRED = {
    "arch": st.sampled_from(["sm_100a", "sm_103a", "sm_100f"]),
    "dtype": st.sampled_from(["bf16", "fp16", "fp8_e4m3"]),
}
_OPTIONAL = {
    "mask": st.sampled_from(["none", "causal"])
    | st.builds(lambda w: {"sliding_window": w + 1}, st.integers(0, 2**30 - 1))
    | st.builds(lambda a, b: {"sliding_window": {"left": a, "right": b}}, _extents, _extents),
    "lse": st.booleans(),
    "batching": st.sampled_from(["dense", "ragged"]),
    "softcap": st.none() | st.floats(1e-4, 1e4),
    "out_dtype": st.sampled_from(["auto", "bf16", "fp16"]),
    "num_kv_stages": _or_auto(st.integers(1, 32)),
    "scheduler": st.sampled_from(["auto", "static", "dynamic"]),
    "rescale_threshold": _or_auto(st.floats(0, 10) | st.sampled_from([8.0, 8.75, 8.8, 9.0])),
    "exp2_fma_share": _or_auto(st.integers(0, 8).map(lambda n: n / 8)),
    "registers": _or_auto(_registers),
    # what the geometry fixes
    "value_depth": _or_auto(st.just(512)),
    "BM": _or_auto(st.just(64)),
    "BN": _or_auto(st.just(256)),
    "kv_ring": st.sampled_from(["auto", "fused"]),
    "num_qk_stages": _or_auto(st.just(4)),
    "num_pv_stages": _or_auto(st.just(2)),
    "output_staging": st.sampled_from(["auto", "query"]),
}
FREE = ("mask", "lse", "batching", "softcap", "out_dtype", "scheduler")
"""Keys of which no value is ever refused."""


def _configs(optional: dict[str, st.SearchStrategy[object]]) -> st.SearchStrategy[object]:
    return st.builds(
        lambda keys: BlackwellPairAttentionConfig.model_validate({**BASE, **keys}),
        st.fixed_dictionaries(_REQUIRED, optional=optional),
    )


@pytest.fixture(scope="session")
def any_config() -> st.SearchStrategy[object]:
    """Configs with any key set; most of them cannot work."""
    return _configs(_OPTIONAL)


@pytest.fixture(scope="session")
def free_config() -> st.SearchStrategy[object]:
    """Configs that leave to the plan whatever it could refuse."""
    return _configs({key: _OPTIONAL[key] for key in FREE})


@pytest.fixture(scope="session")
def config_of() -> Callable[..., BlackwellPairAttentionConfig]:
    """config_of(dtype="fp16") is a config of depth 512 for a pair, with these keys."""
    return lambda **keys: load_mapping({**BASE, **keys}, "any").config


@pytest.fixture(scope="session")
def plan_of(
    config_of: Callable[..., BlackwellPairAttentionConfig],
) -> Callable[..., Depth512Config]:
    """plan_of(dtype="fp16") is the plan of ``config_of(dtype="fp16")``."""

    def plan_of_keys(**keys: object) -> Depth512Config:
        plan = build_plan(config_of(**keys))
        assert isinstance(plan, Depth512Config)
        return plan

    return plan_of_keys
