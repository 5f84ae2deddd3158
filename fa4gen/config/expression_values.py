"""The value of a checked expression at one x, as float32 has it, and constants that have none."""

from __future__ import annotations

import ast
import math
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST_DIVISOR = 2.0**126
"""Above it the GPU's fast division gives 0 (CUDA programming guide, "Intrinsic functions")."""


def as_float32(value: float) -> float:
    """Round to float32; OverflowError for what is too large."""
    rounded: float = struct.unpack("f", struct.pack("f", float(value)))[0]
    return rounded


def value_at(node: ast.expr, x: float) -> float:
    """Compute an expression at ``x``, every operation rounded to float32; inf and NaN as C has."""
    match node:
        case ast.Name():
            return _rounded(x)
        case ast.Constant(value=int() | float() as value):
            return _rounded(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_at(operand, x)
        case ast.UnaryOp(operand=operand):
            return value_at(operand, x)
        case ast.BinOp(left=left, op=op, right=right):
            return _rounded(_operate(op, value_at(left, x), value_at(right, x)))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _rounded(_call(name, [value_at(argument, x) for argument in args]))
    raise AssertionError(ast.dump(node))


def check_constants(node: ast.expr, text: str) -> None:
    """Refuse constants that float32 does not hold, and divisions by 0, with their place.

    Raises ValueError.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
            check_constants(child, text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not _depends(node.right):
        divisor = value_at(node.right, 0.0)
        if divisor == 0:
            raise _refusal(node.right, text, "is 0, and nothing can be divided by it")
        if abs(divisor) > _LARGEST_DIVISOR:
            raise _refusal(
                node.right, text, "is above 2**126, where the GPU's division gives 0: multiply"
            )
    if _depends(node) or not isinstance(node, (ast.BinOp, ast.Call)):
        return
    value = value_at(node, 0.0)
    if not math.isfinite(value):
        raise _refusal(node, text, f"is {value}, which is not a finite number of float32")
    if value == 0 and isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        factors = [node.left] if isinstance(node.op, ast.Div) else [node.left, node.right]
        if all(value_at(one, 0.0) for one in factors):
            raise _refusal(node, text, "is too small for float32, which makes it 0")


def _refusal(node: ast.expr, text: str, what: str) -> ValueError:
    part = ast.get_source_segment(text, node) or text
    return ValueError(f"{part!r} in {text!r} {what} (character {node.col_offset + 1})")


def _depends(node: ast.expr) -> bool:
    """Whether an expression has x in it, which is its one name that is not called."""
    called = {id(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
    return any(isinstance(one, ast.Name) and id(one) not in called for one in ast.walk(node))


def _rounded(value: float) -> float:
    try:
        return as_float32(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _operate(op: ast.operator, left: float, right: float) -> float:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _call(name: str, arguments: list[float]) -> float:
    if name in ("max", "min"):
        numbers = [one for one in arguments if not math.isnan(one)]
        return (max if name == "max" else min)(numbers, default=math.nan)
    [x] = arguments
    return _FUNCTIONS[name](x)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exp(-x))


def _log(x: float) -> float:
    if not x:
        return -math.inf
    return math.nan if x < 0 else math.log(x)


_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: 0.0 if x <= 0 else x,
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x * math.sqrt(0.5))),
    "silu": lambda x: x * _sigmoid(x),
    "sigmoid": _sigmoid,
    "exp": _exp,
    "log": _log,
    "tanh": math.tanh,
    "erf": math.erf,
    "sqrt": lambda x: math.nan if x < 0 else math.sqrt(x),
    "abs": abs,
}
