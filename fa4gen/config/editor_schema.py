"""The JSON Schema that editors use: what a file may hold, with the words that they show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.config.load import config_schema

if TYPE_CHECKING:
    from fa4gen.config.expectations import JsonSchema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def editor_schema() -> JsonSchema:
    """Return the schema of a config file: distinguished by ``kernel``, then by ``arch``.

    Unlike the models, a file may leave ``name`` out.
    """
    schema = _plain(config_schema())
    for model in models(schema):
        model["required"] = [key for key in model["required"] if key != "name"]
    return {
        "$schema": DRAFT,
        "title": "fa4gen config",
        "type": "object",
        "oneOf": schema["oneOf"],
        "$defs": schema["$defs"],
    }


def models(schema: JsonSchema) -> list[JsonSchema]:
    """Return the definitions that a config file fits one of, family by family."""
    return [model for branch in schema["oneOf"] for model in _models(branch, schema)]


def _models(node: JsonSchema, schema: JsonSchema) -> list[JsonSchema]:
    if "$ref" in node:
        return [schema["$defs"][node["$ref"].rpartition("/")[2]]]
    return [model for branch in node["oneOf"] for model in _models(branch, schema)]


def _plain(node: Any) -> Any:
    """Return ``node`` without the titles that repeat keys, and without markup in descriptions."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _plain(value) for key, value in node.items()}
    if isinstance(plain.get("title"), str):
        del plain["title"]
    if isinstance(plain.get("description"), str):
        plain["description"] = plain["description"].replace("``", "`")
    return plain
