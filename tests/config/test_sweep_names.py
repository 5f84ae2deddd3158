from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.sweep_names import case_names

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
KEYS = st.sampled_from(["depth", "mask", "BM", "overlap", "num_kv_stages", "dtype"])


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "s"),
        ({"depth": 64, "mask": "causal", "dtype": "bf16"}, "s_d64_causal_bf16"),
        ({"mask": "none", "scheduler": "auto"}, "s_mask_none_scheduler_auto"),
        ({"overlap": True, "lse": False}, "s_overlap_no_lse"),
        ({"mask": {"sliding_window": 1024}}, "s_window1024"),
        ({"mask": {"sliding_window": {"left": 8, "right": 0}}}, "s_window_left8_right0"),
        ({"softcap": 30.0, "rescale_threshold": 0.5}, "s_softcap30_rescale0p5"),
        ({"softcap": None, "BM": 128}, "s_softcap_null_bm128"),
        ({"a_major": "k", "b_major": "n", "residual": "row"}, "s_a_major_k_b_major_n_row"),
        (
            {"num_stages": 4, "num_epi_stages": 1, "activation": "max(x, 0)"},
            "s_stages4_epi1_max_x_0",
        ),
        ({"registers": {"producer": 24, "consumer": 240}}, "s_registers_producer24_consumer240"),
    ],
)
def test_a_name_tells_what_varies(values: dict[str, Any], name: str) -> None:
    assert case_names("s", [values]) == [name]


@pytest.mark.parametrize(
    ("prefix", "name"), [("My Sweep (2)", "my_sweep_2"), ("64", "sweep_64"), ("é", "sweep")]
)
def test_any_prefix_becomes_a_name(prefix: str, name: str) -> None:
    assert case_names(prefix, [{}]) == [name]


def test_names_that_would_be_alike_are_reported_apart() -> None:
    one, two, other = case_names("s", [{"dtype": "a b"}, {"dtype": "a-b"}, {"dtype": "c"}])

    assert one != two
    assert one.startswith("s_a_b_")
    assert other == "s_c"


@given(st.text(max_size=120), st.lists(st.dictionaries(KEYS, VALUES), max_size=6))
def test_names_are_valid_unique_and_do_not_depend_on_chance(
    prefix: str, varied: list[dict[str, Any]]
) -> None:
    names = case_names(prefix, varied)

    assert names == case_names(prefix, varied)
    for name in names:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert len(name) <= 100
    different = {json.dumps(values, sort_keys=True) for values in varied}
    assert len(set(names)) == len(different)
