"""Rules for every design's candidates, on all shipped configs and on some that pin keys."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.find import shipped_configs
from fa4gen.config.load import load_config, load_mapping
from fa4gen.designs.build import build_plan, candidates_of, relaxations_of
from fa4gen.designs.registry import DESIGNS, design_for
from fa4gen.errors import ConfigError
from fa4gen.strict import ModelError

SHIPPED = [load_config(path).config for path in shipped_configs()]
MOST = 40
"""Candidates of a config: a walk over all of them takes a minute or two."""


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_candidates_of_shipped_configs(design: Any) -> None:
    configs = [config for config in SHIPPED if design_for(config) is design]
    assert configs
    for config in configs:
        first, *others = candidates_of(config)
        assert first == {}
        assert len({str(changes) for changes in others}) == len(others) < MOST
        for changes in others:
            assert changes.keys() <= set(design.tuned_keys)
            assert all(getattr(config, key) == "auto" for key in changes)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_candidate_is_a_plan_or_is_refused(design: Any) -> None:
    config = next(config for config in SHIPPED if design_for(config) is design)
    planned = 0
    for changes in candidates_of(config):
        try:
            plan = build_plan(config, changes)
        except (ConfigError, ModelError):
            continue
        planned += 1
        chosen = {row.key: row.source for row in plan.choices if row.key in changes}
        assert set(chosen.values()) <= {"auto"}
    assert planned >= 1


@pytest.mark.parametrize(
    ("keys", "kinds"),
    [
        ({"BN": 96}, [[{"BN": "auto"}], []]),
        (
            {"BN": 96, "overlap_epilogue": True},
            [
                [{"BN": "auto"}, {"overlap_epilogue": "auto"}],
                [{"BN": "auto", "overlap_epilogue": "auto"}],
            ],
        ),
        ({}, [[], []]),
    ],
)
def test_fixes_leave_what_is_given_to_the_plan_before_they_compute_something_else(
    keys: dict[str, Any], kinds: list[list[dict[str, str]]]
) -> None:
    base = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
    config = load_mapping({**base, "mask": "causal", **keys}, "k").config
    *tiles, features, both = relaxations_of(config)
    assert list(tiles) == kinds
    left = dict.fromkeys(keys, "auto")
    assert both == [{**left, **changes} for changes in features if keys]
    assert {"mask": "none"} in features
    assert {"mask": "causal"} not in features  # it has that
    assert {"lse": False} in features
