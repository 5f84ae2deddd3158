"""The JSON Schema that editors use: what a file may hold, with the words that they show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.config.load import config_schema

if TYPE_CHECKING:
    from fa4gen.config.expectations import JsonSchema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def editor_schema() -> JsonSchema:
    """Return the schema of a config file: one of the families, told apart by ``arch``.

    Unlike the models, a file may leave ``name`` out.
    """
    schema = _plain(config_schema())
    for family in families(schema):
        family["required"] = [key for key in family["required"] if key != "name"]
    return {
        "$schema": DRAFT,
        "title": "fa4gen config",
        "type": "object",
        "oneOf": schema["oneOf"],
        "$defs": schema["$defs"],
    }


def families(schema: JsonSchema) -> list[JsonSchema]:
    """Return the definitions that a config file fits one of."""
    names = [branch["$ref"].rpartition("/")[2] for branch in schema["oneOf"]]
    return [schema["$defs"][name] for name in names]


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
