"""C++ of what a score function or a mask reads: its parts, and accesses to declared tensors.

``score_terms`` makes the parts of an expression.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.expressions.tensors import Tensor

GIVEN = "given_"
EXTENTS = {
    "batch": "problem.batch",
    "query_heads": "problem.query_heads",
    "key_heads": "problem.query_heads / problem.heads_per_key_head",
    "rows": "problem.query_rows",
    "keys": "problem.key_rows",
}
"""The extents of a declared tensor as C++."""


@dataclass(frozen=True)
class Term:
    """A member of a tile's terms."""

    c_type: str
    name: str
    value: str
    """C++ for it, of ``problem``, ``tile`` (and ``row``) and the factor of the score function."""


@dataclass(frozen=True)
class ScoreText:
    """C++ of a score function for one score."""

    text: str
    """Replaces ``scores[i]``."""
    names: frozenset[str]
    """The names among row, query, key and column that it reads."""


@dataclass(frozen=True)
class Names:
    """The kernel's names for the places of a score."""

    head: str = "tile.head"
    key_head: str = "tile.head / problem.heads_per_key_head"
    batch: str = "tile.batch"
    extents: Mapping[str, str] = field(default_factory=lambda: EXTENTS)
    """The extents of a declared tensor as C++."""


def accessor(tensor: Tensor, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return C++ lines of the function that reads an element; ``names``: of extents."""
    c_type = "float" if tensor.dtype == "fp32" else "int32"
    numbers = range(len(tensor.shape))
    arguments = "".join(f", int32 i{number}" for number in numbers)
    name = f"{given(tensor)}_at"
    lines = [f"__device__ __forceinline__ {c_type} {name}(const Problem& problem{arguments}) {{"]
    extents = [names.get(str(extent), str(extent)) for extent in tensor.shape]
    lines += [
        f"  const int32 at{number} = max(0, min(i{number}, {extents[number]} - 1));"
        for number in numbers
    ]
    offset = "at0"
    for number in numbers[1:]:
        wide = f"static_cast<int64>({offset})" if number == 1 else f"({offset})"
        extent = extents[number] if "/" not in extents[number] else f"({extents[number]})"
        offset = f"{wide} * {extent} + at{number}"
    load = "load_unchanging_float" if c_type == "float" else "load_unchanging_int32"
    return (*lines, f"  return {load}(problem.{given(tensor)} + {offset});", "}")


def given(tensor: Tensor) -> str:
    """Return the kernel's name for the address of a declared tensor."""
    return f"{GIVEN}{tensor.name}"
