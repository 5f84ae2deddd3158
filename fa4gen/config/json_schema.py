"""The JSON Schema of configs, made of their models."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from fa4gen.config.layers import EXTENDS

if TYPE_CHECKING:
    from fa4gen.config.expectations import JsonSchema
    from fa4gen.strict import Strict


@functools.cache
def config_schema() -> JsonSchema:
    """Return the JSON Schema of configs as the designs' models say it: ``name`` is required there.

    The same object every time: not to be changed.
    """
    from fa4gen.designs.registry import MODELS
    from fa4gen.strict.json_schema import union_schema

    families: dict[str, list[type[Strict]]] = {}
    for model in MODELS:
        families.setdefault(model.design.family.name, []).append(model.load())
    return union_schema(families)


@functools.cache
def file_schema() -> JsonSchema:
    """Return the schema of configs with the keys that only files have; not to be changed."""
    from copy import deepcopy

    schema = deepcopy(config_schema())
    for model in models(schema):
        model["properties"][EXTENDS] = {"type": "string"}
    return schema


def models(schema: JsonSchema) -> list[JsonSchema]:
    """Return the definitions that a config without a base fits one of, family by family."""
    branches = [branch for branch in schema["oneOf"] if "oneOf" in branch]
    return [model for branch in branches for model in _models(branch, schema)]


def _models(node: JsonSchema, schema: JsonSchema) -> list[JsonSchema]:
    if "$ref" in node:
        return [schema["$defs"][node["$ref"].rpartition("/")[2]]]
    return [model for branch in node["oneOf"] for model in _models(branch, schema)]
