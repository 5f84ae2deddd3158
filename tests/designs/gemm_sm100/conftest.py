"""Configs of matrix products on Blackwell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from fa4gen.designs.build import build_plan
from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.gemm_sm100.model import BlackwellGemmPlan

KEYS: dict[str, list[Any]] = {
    "arch": ["sm_100a", "sm_103a", "sm_100f"],
    "dtype": ["bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1"],
    "scales": [None, "mxfp8", "mxfp4", "nvfp4"],
    "scale_order": ["arranged", "row_major"],
    "out_dtype": ["auto", "bf16", "fp16", "fp32"],
    "a_major": ["k", "m"],
    "b_major": ["k", "n"],
    "residual": ["none", "matrix", "row", "column"],
    "activation": ["silu(gate) * up", "silu(gate) * up", "gelu(x)"],
    "gate_layout": ["halves", "interleaved"],
    "groups": ["offsets", "masked"],
    "most_groups": ["auto", 9, 4096],
    "output_scales": ["1x128", "mxfp8", "nvfp4", "amax"],
    "output_scale_order": ["row_major", "arranged"],
    "output_scale_dtype": [None, "fp32", "ue8m0"],
    "cta_group": ["auto", 1, 2],
    "BM": ["auto", 64, 128],
    "BN": ["auto", 64, 128, 192, 256],
    "BK": ["auto", 64, 128, 256],
    "num_stages": ["auto", 1, 2, 5, 16],
    "num_accum_stages": ["auto", 1, 2, 3, 4],
    "stage_stride_cols": ["auto", 32, 96, 128, 256, 288, 512],
    "num_epi_stages": ["auto", 1, 2, 4],
    "num_out_stages": ["auto", 1, 2, 4],
    "scheduler": ["auto", "static", "dynamic"],
}


def config_of_keys(**keys: Any) -> BlackwellGemmConfig:
    """A config of the fewest keys, and these."""
    return BlackwellGemmConfig.model_validate(
        {"kernel": "gemm", "name": "any", "arch": "sm_100a", "dtype": "bf16", **keys}
    )


@st.composite
def configs(draw: st.DrawFn) -> BlackwellGemmConfig:
    """Any config that the schema takes, most keys left out."""
    written = draw(st.lists(st.sampled_from(sorted(KEYS)), unique=True, max_size=8))
    return config_of_keys(**{key: draw(st.sampled_from(KEYS[key])) for key in written})


@pytest.fixture(scope="session")
def any_config() -> st.SearchStrategy[BlackwellGemmConfig]:
    """The strategy of every config."""
    return configs()


@pytest.fixture(scope="session")
def config_of() -> Callable[..., BlackwellGemmConfig]:
    """config_of(BN=64) is a valid config of bf16 with these keys."""
    return config_of_keys


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., BlackwellGemmPlan]:
    """plan_of(BN=64) is the plan of ``config_of(BN=64)``."""
    return lambda **keys: build_plan(config_of_keys(**keys))
