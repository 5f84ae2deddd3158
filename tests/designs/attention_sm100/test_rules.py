"""Keys that do not go together, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
from fa4gen.designs.attention_sm100.model import FA4Config
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError

ConfigOf = Callable[..., BlackwellAttentionConfig]
PlanOf = Callable[..., FA4Config]


@pytest.mark.parametrize(
    ("keys", "key", "message", "remedy"),
    [
        (
            {"num_qk_stages": 3},
            "num_qk_stages",
            "num_qk_stages: 3 parts do not split the 2 swizzled panels (64 columns each) of depth "
            "128",
            "Set num_qk_stages: 2.",
        ),
        (
            {"dtype": "fp8_e4m3", "num_qk_stages": 2},
            "num_qk_stages",
            "num_qk_stages: 2 parts do not split the 1 swizzled panels (128 columns each) of depth "
            "128",
            "Set num_qk_stages: 1.",
        ),
        (
            {"BN": 128, "num_pv_stages": 3},
            "num_pv_stages",
            "num_pv_stages: 3 parts do not split the 4 steps of 32 keys of BN = 128",
            "Set num_pv_stages: 2.",
        ),
        (
            {"BN": 32, "num_pv_stages": 2},
            "num_pv_stages",
            "num_pv_stages: 2 parts do not split the 1 steps of 32 keys of BN = 32",
            "Set num_pv_stages: 1.",
        ),
        (
            {"kv_ring": "fused", "num_qk_stages": 2},
            "num_qk_stages",
            "num_qk_stages: 2 needs separate rings: a slot of a fused ring holds keys, then "
            "values, and arrives whole",
            "Set num_qk_stages: 1; or kv_ring: separate.",
        ),
        (
            {"kv_ring": "fused", "num_kv_stages": 1},
            "num_kv_stages",
            "num_kv_stages: a fused ring of 1 slot deadlocks: the values of one block and the keys "
            "of the next are held at once",
            "Set num_kv_stages: 2; or kv_ring: separate.",
        ),
        (
            {"depth": 64, "value_depth": 128, "output_staging": "query"},
            "output_staging",
            "output_staging: query has 16384 bytes for a query tile, but its output takes 32768",
            "Set output_staging: own.",
        ),
        (
            {"dtype": "fp8_e4m3", "output_staging": "query"},
            "output_staging",
            "output_staging: query has 16384 bytes for a query tile, but its output takes 32768",
            "Set output_staging: own.",
        ),
        (
            {"dtype": "fp8_e4m3", "depth": 96, "cta_group": 2},
            "cta_group",
            "cta_group: 2 gives each CTA half of 96 columns of values, which no swizzled panel of "
            "32, 64 or 128 bytes tiles",
            "Set cta_group: 1.",
        ),
        (
            {"dtype": "fp8_e4m3", "rescale_threshold": 8.9},
            "rescale_threshold",
            "rescale_threshold: probabilities up to 2^8.9 do not fit fp8_e4m3, whose largest "
            "number is 448",
            "Set rescale_threshold: 8.0; or rescale_threshold: auto.",
        ),
    ],
)
def test_keys_that_do_not_go_together(
    config_of: ConfigOf, keys: dict[str, object], key: str, message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_plan(config_of(**keys))
    [problem] = caught.value.problems
    assert (problem.key, problem.message, problem.remedy) == (key, message, remedy)


def test_all_broken_rules_come_at_once(config_of: ConfigOf) -> None:
    config = config_of(
        dtype="fp8_e4m3", kv_ring="fused", num_kv_stages=1, num_qk_stages=2, num_pv_stages=3,
        BN=128, output_staging="query", rescale_threshold=9.5,
    )  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        build_plan(config)
    assert [problem.key for problem in caught.value.problems] == [
        "num_qk_stages",
        "num_pv_stages",
        "num_qk_stages",
        "num_kv_stages",
        "output_staging",
        "rescale_threshold",
    ]


def test_a_wide_output_takes_the_stages_along_that_leave_no_room(config_of: ConfigOf) -> None:
    config = config_of(
        dtype="fp16", depth=64, value_depth=128, BN=64, num_kv_stages=7, output_staging="query"
    )
    with pytest.raises(ConfigError) as caught:
        build_plan(config)
    [problem] = caught.value.problems
    assert problem.remedy == "Set num_kv_stages: auto and output_staging: auto."


@pytest.mark.parametrize(
    "keys",
    [
        {"num_qk_stages": 2},
        {"depth": 256, "num_qk_stages": 2},
        {"BN": 96, "num_pv_stages": 2},
        {"BN": 96, "num_pv_stages": 3},
        {"kv_ring": "fused", "num_kv_stages": 2},
        {"depth": 96, "cta_group": 2},
        {"depth": 64, "cta_group": 2, "dtype": "fp8_e4m3"},
        {"dtype": "fp8_e4m3", "depth": 256, "value_depth": 128, "output_staging": "query"},
        {"dtype": "fp8_e4m3", "rescale_threshold": 8.8},
    ],
)
def test_keys_that_do(plan_of: PlanOf, keys: dict[str, object]) -> None:
    plan = plan_of(**keys)
    assert {key: getattr(plan, key) for key in keys} == keys
