"""The amplification of an error by an activation: evaluated around the point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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


STEPS = (-1.0, -0.5, 0.5, 1.0)
"""Points of an interval, from its middle in units of half its width."""
TURNS_WITHIN = 1000.0
"""Turning points are looked for up to this size of x."""
TURN_GRID = 20001


@dataclass(frozen=True)
class ActivationError:
    """An activation, or none."""

    expression: Activation | None

    def apply(self, x: Any, error: Any, xp: Any) -> tuple[Any, Any, Any]:
        """Return f(x), and the interval of the kernel's result for ``x`` +- ``error``.

        The expression is evaluated at both ends, in the middle, and where it turns in between. The
        error of float32 is measured on the expression itself, since it depends on its form: 1 -
        exp(-x) cancels for small x, x * x does not.
        """
        if self.expression is None:
            return x, x - error, x + error
        exact = self._evaluate(x, xp)
        lowest = highest = exact
        for step in STEPS:
            end = self._evaluate(x + step * error, xp)
            lowest, highest = xp.fmin(lowest, end), xp.fmax(highest, end)
        for turn, value in self._turns:
            passed = xp.abs(x - turn) <= error
            lowest = xp.where(passed, xp.fmin(lowest, value), lowest)
            highest = xp.where(passed, xp.fmax(highest, value), highest)
        own = self._float32_error(x, xp) + LEAST_ERROR * xp.where(
            xp.isfinite(exact), xp.abs(exact), 0.0
        )
        if not self.expression.rounds:
            own = xp.where(error == 0, 0.0, own)
        return exact, lowest - own, highest + own

    @cached_property
    def _turns(self) -> list[tuple[float, float]]:
        """Where the expression is higher, or lower, than on both sides, and its values there."""
        reach = np.arcsinh(TURNS_WITHIN * 1e3)
        grid = np.sinh(np.linspace(-reach, reach, TURN_GRID)) / 1e3
        with np.errstate(all="ignore"):
            values = np.broadcast_to(self._evaluate(grid, np), grid.shape)
            steps = np.sign(np.diff(values))
            at = 1 + np.flatnonzero(steps[:-1] * steps[1:] < 0)
            return [self._refined(grid[i - 1], grid[i + 1], -steps[i - 1]) for i in at]

    def _refined(self, low: float, high: float, sign: float) -> tuple[float, float]:
        """Return the lowest point of ``sign`` times the expression between two numbers."""
        for _ in range(100):
            third = (high - low) / 3
            pair = np.array([low + third, high - third])
            left, right = (sign * self._evaluate(pair, np)).tolist()
            low, high = (low, high - third) if left < right else (low + third, high)
        middle = (low + high) / 2
        return middle, float(self._evaluate(np.array([middle]), np)[0])

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
