"""Gated activations in verify: the numbers that a kernel may make of gate and up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.epilogues.gate import halves
from fa4gen.expressions.float_intervals import Ends, FloatIntervals
from fa4gen.expressions.tree import evaluate

if TYPE_CHECKING:
    from fa4gen.epilogues.activation import Activation
    from fa4gen.epilogues.gate import GateLayout


@dataclass(frozen=True)
class GatedError:
    """A gated activation, and the order of its columns."""

    expression: Activation
    layout: GateLayout

    def apply(self, x: Any, error: Any, xp: Any) -> tuple[Any, Any, Any]:
        """Return f(gate, up) of columns ``x``, and the interval of the kernel's for x +- ``error``.

        The expression is computed once more with an interval for every number of it, which float32
        and the GPU's functions widen.
        """
        gate, up = halves(self.layout, x)
        exact = self.expression.evaluate_gated(gate, up, xp) + xp.zeros_like(gate)
        ends = (halves(self.layout, x - error), halves(self.layout, x + error))
        values = {
            name: Ends(low, high)
            for name, low, high in zip(self.expression.variables, *ends, strict=True)
        }
        found = evaluate(self.expression.tree, values, FloatIntervals(xp))
        return exact, xp.fmin(found.low, exact), xp.fmax(found.high, exact)
