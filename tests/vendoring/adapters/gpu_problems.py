"""A call of a kernel of each kind, with numbers, for adapters that run it on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tests.vendoring.adapters.calls_of_kinds import (
    GATHERED,
    GROUPED,
    LARGEST,
    MASKED,
    MERGE,
    OF_C,
    QUANTISED,
    SCATTERED,
    SUMS,
    SWIGLU,
)
from tests.vendoring.adapters.gpu_folder import (
    ALIBI,
    BF16,
    BIAS,
    BLOCKS,
    BLOCKS_IN_BYTES,
    CAUSAL,
    DECODE,
    FP8,
    LISTED,
    MAJORS,
    PAGED,
    RAGGED,
    RESIDUAL,
    SCALED,
    SCALED_PAGES,
    SMALL,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Problem(NamedTuple):
    """The arrays of a call, in the order of the C struct, and its numbers."""

    inputs: tuple[np.ndarray, ...]
    arrays: dict[str, np.ndarray]
    options: dict[str, float]
    written: np.ndarray | None = None
    """A mask over the rows of a new output, of all its matrices; None where all are written."""


def random(*shape: int, seed: int = 0, dtype: Any = BF16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def scales(*shape: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    names = ("key_descale", "value_descale")
    return {name: rng.uniform(0.25, 2, shape).astype(np.float32) for name in names}


def integers(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int32)


def attention(
    query: tuple[int, ...], key: tuple[int, ...], dtype: Any = BF16, **arrays: np.ndarray
) -> Callable[[], Problem]:
    def make() -> Problem:
        inputs = (random(*query), *(random(*key, seed=seed, dtype=dtype) for seed in (1, 2)))
        return Problem(inputs, arrays, {} if arrays else {"softmax_scale": 0.2})

    return make


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Callable[[], Problem]:
    return lambda: Problem((a, b, c), {}, {"alpha": 0.5, "beta": -2.0})


def scaled_product(*c: np.ndarray, in_bytes: bool = False) -> Callable[[], Problem]:
    """A product (300, 416) x (416, 264); scales of A lie row by row, of B as its own elements."""

    def make() -> Problem:
        rng = np.random.default_rng(11)
        a, b = random(300, 416, dtype=FP8), random(264, 416, seed=1, dtype=FP8).T
        powers = [rng.integers(120, 134, shape, dtype=np.uint8) for shape in ((300, 4), (3, 4))]
        of_a, of_b = powers if in_bytes else (np.exp2(one - 127.0).astype("f4") for one in powers)
        numbers = {"alpha": 0.5, "beta": -2.0} if c else {"alpha": 0.5}
        return Problem((a, b, *c), {"scale_a": of_a, "scale_b": of_b.T}, numbers)

    return make


def weights(groups: int, k: int, n: int, dtype: Any = BF16) -> np.ndarray:
    """B of each group, (groups, k, n) with k contiguous."""
    return random(groups, n, k, seed=1, dtype=dtype).swapaxes(1, 2)


def between(rows: int, first: int, end: int) -> np.ndarray:
    """A mask over the rows from first to end."""
    places = np.arange(rows)
    return (first <= places) & (places < end)


def grouped() -> Problem:
    """Five groups of 300 rows, two of them empty; rows before and after them are of no group."""
    arrays = {"row_offsets": integers(3, 3, 4, 140, 140, 290)}
    factors = {"alpha": 0.5}
    return Problem((random(300, 200), weights(5, 200, 264)), arrays, factors, between(300, 3, 290))


def masked() -> Problem:
    """Four groups of at most 70 rows, an empty and a full one among them, with scales."""
    rng = np.random.default_rng(11)
    counts = integers(70, 0, 17, 64)
    arrays = {
        "scale_a": rng.uniform(0.25, 2, (4, 70, 4)).astype(np.float32),
        "scale_b": rng.uniform(0.25, 2, (4, 3, 4)).astype(np.float32).swapaxes(1, 2),
        "row_counts": counts,
    }
    inputs = random(4, 70, 416, dtype=FP8), weights(4, 416, 264, FP8)
    return Problem(inputs, arrays, {"alpha": 0.5}, np.arange(70) < counts[:, None])


def gathered() -> Problem:
    """Rows of 90 by an index of 300: many of them named several times, some -1, some too large."""
    index = np.random.default_rng(5).integers(-9, 99, 300, dtype=np.int32)
    arrays = {"row_offsets": integers(0, 0, 1, 130, 130, 300), "row_index": np.maximum(index, -1)}
    return Problem((random(90, 200), weights(5, 200, 264)), arrays, {"alpha": 0.5})


def scattered() -> Problem:
    """Rows that go to places of an output of 340 rows, of which some are stored nowhere."""
    rng = np.random.default_rng(5)
    places = rng.permutation(340)[:300].astype(np.int32)
    places[rng.permutation(300)[:40]] = -1
    places[7] = 340
    arrays = {
        "row_offsets": integers(0, 0, 1, 130, 130, 300),
        "out_index": places,
        "row_weights": rng.uniform(-1, 1, 300).astype(np.float32),
        "out": random(340, 264, seed=3),
    }
    return Problem((random(300, 200), weights(5, 200, 264)), arrays, {"alpha": 0.5})


def largest() -> Problem:
    arrays = {"out_amax": np.zeros(1, np.float32)}
    return Problem((random(300, 200), random(264, 200, seed=1).T), arrays, {"alpha": 0.5})


def quantised() -> Problem:
    """The output has 256 columns, of which each half of a row has a scale."""
    rng = np.random.default_rng(11)
    shapes = {"scale_a": (300, 4), "scale_b": (4, 4)}
    arrays = {key: rng.uniform(0.25, 2, one).astype(np.float32) for key, one in shapes.items()}
    inputs = random(300, 416, dtype=FP8), random(512, 416, seed=1, dtype=FP8).T
    return Problem(inputs, arrays, {"alpha": 0.5})


def sums() -> Problem:
    """Four sums over 300 of k, of which two are over nothing, added to matrices of float32."""
    inputs = random(300, 72).T, random(300, 104, seed=1), random(4, 72, 104, dtype=np.float32)
    arrays = {"row_offsets": integers(3, 3, 140, 140, 290)}
    return Problem(inputs, arrays, {"alpha": 0.5, "beta": -2.0})


def merged() -> Problem:
    """Five parts of two sequences, some of them empty for a row, and all of them for some."""
    rng = np.random.default_rng(5)
    parts = random(5, 2, 70, 3, 128)
    part_lse = 3 * rng.standard_normal((5, 2, 3, 70)).astype(np.float32)
    part_lse[rng.random(part_lse.shape) < 0.3] = -np.inf
    part_lse[:, 1, 2, 60:] = -np.inf
    parts[np.isneginf(part_lse).swapaxes(2, 3)] = np.nan
    return Problem((parts, part_lse), {}, {})


TABLE = integers([4, 0, 2, 9, 10], [1, 1, 1, 1, 1], [7, 3, 0, 0, 0])
LENGTHS = integers(300, 64, 100)
DOCUMENT = np.cumsum(np.random.default_rng(3).random((2, 700)) < 0.02, axis=1).astype(np.int32)
CASES: dict[str, Callable[[], Problem]] = {
    CAUSAL: attention((2, 1000, 8, 128), (2, 1200, 2, 128)),
    SMALL: attention((2, 500, 4, 64), (2, 300, 4, 64)),
    RESIDUAL: product(random(300, 200), random(264, 200, seed=1).T, random(300, 264, seed=2)),
    BIAS: product(random(300, 200), random(264, 200, seed=1).T, random(264, seed=2)),
    MAJORS: product(
        random(200, 304).T, random(200, 264, seed=1), random(304, 264, dtype=np.float32)
    ),
    RAGGED: attention(
        (700, 8, 128),
        (900, 2, 128),
        query_offsets=integers(0, 1, 301, 301, 700),
        key_offsets=integers(0, 5, 400, 600, 900),
    ),
    PAGED: attention(
        (30, 8, 64),
        (11, 64, 2, 64),
        sinks=random(8, seed=3, dtype=np.float32),
        query_offsets=integers(0, 10, 11, 30),
        key_lengths=LENGTHS,
        page_table=TABLE,
    ),
    DECODE: attention((3, 1, 16, 128), (3, 4900, 2, 128)),
    ALIBI: attention((2, 300, 8, 128), (2, 290, 2, 128), slope=random(8, seed=3, dtype=np.float32)),
    LISTED: attention((2, 700, 8, 128), (2, 700, 2, 128), document=DOCUMENT),
    SCALED: attention((3, 1, 16, 128), (3, 4900, 2, 128), FP8, **scales(3, 2)),
    SCALED_PAGES: attention(
        (3, 1, 16, 128),
        (11, 64, 2, 128),
        FP8,
        **scales(11, 2),
        key_lengths=LENGTHS,
        page_table=TABLE,
    ),
    BLOCKS: scaled_product(),
    BLOCKS_IN_BYTES: scaled_product(random(300, 264, seed=2), in_bytes=True),
    GROUPED: grouped,
    MASKED: masked,
    GATHERED: gathered,
    SCATTERED: scattered,
    LARGEST: largest,
    QUANTISED: quantised,
    OF_C: product(random(300, 200), random(304, 200, seed=1).T, random(304, seed=2)),
    SUMS: sums,
    MERGE: merged,
    SWIGLU: lambda: Problem((random(300, 200), random(272, 200, seed=1).T), {}, {"alpha": 0.5}),
}

OTHER_GROUPS = {
    GROUPED: {"row_offsets": integers(0, 100, 100, 101, 300, 300)},
    MASKED: {"row_counts": integers(70, 70, 70, 70)},
    GATHERED: {"row_offsets": integers(0, 100, 100, 101, 300, 300)},
    SCATTERED: {"row_offsets": integers(0, 100, 100, 101, 300, 300)},
    SUMS: {"row_offsets": integers(0, 0, 300, 300, 300)},
}
"""Rows of groups for other calls of these problems, in which all rows of a new output are
written."""
