from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
from fa4gen.designs.build import build_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_sm100.model import FA4Config

Keys = dict[str, object]

BASE: Keys = {
    "kernel": "attention",
    "name": "any",
    "arch": "sm_100a",
    "dtype": "bf16",
    "depth": 128,
}


def _or_auto(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.just("auto") | values


_depths = st.sampled_from([64, 96, 128, 192, 256])
_multiples_of_8 = st.integers(3, 32).map(lambda n: 8 * n)
_extents = st.integers(0, 2**30)
_registers: st.SearchStrategy[object] = st.fixed_dictionaries(
    {"softmax": _multiples_of_8, "correction": _multiples_of_8, "other": _multiples_of_8}
) | st.sampled_from(
    [(192, 80, 48), (184, 96, 48), (200, 64, 48), (192, 192, 120), (240, 168, 88)]
).map(lambda split: dict(zip(("softmax", "correction", "other"), split, strict=True)))
_REQUIRED = {
    "arch": st.sampled_from(["sm_100a", "sm_103a", "sm_100f"]),
    "dtype": st.sampled_from(["bf16", "fp16", "fp8_e4m3"]),
    "depth": _depths,
}
_OPTIONAL = {
    "mask": st.sampled_from(["none", "causal"])
    | st.builds(lambda w: {"sliding_window": w + 1}, st.integers(0, 2**30 - 1))
    | st.builds(lambda a, b: {"sliding_window": {"left": a, "right": b}}, _extents, _extents),
    "lse": st.booleans(),
    "softcap": st.none() | st.floats(1e-4, 1e4),
    "value_depth": _or_auto(_depths),
    "out_dtype": st.sampled_from(["auto", "bf16", "fp16"]),
    "cta_group": st.sampled_from([1, 2]),
    "BM": _or_auto(st.sampled_from([128, 256])),
    "BN": _or_auto(st.integers(1, 8).map(lambda n: 32 * n)),
    "num_kv_stages": _or_auto(st.integers(1, 32)),
    "kv_ring": st.sampled_from(["auto", "separate", "fused"]),
    "num_qk_stages": _or_auto(st.integers(1, 8)),
    "num_pv_stages": _or_auto(st.integers(1, 8)),
    "output_staging": st.sampled_from(["auto", "query", "own"]),
    "scheduler": st.sampled_from(["auto", "static", "dynamic"]),
    "rescale_threshold": _or_auto(st.floats(0, 10) | st.sampled_from([8.0, 8.75, 8.8, 9.0])),
    "exp2_fma_share": _or_auto(st.integers(0, 8).map(lambda n: n / 8)),
    "registers": _or_auto(_registers),
}
_ANY_CONFIG = st.builds(
    lambda keys: BlackwellAttentionConfig.model_validate({**BASE, **keys}),
    st.fixed_dictionaries(_REQUIRED, optional=_OPTIONAL),
)


@pytest.fixture(scope="session")
def any_config() -> st.SearchStrategy[BlackwellAttentionConfig]:
    """Every config that the schema accepts can come of it; about half cannot work."""
    return _ANY_CONFIG


@pytest.fixture(scope="session")
def config_of() -> Callable[..., BlackwellAttentionConfig]:
    """config_of(BN=64) is a valid config of depth 128, bf16, with these keys."""
    return lambda **keys: BlackwellAttentionConfig.model_validate({**BASE, **keys})


@pytest.fixture(scope="session")
def plan_of(
    config_of: Callable[..., BlackwellAttentionConfig],
) -> Callable[..., FA4Config]:
    """plan_of(BN=64) is the plan of ``config_of(BN=64)``."""

    def plan_of_keys(**keys: object) -> FA4Config:
        plan = build_plan(config_of(**keys))
        assert plan.__class__.__name__ == "FA4Config"
        return plan  # type: ignore[return-value]

    return plan_of_keys
