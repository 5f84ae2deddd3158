"""The lines of ``explain`` about the size of logits."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan

BASE = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
CACHE = {"pack_heads": True, "kv_dtype": "fp8_e4m3"}
PAGED = {**CACHE, "kv_scale": "page", "keys": "paged", "page_size": 64, "mask": "causal"}


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({}, "below 2^31 powers of two (logits of about 1.5e+09)"),
        ({"dtype": "fp16"}, "below 2^28 powers of two (logits of about 1.9e+08)"),
        (CACHE, "below 2^28 powers of two"),
        ({"dtype": "fp8_e4m3"}, "below 2^24 powers of two (logits of about 1.2e+07)"),
        (PAGED, "from 2^23 on"),
    ],
)
def test_the_limit_is_that_of_the_weights(keys: dict[str, Any], part: str) -> None:
    sections = dict(build_plan(load_mapping({**BASE, **keys}, "host").config).explained)
    assert part in sections["Large logits"][0]


def test_a_softcap_bounds_logits() -> None:
    plan = build_plan(load_mapping({**BASE, "softcap": 30.0}, "host").config)
    assert "Large logits" not in dict(plan.explained)
