"""Refused configs of every design: each problem has an offer, and the first ones lead to a plan."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
import random_configs as drawing
import yaml

from fa4gen.config.load import config_schema, load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from fa4gen.designs.registry import DESIGNS, Design, design_for
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.errors import Problem

PAIR = re.compile(r"(\w+): (\{[^}]*\}|[^\s,;]+)")
DECODE = {"kernel": "attention", "dtype": "bf16", "depth": 128, "pack_heads": True}
LATENT = {**DECODE, "arch": "sm_90a", "depth": 576, "value_depth": 512}
HIDDEN: list[dict[str, Any]] = [
    {**LATENT, "score": {"relative_bias": 64}},
    {**LATENT, "score": "score + 0.5 * key"},
    {**LATENT, "mask": "prefix"},
    {**LATENT, "mask": {"dilated": 9}},
    {**DECODE, "arch": "sm_90a", "mask": "key % 3 == 0", "num_kv_stages": 9, "packed_rows": 64},
    {**DECODE, "arch": "sm_103a", "num_kv_stages": 9},
    {"kernel": "attention", "arch": "sm_103a", "dtype": "fp16", "depth": 96}
    | {"value_depth": 512, "num_kv_stages": 22},
]
"""Configs for which a problem had no offer, or one after which others came."""


def problems_of(config: KernelConfig) -> tuple[Problem, ...]:
    try:
        build_plan(config)
    except ConfigError as error:
        return error.problems
    return ()


def first_offer(problem: Problem) -> dict[str, Any]:
    """Keys that the first alternative of a remedy sets."""
    assert problem.remedy.startswith("Set "), problem
    words = problem.remedy.removeprefix("Set ").removesuffix(".").split("; or ")[0]
    return {key: yaml.safe_load(value) for key, value in PAIR.findall(words)}


def follow(config: KernelConfig) -> int:
    """Follow the first offer of the first problem till none is left; how many there were."""
    number = len(problems_of(config))
    for _ in range(number):
        problems = problems_of(config)
        assert all(problem.remedy for problem in problems), problems
        if problems:
            config = changed(config, first_offer(problems[0]))
    assert problems_of(config) == ()
    return number


@pytest.mark.parametrize("keys", HIDDEN, ids=str)
def test_no_offer_hides_another_problem(keys: dict[str, Any]) -> None:
    assert follow(load_mapping(keys, "hidden").config) > 0


def any_keys(design: Design, rng: random.Random) -> dict[str, Any]:
    """Random keys that the schema of ``design`` knows, not yet known to go together."""
    archs, place = rng.choice(list(design.configs.items()))
    schema = config_schema()["$defs"][place.load().__name__]
    keys = {"kernel": design.family.name, "name": "any", "arch": rng.choice(archs)}
    optional = [key for key in schema["properties"] if key not in (*keys, *schema["required"])]
    for key in (*schema["required"], *rng.sample(optional, rng.randint(1, 8))):
        if key == "parameters":
            keys |= drawing.draw_tensors(rng)
        elif key not in keys:
            keys[key] = drawing.draw_value(schema["properties"][key], rng, key)
    return keys


REFUSING = [design for design in DESIGNS if design.family.tune]  # merging refuses no plan


@pytest.mark.parametrize("design", REFUSING, ids=lambda design: design.name)
def test_who_follows_the_first_offers_ends_with_a_plan(design: Design) -> None:
    rng, refused = random.Random(1501), 0
    while refused < 12:
        try:
            config = load_mapping(any_keys(design, rng), "any").config
        except ConfigError:
            continue
        refused += design_for(config) is design and follow(config) > 0
