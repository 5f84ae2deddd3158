"""The amplification of an error by an activation: evaluated around the point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fa4gen.epilogues.activation import Activation

CELLS = 512
PROBES = 8
"""Points of each cell at which the expression's own error is measured."""
LIBRARY_FACTOR = 8.0
"""CUDA's functions may be off by a unit or two where NumPy's are off by half a unit."""
LEAST_ERROR = 2.0**-22
"""The least error of the result: two units of float32, where NumPy happens to make none."""


@dataclass(frozen=True)
class ActivationError:
    """An activation, or none."""

    expression: Activation | None

    def apply(self, x: Any, error: Any, xp: Any) -> tuple[Any, Any, Any]:
        """Return f(x), and the interval of the kernel's result for ``x`` +- ``error``.

        The expression is evaluated at both ends and in the middle; the error of float32 is measured
        on the expression itself, since it depends on its form: 1 - exp(-x) cancels for small x, x *
        x does not.
        """
        if self.expression is None:
            return x, x - error, x + error
        exact = self._evaluate(x, xp)
        ends = [self._evaluate(x + step * error, xp) for step in (-1.0, -0.5, 0.5, 1.0)]
        lowest = highest = exact
        for end in ends:
            lowest, highest = xp.fmin(lowest, end), xp.fmax(highest, end)
        own = self._float32_error(x, xp) + LEAST_ERROR * xp.where(
            xp.isfinite(exact), xp.abs(exact), 0.0
        )
        if not self.expression.rounds:
            own = xp.where(error == 0, 0.0, own)
        return exact, lowest - own, highest + own

    def _evaluate(self, x: Any, xp: Any) -> Any:
        assert self.expression is not None
        return self.expression.evaluate(x, xp) + xp.zeros_like(x)

    def _float32_error(self, x: Any, xp: Any) -> Any:
        """Return the error of the expression in float32 around every ``x``.

        It is measured at some points of cells that cover the values evenly by their logarithm; a
        cell's error is the largest of its own and its neighbours'.
        """
        finite = xp.abs(x[xp.isfinite(x)])
        if not finite.size or not float(finite.max()):
            return xp.zeros_like(x)
        unit = max(float(finite.max()) * 2.0**-24, 2.0**-100)
        position = xp.arcsinh(xp.nan_to_num(x) / unit)
        low, high = float(position.min()), float(position.max())
        width = (high - low) / CELLS or 1.0
        probes = low + width * np.arange(0, CELLS, 1 / PROBES)
        points = (np.sinh(probes) * unit).astype(np.float32)
        found = self._evaluate(points, np).astype(np.float64)
        errors = np.abs(found - self._evaluate(points.astype(np.float64), np))
        errors = np.where(np.isfinite(errors), errors, 0.0).reshape(CELLS, PROBES).max(axis=1)
        wide = np.pad(errors, 1)
        errors = LIBRARY_FACTOR * np.maximum(np.maximum(wide[:-2], wide[2:]), errors)
        cells = xp.clip((position - low) / width, 0, CELLS - 1).astype(xp.int64)
        return xp.asarray(errors)[cells]
