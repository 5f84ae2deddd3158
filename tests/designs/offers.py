"""Checks of the offers of a refusal: each removes its problem and brings no other."""

from __future__ import annotations

import re
from typing import Any

import yaml

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed, faults_of
from fa4gen.errors import ConfigError, Problem

PAIR = re.compile(r"(\w+): (\{[^}]*\}|[\w.]+)")


def problems_of(config: Any) -> tuple[Problem, ...]:
    """Return the problems for which a config has no plan."""
    try:
        build_plan(config)
    except ConfigError as error:
        return error.problems
    return ()


def offers(problem: Problem) -> list[dict[str, object]]:
    """Return the alternatives of a remedy, as the YAML that it tells to write."""
    text = problem.remedy.removeprefix("Set ").removesuffix(".")
    return [
        {key: yaml.safe_load(value) for key, value in PAIR.findall(words)}
        for words in text.split("; or ")
    ]


def check_offers(config: Any) -> bool:
    """Assert that every offer removes its problem and brings no other; whether there are any."""
    problems = problems_of(config)
    faults = faults_of(config)
    kinds = {fault.kind for fault in faults}
    assert len(kinds) == len(faults) == len(problems)
    for problem, fault in zip(problems, faults, strict=True):
        assert problem.message == fault.message
        assert problem.key in config.model_fields_set
        for offer in offers(problem):
            assert offer, problem
            after = faults_of(changed(config, offer))
            assert {left.kind for left in after} <= kinds - {fault.kind}, offer
    return bool(problems)
