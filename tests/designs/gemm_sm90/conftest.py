"""Configs of matrix products on Hopper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from fa4gen.designs.gemm_sm90.config import HopperGemmConfig

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS: dict[str, list[Any]] = {
    "dtype": ["bf16", "fp16", "fp8_e4m3"],
    "out_dtype": ["auto", "bf16", "fp16", "fp32"],
    "a_major": ["k", "m"],
    "b_major": ["k", "n"],
    "residual": ["none", "matrix", "row", "column"],
    "activation": ["silu(gate) * up", "silu(gate) * up", "gelu(x)"],
    "gate_layout": ["halves", "interleaved"],
    "cta_group": ["auto", 1, 2, 4, 8],
    "share": ["auto", "a", "b", "both"],
    "BM": ["auto", 16, 32, 40, 48, 64, 128, 136, 144, 192, 208, 256],
    "swap_operands": [False, True],
    "split_k": [1, 2],
    "evict_first": ["auto", "none", "b", "both"],
    "short_ends": [False, True],
    "output_in_ring": [False, True],
    "BN": ["auto", *range(16, 257, 16)],
    "BK": ["auto", 64, 128, 256],
    "num_consumer_warpgroups": ["auto", 1, 2, 3],
    "ping_pong": ["auto", True, False],
    "scales": [
        {"a": "1x128", "b": "128x128"},
        {"a": "1x128", "b": "1x128", "dtype": "ue8m0"},
    ],
    "groups": ["offsets", "masked"],
    "most_groups": ["auto", 9, 4096],
    "output_scales": ["1x128", "1x128", "amax", "mxfp8", "nvfp4"],
    "output_scale_order": ["row_major", "arranged"],
    "output_scale_dtype": [None, "fp32", "ue8m0"],
    "multiply_ahead": ["auto", True, False],
    "rows": ["contiguous", "gathered"],
    "num_stages": ["auto", 1, 2, 5, 16],
    "num_epi_stages": ["auto", 1, 2, 4],
    "registers": ["auto", {"producer": 40, "consumer": 232}, {"producer": 24, "consumer": 256}],
}


def gemm_config(**keys: Any) -> HopperGemmConfig:
    """A config of the fewest keys, and these."""
    return HopperGemmConfig.model_validate(
        {"kernel": "gemm", "name": "a", "arch": "sm_90a", "dtype": "bf16", **keys}
    )


@st.composite
def configs(draw: st.DrawFn) -> HopperGemmConfig:
    """Any config that the schema takes, most keys left out."""
    written = draw(st.lists(st.sampled_from(sorted(KEYS)), unique=True, max_size=7))
    keys = {key: draw(st.sampled_from(KEYS[key])) for key in written}
    if "scales" in keys and draw(st.booleans()):
        keys["dtype"] = "fp8_e4m3"
    return gemm_config(**keys)


@pytest.fixture(scope="session")
def any_gemm_config() -> st.SearchStrategy[HopperGemmConfig]:
    """The strategy of every config."""
    return configs()


@pytest.fixture(scope="session")
def hopper_gemm() -> Callable[..., HopperGemmConfig]:
    """A config of the fewest keys, and those given."""
    return gemm_config
