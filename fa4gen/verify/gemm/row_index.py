"""Indices of gathered rows in verify: rows of A in any order, several times, or none.

Inputs are drawn with the rows of the output, as for contiguous ones, and then moved to where an
index finds them. What the index never names is NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int32]

IndexKind = Literal["mixed", "permutation", "one_row", "absent", "no_rows"]
"""mixed: rows of an A of another size, some several times, some none. permutation: each row once,
of more. one_row: the same row throughout. absent: no row of A, all NaN. no_rows: A has none."""
ABSENT_SHARE = 0.1
"""Entries of a mixed index that name no row of A."""
UNNAMED = 5
"""Rows that a permutation leaves out."""
LIMITS = np.iinfo(np.int32)


def draw_index(
    kind: IndexKind, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[int, Index]:
    """Return a number of rows of A, and an index (matrices, rows of the output)."""
    count = shape[1]
    rows = {"permutation": count + UNNAMED, "no_rows": 0}.get(kind, count // 2 + 3)
    absent = np.array([-1, rows, LIMITS.max, LIMITS.min, -rows - 1], np.int64)
    if kind == "permutation":
        every = np.broadcast_to(np.arange(rows), (shape[0], rows))
        drawn = rng.permuted(every, axis=1)[:, :count]
    elif kind == "one_row":
        drawn = np.full(shape, rng.integers(rows))
    elif kind == "mixed":
        drawn = rng.integers(rows, size=shape)
        drawn = np.where(rng.random(shape) < ABSENT_SHARE, rng.choice(absent, shape), drawn)
    else:
        drawn = rng.choice(absent, shape)
    return rows, drawn.astype(np.int32)


def moved(values: Any, rows: int, index: Index, counts: NDArray[np.bool_]) -> Any:
    """Return (matrices, rows, columns) of which the index names ``values``; NaN elsewhere.

    ``counts``: whether a row of the output does.
    """
    shape = counts.shape
    found = np.full((shape[0], rows, values.shape[-1]), np.nan, values.dtype)
    given, names = values.reshape(*shape, values.shape[-1]), np.broadcast_to(index, shape)
    for number, which in enumerate(counts & exists(names, rows)):
        found[number, names[number, which]] = given[number, which]
    return found


def taken(values: Any, index: Index) -> Any:
    """Return the rows of ``values`` that the index names, and zeros where it names none."""
    found = np.zeros((*index.shape, values.shape[-1]), values.dtype)
    for number, which in enumerate(exists(index, values.shape[1])):
        found[number, which] = values[number % len(values)][index[number, which]]
    return found


def exists(index: Index, rows: int) -> NDArray[np.bool_]:
    """Return whether entries name a row of A."""
    found: NDArray[np.bool_] = (index >= 0) & (index < rows)
    return found
