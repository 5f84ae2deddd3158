"""The combinations of values of a sweep: the rules of a GitHub Actions matrix.

* Every value of every matrix key with every other, the last key changing fastest.
* ``exclude`` drops the combinations that hold all values of one of its entries.
* An ``include`` entry adds its values to every combination whose matrix values it does not change;
  where it would change them everywhere, it is a combination of its own. It may replace values that
  earlier entries added.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.config.yaml_positions import KeyPath


@dataclass(frozen=True)
class Combination:
    """One choice of values for the keys that vary."""

    values: Mapping[str, Any]
    sources: Mapping[str, KeyPath]
    """Path of each value in the sweep file: ("matrix", "depth", 2)."""
    origin: KeyPath
    """("matrix",), or ("include", 3) for a combination of that entry's own."""


def product(matrix: Mapping[str, Sequence[Any]]) -> list[Combination]:
    """Return every value with every other; nothing for an empty matrix."""
    if not matrix:
        return []
    columns = [[(key, index) for index in range(len(values))] for key, values in matrix.items()]
    return [
        Combination(
            {key: matrix[key][index] for key, index in chosen},
            {key: ("matrix", key, index) for key, index in chosen},
            ("matrix",),
        )
        for chosen in itertools.product(*columns)
    ]


def matches(values: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether ``values`` holds everything that ``entry`` says."""
    return all(key in values and same(values[key], value) for key, value in entry.items())


def include(
    combinations: Sequence[Combination],
    matrix_keys: Iterable[str],
    entries: Sequence[Mapping[str, Any]],
) -> list[Combination]:
    """Return ``combinations`` with the include entries worked in, in their order."""
    keys = set(matrix_keys)
    result = list(combinations)
    own: list[Combination] = []
    for index, entry in enumerate(entries):
        sources: dict[str, KeyPath] = {key: ("include", index, key) for key in entry}
        on_matrix = {key: value for key, value in entry.items() if key in keys}
        fitting = [i for i, c in enumerate(result) if matches(c.values, on_matrix)]
        for i in fitting:
            old = result[i]
            added = {key: value for key, value in entry.items() if key not in keys}
            result[i] = Combination(
                {**old.values, **added},
                {**old.sources, **{key: sources[key] for key in added}},
                old.origin,
            )
        if not fitting:
            own.append(Combination(dict(entry), sources, ("include", index)))
    return result + own


def same(one: Any, other: Any) -> bool:
    """Whether two values of a YAML file are the same: 8 and 8.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
