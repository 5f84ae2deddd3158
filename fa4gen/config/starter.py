"""The text of a config to begin with: what is set, and every other key with its default."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from fa4gen.config.expectations import Expectations
from fa4gen.config.json_schema import config_schema
from fa4gen.designs.registry import models_of
from fa4gen.strict.json_schema import model_schema
from fa4gen.yaml_words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDTH = 88
"""Columns of the comments."""
_INTRODUCTION = """\
# A kernel of fa4gen. `fa4gen explain {file}` shows what follows from it.
# A key with # before it has the value that it has without the line: take the # away and change it.
"""


def starter_text(data: Mapping[str, Any], file: str) -> str:
    """Return YAML of the valid config ``data``, with a comment on each key; ``file`` names it.

    Keys that ``data`` does not give follow as comments, with their defaults.
    """
    (found,) = models_of(data)
    model = found.load()
    properties = model_schema(model)["properties"]
    parts = [_INTRODUCTION.format(file=file)]
    for key, field in model.model_fields.items():
        is_given = key in data
        if key == "name" and not is_given:
            continue  # the file's stem
        comment = _comment(properties[key]["description"], _values(key, data))
        value = data[key] if is_given else field.get_default()
        parts.append(f"{comment}{'' if is_given else '#'}{key}: {_yaml(value)}\n")
    return "\n".join(parts)


def choices(key: str, data: Mapping[str, Any]) -> list[str]:
    """Return the values of ``key`` that the schema lists for configs that hold ``data``."""
    values = Expectations(config_schema(), dict(data)).values((key,))
    return list(dict.fromkeys(map(shown, values)))


def _values(key: str, data: Mapping[str, Any]) -> str:
    """Return the values of ``key`` with the other keys of ``data``, in words."""
    if key == "kernel":
        data = {}
    others = {other: value for other, value in data.items() if other != key}
    return Expectations(config_schema(), others).words((key,))


def _comment(meaning: str, values: str) -> str:
    lines = [*textwrap.wrap(meaning, WIDTH), *textwrap.wrap(f"Values: {values}.", WIDTH)]
    return "".join(f"# {line}\n" for line in lines)


def _yaml(value: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")
