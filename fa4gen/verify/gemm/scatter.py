"""Scattered rows of the output in verify: an index that names most of them once, and weights.

Rows of the output that the index never names must stay as they are. Rows of the product that are
not written count as zeros in the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.cases import COUNTING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fa4gen.verify.gemm.groups import Groups

ABSENT_SHARE = 0.1
"""Entries of an index that name no row of the output."""
UNNAMED = 4
"""Rows of the output in addition to those of the product."""
LIMITS = np.iinfo(np.int32)


@dataclass(frozen=True, eq=False)
class Scatter:
    """Where the rows of a product go, and their factors."""

    rows: int
    """Rows of the output."""
    index: NDArray[np.int32]
    weights: NDArray[np.float32]
    counted: NDArray[np.int64]
    """The rows of the product that are in groups: those of the result, in its order."""

    @property
    def places(self) -> NDArray[np.int64]:
        """The row of the output of each row of the result; -1 for one that is not written."""
        named = self.index[self.counted].astype(np.int64)
        return np.where((named >= 0) & (named < self.rows), named, -1)

    @property
    def unnamed(self) -> NDArray[np.bool_]:
        """A mask (1, rows) of the rows of the output that are not written."""
        mask = np.ones((1, self.rows), np.bool_)
        mask[0, self.places[self.places >= 0]] = False
        return mask

    def factors(self, at: slice, xp: Any) -> tuple[Any, Any]:
        """Return the weights of rows of the result, (rows, 1), and whether they are written."""
        weights = xp.asarray(self.weights[self.counted][at, None])
        return weights, xp.asarray(self.places[at, None] >= 0)

    def gathered(self, out: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of the result, (rows, columns), from an output's."""
        places = self.places
        found = np.zeros((len(places), out.shape[-1]), out.dtype)
        found[places >= 0] = out[places[places >= 0]]
        return found


def draw_scatter(groups: Groups, data: str, rng: np.random.Generator) -> Scatter:
    """Draw an index and weights, which are powers of two for data that count; NaN in no group."""
    rows = groups.rows + UNNAMED
    index = rng.permutation(rows)[: groups.rows]
    absent = rng.choice(np.array([-1, rows, LIMITS.max, LIMITS.min, -rows - 1]), groups.rows)
    is_absent = rng.random(groups.rows) < ABSENT_SHARE
    index = np.where(is_absent, absent, index)
    weights = rng.standard_normal(groups.rows, np.float32)
    if data == COUNTING:
        weights = np.copysign(np.exp2(rng.integers(-1, 2, groups.rows)), weights)
    none = groups.rows_of_none()[0]
    weights = np.where(none, np.nan, weights).astype(np.float32)
    counted = [np.arange(part.first, part.first + part.rows) for part in groups.parts()]
    return Scatter(
        rows, index.astype(np.int32), weights, np.concatenate([np.zeros(0, np.int64), *counted])
    )
