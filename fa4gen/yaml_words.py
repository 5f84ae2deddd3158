"""Values in messages: as YAML writes them, and as a list in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fa4gen.yaml_scalars import meaning_of

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SHOWN = 60
"""Characters of a wrong value that a message repeats."""


def listing(words: Sequence[str], last: str = "or") -> str:
    """Return "a", "a or b", "a, b or c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def shown(value: Any) -> str:
    """Return ``value`` as it would be written in YAML, shortened when long."""
    if isinstance(value, str):
        plain = value and meaning_of(value).value == value and value == value.strip()
        text = value if plain and value.isprintable() else json.dumps(value, ensure_ascii=False)
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + "}"
    elif isinstance(value, (list, tuple)):
        text = "[" + ", ".join(shown(item) for item in value) + "]"
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
