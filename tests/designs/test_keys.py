"""No key of a config is without effect: two values of it make two kernels, or one is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import DESIGNS, design_for
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from tests.designs.facts import facts
from tests.designs.values import some_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan

    Built = tuple[Plan, LoadedConfig]

Keys = dict[str, Any]

ATTENTION: Keys = {"kernel": "attention", "dtype": "bf16", "depth": 128}
LATENT: Keys = {"depth": 576, "value_depth": 512, "pack_heads": True}
GEMM: Keys = {"kernel": "gemm", "dtype": "bf16"}
BASES: dict[str, Keys] = {
    "attention_sm90": {**ATTENTION, "arch": "sm_90a"},
    "attention_sm100": {**ATTENTION, "arch": "sm_100a"},
    "attention_sm90_depth512": {**ATTENTION, "arch": "sm_90a", "depth": 512, "cta_group": 2},
    "attention_sm100_depth512": {**ATTENTION, "arch": "sm_100a", "depth": 512, "cta_group": 2},
    "attention_latent": {**ATTENTION, "arch": "sm_90a", **LATENT},
    "attention_latent_sm100": {**ATTENTION, "arch": "sm_100a", **LATENT, "cta_group": 2},
    "attention_decode": {**ATTENTION, "arch": "sm_90a", "pack_heads": True},
    "gemm_sm90": {**GEMM, "arch": "sm_90a"},
    "gemm_sm100": {**GEMM, "arch": "sm_100a"},
    "merge": {"kernel": "merge", "dtype": "bf16", "depth": 128, "arch": "sm_90a"},
}
WITHOUT_EFFECT = {("gemm_sm100", "num_epi_stages")}
"""Without a residual: a sweep may vary both, and the plan says that there are 0 slots."""
TEMPLATES = open_templates()


def built(keys: Keys, design: str) -> Built | None:
    """The plan of a config; None for one that is refused or asks for another design."""
    try:
        loaded = load_mapping(keys, "probe")
        if design_for(loaded.config).name == design:
            return build_plan(loaded.config), loaded
    except ConfigError:
        pass
    return None


def plan_alone(plan: Plan, loaded: LoadedConfig) -> object:
    """Return the plan as templates and launchers read it, without the config."""
    return facts(plan)


def code_of(plan: Plan, loaded: LoadedConfig) -> object:
    """The files without comments, and what a launcher reads."""
    rendered = render(plan, loaded, TEMPLATES)
    texts = (text for name, text in rendered.files.items() if not name.endswith(".json"))
    code = tuple(re.sub(r"//[^\n]*|\s+", " ", text) for text in texts)
    return code, plan.launch, plan.tensor_maps, plan.parameters


def two_values(base: Keys, key: str, design: str) -> list[tuple[Any, Built]]:
    """Two values of ``key`` that are accepted, or fewer, and the plan of each."""
    field = type(load_mapping(base, "probe").config).model_fields[key]
    given = [] if field.is_required() else [field.get_default()]
    found: list[tuple[Any, Built]] = []
    for value in (*given, *some_values(field.kind)):
        new = all(type(value) is not type(other) or value != other for other, _ in found)
        if value != "auto" and new and (made := built({**base, key: value}, design)):
            found.append((value, made))
        if len(found) == 2:
            break
    return found


def test_every_design_has_a_base() -> None:
    assert list(BASES) == [design.name for design in DESIGNS]
    for design, keys in BASES.items():
        assert built(keys, design)


def keys_without_effect(design: str, result: Callable[[Plan, LoadedConfig], object]) -> list[str]:
    """Keys of which two values have the same result; at least 8 have two values, or all of few."""
    base = BASES[design]
    model = type(load_mapping(base, "probe").config)
    keys = sorted({*model.model_fields} - {"kernel", "name", "arch"})
    pairs = {key: found for key in keys if len(found := two_values(base, key, design)) == 2}
    assert len(pairs) >= min(8, len(keys)), list(pairs)
    return [
        f"{key}: {one} and {key}: {other}"
        for key, ((one, first), (other, second)) in pairs.items()
        if (design, key) not in WITHOUT_EFFECT and result(*first) == result(*second)
    ]


@pytest.mark.parametrize("design", BASES)
def test_two_values_of_a_key_make_two_plans(design: str) -> None:
    assert keys_without_effect(design, plan_alone) == []


@pytest.mark.seeds
@pytest.mark.parametrize("design", BASES)
def test_two_values_of_a_key_make_two_kernels(design: str) -> None:
    assert keys_without_effect(design, code_of) == []
