"""The JSON Schema of configs, made of their models: for checks, and for editors."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from fa4gen.config.layers import EXTENDS

if TYPE_CHECKING:
    from fa4gen.config.expectations import JsonSchema
    from fa4gen.strict import Strict


EXTENDING = "ExtendingConfig"
_EXTENDS_MEANING = (
    "The config that gives the other keys: a path relative to this file, or a shipped name."
)
DRAFT = "https://json-schema.org/draft/2020-12/schema"


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


def editor_schema() -> JsonSchema:
    """Return the schema of a config file: distinguished by ``kernel``, then by ``arch``.

    Unlike the models, a file may leave ``name`` out.
    """
    # a copy, without markup in descriptions
    schema = json.loads(json.dumps(config_schema()).replace("``", "`"))
    for model in models(schema):
        model["required"] = [key for key in model["required"] if key != "name"]
    return {
        "$schema": DRAFT,
        "title": "fa4gen config",
        "type": "object",
        "oneOf": [*schema["oneOf"], {"$ref": f"#/$defs/{EXTENDING}"}],
        "$defs": {**schema["$defs"], EXTENDING: _extending(schema)},
    }


def models_schema(title: str, *kinds: type[Strict]) -> JsonSchema:
    """Return the schema, for editors, of files that hold one of the models ``kinds``."""
    from fa4gen.strict.json_schema import model_schema, union_schema

    schema = model_schema(kinds[0]) if len(kinds) == 1 else union_schema({title: kinds})
    schema = json.loads(json.dumps(schema).replace("``", "`"))
    return {"$schema": DRAFT, "title": title, **schema}


def _extending(schema: JsonSchema) -> JsonSchema:
    """Return the schema of a file with a base: a key of any model, with a value of one of them."""
    alternatives: dict[str, list[JsonSchema]] = {}
    for name in (name for name, node in schema["$defs"].items() if node in models(schema)):
        for key in schema["$defs"][name]["properties"]:
            reference = {"$ref": f"#/$defs/{name}/properties/{key}"}
            alternatives.setdefault(key, []).append(reference)
    return {
        "type": "object",
        "description": "A config that gives only what differs from its base.",
        "properties": {
            EXTENDS: {"type": "string", "minLength": 1, "description": _EXTENDS_MEANING},
            **{key: {"anyOf": nodes} for key, nodes in alternatives.items()},
        },
        "required": [EXTENDS],
        "additionalProperties": False,
    }
