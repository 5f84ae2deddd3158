from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_config import AttentionKeys
    from fa4gen.designs.common.attention_model import AttentionPlan

Keys = dict[str, object]

BASE: Keys = {"kernel": "attention", "name": "any", "arch": "sm_90a", "dtype": "bf16", "depth": 128}


def _or_auto(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.just("auto") | values


_multiples_of_8 = st.integers(3, 32).map(lambda n: 8 * n)
_extents = st.integers(0, 2**30)
_REQUIRED = {
    "dtype": st.sampled_from(["bf16", "fp16", "fp8_e4m3"]),
    "depth": st.sampled_from([64, 96, 128, 192, 256]),
}
_OPTIONAL = {
    "mask": st.sampled_from(["none", "causal"])
    | st.builds(lambda w: {"sliding_window": w + 1}, st.integers(0, 2**30 - 1))
    | st.builds(lambda a, b: {"sliding_window": {"left": a, "right": b}}, _extents, _extents),
    "value_depth": _or_auto(st.sampled_from([64, 96, 128, 192, 256])),
    "lse": st.booleans(),
    "softcap": st.none() | st.floats(1e-4, 1e4),
    "cta_group": st.sampled_from([1, 2]),
    "BN": _or_auto(st.integers(1, 16).map(lambda n: 16 * n)),
    "num_kv_stages": _or_auto(st.integers(1, 16)),
    "overlap": st.booleans(),
    "num_pv_chunks_in_flight": _or_auto(st.integers(0, 16)),
    "ping_pong": _or_auto(st.booleans()),
    "overlap_epilogue": _or_auto(st.booleans()),
    "epilogue": st.sampled_from(["auto", "direct", "tma_store"]),
    "scheduler": st.sampled_from(["auto", "static", "dynamic"]),
    "rescale_threshold": st.floats(0, 10),
    "registers": _or_auto(
        st.fixed_dictionaries({"producer": _multiples_of_8, "consumer": _multiples_of_8})
        | st.sampled_from([(24, 240), (32, 160), (24, 256), (40, 232), (56, 152)]).map(
            lambda split: {"producer": split[0], "consumer": split[1]}
        )
    ),
}
_tiles: st.SearchStrategy[Keys] = st.integers(1, 3).flatmap(
    lambda n: st.sampled_from([{}, {"BM": 64 * n}])
)
_ANY_CONFIG = st.builds(
    lambda keys, tile: validated({**BASE, **keys, **tile}),
    st.fixed_dictionaries(_REQUIRED, optional=_OPTIONAL),
    _tiles,
)


@pytest.fixture(scope="session")
def any_config() -> st.SearchStrategy[AttentionKeys]:
    """Every config that the schema accepts can come of it; about half cannot work."""
    return _ANY_CONFIG


@pytest.fixture(scope="session")
def config_of() -> Callable[..., AttentionKeys]:
    """config_of(BN=64) is a valid config of depth 128, bf16, with these keys."""
    return lambda **keys: load_mapping({**BASE, **keys}, "any").config


@pytest.fixture(scope="session")
def plan_of(config_of: Callable[..., AttentionKeys]) -> Callable[..., AttentionPlan]:
    """plan_of(BN=64) is the plan of ``config_of(BN=64)``."""
    return lambda **keys: build_plan(config_of(**keys))
