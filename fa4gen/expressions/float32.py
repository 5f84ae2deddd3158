"""The operations on floats of Python, each rounded to float32; infinities and NaN as C has them."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from fa4gen.expressions import exact

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_DIVISOR = 2.0**126
"""Above it the GPU's fast division gives 0 (CUDA programming guide, "Intrinsic functions")."""


LARGEST_POWER = 700.0
"""The largest exponent of e that float64 holds, about; float32 holds none near it."""


def rounded(value: float) -> float:
    """Return the nearest float32, an infinity for what is too large."""
    try:
        found: float = struct.unpack("f", struct.pack("f", float(value)))[0]
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return found


def real(value: float) -> float:
    """Return a float as it is written."""
    return rounded(value)


def __getattr__(name: str) -> Callable[..., Any]:
    """Return the function of an operation."""
    compute = _COMPUTED.get(name) or getattr(exact, name.removeprefix("real_"))

    def computed(*operands: Any) -> Any:
        try:
            value = compute(*operands)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan
        return rounded(value) if isinstance(value, float) else value

    return computed


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _number_of(choose: Callable[..., float]) -> Callable[[float, float], float]:
    """Return a choice that takes the other operand for NaN, as fminf and fmaxf do."""

    def chosen(left: float, right: float) -> float:
        numbers = [one for one in (left, right) if not math.isnan(one)]
        return choose(numbers, default=math.nan)

    return chosen


_COMPUTED: dict[str, Callable[..., float]] = {
    "real_divide": _divide,
    "real_minimum": _number_of(min),
    "real_maximum": _number_of(max),
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": lambda x: math.log(x) if x else -math.inf,
    "log2": lambda x: math.log2(x) if x else -math.inf,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > -LARGEST_POWER else 0.0,
}
