"""The JSON Schema that editors use: what a file may hold, with the words that they show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fa4gen.config.json_schema import config_schema, models
from fa4gen.config.layers import EXTENDS

if TYPE_CHECKING:
    from fa4gen.config.expectations import JsonSchema

__all__ = ["editor_schema", "models"]

EXTENDING = "ExtendingConfig"
_EXTENDS_MEANING = (
    "The config that gives the other keys: a path relative to this file, or a shipped name."
)
DRAFT = "https://json-schema.org/draft/2020-12/schema"


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
