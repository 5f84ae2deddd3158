"""The allowed values of a key, in words, and the one nearest to a wrong value.

Both are read off the JSON Schema of the config models, so that they cannot drift from what is
really accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.counts import counted
from fa4gen.designs.registry import DECIDING_IN_ARCH, narrowed
from fa4gen.yaml_scalars import meaning_of
from fa4gen.yaml_words import listing, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.config.yaml_positions import KeyPath

JsonSchema = dict[str, Any]

MOST_LISTED = 8
"""The most allowed numbers that are listed one by one; more are given as a range."""
SIMILARITY = 0.5
"""The likeness (difflib's ratio) from which on one word is suggested for another."""

_UNDECIDED = object()
"""The value of a deciding key that no model has: without the key its usual value decides."""
_LARGEST = 2**1000
"""Whole numbers beyond have no float to measure the distance with."""
_PATTERNS = {
    r"^[a-z][a-z0-9_]*$": "a name of lower-case letters, digits and _ that begins with a letter",
    r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$": "letters, digits, _, - and dots, the first no dot or -",
    r"[^A-Za-z0-9_]": "a condition such as 'key <= query'",
    r"^[a-z](?:_?[a-z0-9])*$": "lower-case letters, digits and single _ that begin a C name",
}


class Expectations:
    """Answers what the schema allows at a place of ``data``, the document being judged."""

    def __init__(self, schema: JsonSchema, data: Any) -> None:
        self._definitions: dict[str, JsonSchema] = schema.get("$defs", {})
        self._schema = schema
        self._data = data

    def keys(self, path: KeyPath) -> list[str]:
        """Return the keys that the mapping at ``path`` may have."""
        names: dict[str, None] = {}
        for branch in self._branches(path):
            names.update(dict.fromkeys(branch.get("properties", ())))
        return list(names)

    def words(self, path: KeyPath) -> str:
        """Return the values allowed at ``path``: "64, 128, 192 or auto"."""
        words = [word for branch in self._branches(path) for word in _alternatives_in_words(branch)]
        return listing(list(dict.fromkeys(words)))

    def example(self, path: KeyPath) -> str:
        """Return the one value allowed at ``path``, or "" where there is a choice."""
        values = self.values(path)
        return shown(values[0]) if len(values) == 1 and len(self._branches(path)) == 1 else ""

    def reason(self, path: KeyPath) -> str:
        """Return why one value is allowed at ``path``, or "" where there is a choice."""
        described = self._branches(path)[0].get("description", "") if self.example(path) else ""
        return f" {described}" if described else ""

    def values(self, path: KeyPath) -> list[Any]:
        """Return the values at ``path`` that can be listed one by one."""
        return [value for branch in self._branches(path) for value in _listed_values(branch)]

    def nearest(self, path: KeyPath, value: Any) -> list[Any]:
        """Return the allowed values nearest to ``value``; two when they are equally near."""
        branches = self._branches(path)
        if isinstance(value, str):
            words = [word for word in self.values(path) if isinstance(word, str)]
            # With a single allowed word there is nothing to suggest.
            return [] if len(words) < 2 and len(branches) < 2 else similar(value, words)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = min(max(value, -_LARGEST), _LARGEST)
            numbers = [number for branch in branches for number in _near_numbers(branch, value)]
            if not numbers:
                return []
            distance = min(abs(number - value) for number in numbers)
            return sorted({n for n in numbers if abs(n - value) == distance})
        return []

    def unquoted(self, path: KeyPath, value: Any) -> Any:
        """Return the number or truth value that the text ``value`` would be without quotes.

        None where that would not be allowed at ``path`` either.
        """
        if not isinstance(value, str):
            return None
        meaning = meaning_of(value.strip())
        if meaning.refusal or meaning.value is None or isinstance(meaning.value, str):
            return None
        allowed = any(_accepts(branch, meaning.value) for branch in self._branches(path))
        return meaning.value if allowed else None

    def accepted(self, path: KeyPath, value: Any) -> Any:
        """Return ``value`` where it is allowed at ``path``, or the one word that it begins.

        None for neither, and for anything but a word, number or truth value.
        """
        if isinstance(value, (int, float)):
            return value if any(_accepts(b, value) for b in self._branches(path)) else None
        if not isinstance(value, str):
            return None
        words = {word for word in self.values(path) if isinstance(word, str)}
        return value if value in words else _completed(value, words)

    def _branches(self, path: KeyPath) -> list[JsonSchema]:
        """Return the alternatives at ``path``, references and unions resolved, each once."""
        branches = self._alternatives(self._schema, self._deciding(path))
        value = self._data
        for part in path:
            value = _child(value, part)
            inner = [
                branch.get("items")
                if isinstance(part, int)
                else branch.get("properties", {}).get(part, branch.get("additionalProperties"))
                for branch in branches
            ]
            leaves = [leaf for node in inner if node for leaf in self._alternatives(node, value)]
            branches = [leaf for i, leaf in enumerate(leaves) if leaf not in leaves[:i]]
        return branches

    def _deciding(self, path: KeyPath) -> Any:
        """Return the data by which to tell what is allowed at ``path``, whatever is there."""
        if not path or path[0] not in DECIDING_IN_ARCH or not isinstance(self._data, dict):
            return self._data
        return {**self._data, path[0]: _UNDECIDED}

    def _alternatives(self, node: JsonSchema, value: Any) -> list[JsonSchema]:
        if "$ref" in node:
            return self._alternatives(self._definitions[node["$ref"].rpartition("/")[2]], value)
        union = node.get("anyOf") or node.get("oneOf")
        if not union:
            return [node]
        leaves = [leaf for branch in union for leaf in self._alternatives(branch, value)]
        if not isinstance(value, dict):
            return leaves
        # Some keys choose the model: keep to what was written.
        named = [leaf for leaf in leaves if leaf.get("required", ("",))[0] in value]
        return list(narrowed(named or leaves, value, _values_of))


def similar(word: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidate most like ``word``, letter case aside, as a list of one or none.

    The only candidate that begins with ``word`` comes before those that are as long.
    """
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    folded = word.casefold()[:200]
    longer = _completed(folded, by_folded)
    if longer is not None and folded not in by_folded:
        return [by_folded[longer]]
    from difflib import get_close_matches

    near = get_close_matches(folded, by_folded, n=1, cutoff=SIMILARITY)
    return [by_folded[match] for match in near]


def _child(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None


def _completed(start: str, words: Iterable[str]) -> str | None:
    """Return the only word that begins with ``start``, which must be longer than one letter."""
    longer = [word for word in words if word.startswith(start)] if len(start) > 1 else []
    return longer[0] if len(longer) == 1 else None


def _values_of(branch: JsonSchema, key: str) -> list[Any] | None:
    """Return the values that ``branch`` lists for ``key``, if it has the key."""
    node = branch.get("properties", {}).get(key)
    return None if node is None else _listed_values(node)


def _listed_values(branch: JsonSchema) -> list[Any]:
    """Return every value that ``branch`` allows, or [] when they are many."""
    if "const" in branch:
        return [branch["const"]]
    if "enum" in branch:
        return list(branch["enum"])
    if branch.get("type") == "integer" and {"minimum", "maximum"} <= branch.keys():
        numbers = _integers(branch)
        if not numbers[MOST_LISTED:]:
            return list(numbers)
    return []


def _integers(branch: JsonSchema) -> range:
    step = branch.get("multipleOf", 1)
    first = -(-branch["minimum"] // step) * step
    return range(first, branch["maximum"] + 1, step)


def _alternatives_in_words(branch: JsonSchema) -> list[str]:
    """Return the values that ``branch`` allows, without commas in any part."""
    values = _listed_values(branch)
    if values:
        return [shown(value) for value in values]
    kind = branch.get("type")
    if kind in ("integer", "number"):
        return [_number_words(branch)]
    if kind == "boolean":
        return ["true", "false"]
    if kind == "null":
        return ["null"]
    if kind == "object" and isinstance(branch.get("additionalProperties"), dict):
        return ["a mapping"]
    if kind == "object":
        required = branch.get("required") or list(branch.get("properties", ()))
        return ["{" + ", ".join(f"{key}: ..." for key in required) + "}"]
    if kind == "array":
        return [_list_words(branch.get("minItems"), branch.get("maxItems"))]
    text = _PATTERNS.get(branch.get("pattern", ""), "text")
    if text == "text" and "pattern" in branch:
        text += f" that matches {branch['pattern']}"
    return [f"{text} ({branch['maxLength']} characters at most)" if "maxLength" in branch else text]


def _list_words(least: int | None, most: int | None) -> str:
    if least is not None and least == most:
        return f"a list of {least} entries"
    if least is not None and most is not None:
        return f"a list of {least} to {most} entries"
    if most is not None:
        return f"a list of at most {most} entries"
    return "a list" if least is None else f"a list of at least {counted(least, 'entry')}"


def _number_words(branch: JsonSchema) -> str:
    text = "a whole number" if branch["type"] == "integer" else "a number"
    if "multipleOf" in branch:
        text = f"a multiple of {branch['multipleOf']}"
    low, high = branch.get("minimum"), branch.get("maximum")
    if low is not None and high is not None:
        text += f" from {low} to {high}"
    elif low is not None:
        text += f" of at least {low}"
    elif high is not None:
        text += f" of at most {high}"
    return text


def _near_numbers(branch: JsonSchema, value: float) -> list[float]:
    """Return the numbers allowed by ``branch`` that can be nearest to ``value``."""
    listed = _listed_values(branch)
    if listed:
        return [n for n in listed if isinstance(n, (int, float)) and not isinstance(n, bool)]
    if branch.get("type") not in ("integer", "number") or value != value:
        return []
    low, high = branch.get("minimum"), branch.get("maximum")
    near = value
    if low is not None:
        near = max(near, low)
    if high is not None:
        near = min(near, high)
    if branch["type"] == "number":
        return [near] if _accepts(branch, near) else []
    step = branch.get("multipleOf", 1)
    below = near // step * step
    around = [int(n) for n in (below, below + step) if abs(n) != float("inf")]
    return [n for n in around if _accepts(branch, n)]


def _accepts(branch: JsonSchema, value: Any) -> bool:
    """Whether ``branch`` allows the number or truth value ``value``."""
    listed = _listed_values(branch)
    if listed:
        return any(type(item) is type(value) and item == value for item in listed)
    kind = branch.get("type")
    if isinstance(value, bool):
        return kind == "boolean"
    if kind not in ("integer", "number") or (kind == "integer" and not isinstance(value, int)):
        return False
    return branch.get("minimum", value) <= value <= branch.get("maximum", value) and (
        "multipleOf" not in branch or value % branch["multipleOf"] == 0
    )
