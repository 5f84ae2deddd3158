"""The benchmark of dependent launches: its kernels, and how they follow one another."""

from __future__ import annotations

from itertools import pairwise

import pytest
from dependent_launches import ATTENTION, HIDDEN, HOPPER, PRODUCT, PRODUCTS, SHORT

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan


def test_each_kernel_takes_the_output_of_the_one_before() -> None:
    assert PRODUCTS[0][1] == PRODUCTS[-1][0] == HIDDEN
    assert all(after[1] == before[0] for before, after in pairwise(PRODUCTS))


@pytest.mark.parametrize("keys", [ATTENTION, PRODUCT], ids=["attention", "product"])
@pytest.mark.parametrize("dependent", [True, False])
def test_the_kernels_differ_in_the_key(keys: dict[str, object], dependent: bool) -> None:
    plan = build_plan(
        load_mapping({**HOPPER, **keys, "dependent_launch": dependent}, "probe").config
    )
    assert plan.launch.dependent_launch == dependent


def test_two_ctas_with_short_rings_fit_a_multiprocessor() -> None:
    keys = {**HOPPER, **PRODUCT, **SHORT, "dependent_launch": True}
    plan = build_plan(load_mapping(keys, "probe").config)
    assert 2 * (plan.launch.dynamic_shared_bytes + 1024) <= 228 << 10
