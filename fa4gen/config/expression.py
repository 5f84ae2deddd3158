"""Activations: expressions over one number x, as CUDA C++ and as NumPy.

The text is parsed by Python's own parser and only what is listed here is accepted, so that it can
be written into a kernel and computed again by the reference.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.config.expression_values import as_float32, check_constants, value_at
from fa4gen.expressions.text import tidy

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "x"
MAX_LENGTH = 200
"""Characters of an activation."""
MAX_NODES = 60
"""More operations than this an element would outweigh the product itself."""
MAX_WRITTEN = 400
"""Names and numbers in the C++ text, where some functions name their argument twice."""
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRIED = (-4096.0, -64.0, -3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.5, 7.0, 64.0, 4096.0)
"""Values of x for one of which, at least, an activation has to give a number."""


@dataclass(frozen=True)
class Expression:
    """An expression that was checked; compare by its text."""

    text: str

    def cuda(self) -> str:
        """Return C++ for it over ``float x``, by built-in functions alone: nothing is included.

        Divisions are ``__fdividef``, which is within two units of the last place and gives 0 for
        divisors above 2**126 (CUDA programming guide, "Intrinsic functions").
        """
        return _cuda(_body(self.text))

    @property
    def rounds(self) -> bool:
        """Whether its results may be other numbers than x, -x, |x| and its float32 constants."""
        return any(
            isinstance(node, ast.BinOp)
            or (isinstance(node, ast.Name) and node.id in _FUNCTIONS and node.id not in _CHOICES)
            or (isinstance(node, ast.Constant) and not _is_exact(node.value))
            for node in ast.walk(_body(self.text))
        )

    def evaluate(self, x: Any, xp: Any) -> Any:
        """Compute it on an array, in the array's type; ``xp`` is numpy or cupy."""
        import numpy as np  # not with the module: rendering does without

        with np.errstate(all="ignore"):
            return _evaluate(_body(self.text), x, xp)


def parse_expression(text: str) -> Expression:
    """Check an activation. ValueError says what is wrong with it, where, and what is possible."""
    text = tidy(text, "an activation", MAX_LENGTH)
    try:
        body = _body(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        offset = getattr(error, "offset", None)
        where = f" at character {offset}" if offset else ""
        raise ValueError(f"{text!r} is not an expression{where}; {_EXAMPLE}") from None
    if sum(isinstance(node, (ast.expr, ast.operator)) for node in ast.walk(body)) > MAX_NODES:
        raise ValueError(f"{text!r} is too long: at most {MAX_NODES} names, numbers and operations")
    _check(body, text)
    if _written(body) > MAX_WRITTEN:
        raise ValueError(
            f"{text!r} is nested too deeply: C++ names the argument of some functions twice"
        )
    if not any(isinstance(node, ast.Name) and node.id == VARIABLE for node in ast.walk(body)):
        raise ValueError(f"{text!r} does not depend on x; {_EXAMPLE}")
    check_constants(body, text)
    if not any(math.isfinite(value_at(body, x)) for x in _TRIED):
        raise ValueError(
            f"{text!r} gives no finite number for any x that was tried, from {_TRIED[0]:g} to "
            f"{_TRIED[-1]:g}"
        )
    return Expression(text)


def _refusal(node: ast.expr, message: str) -> ValueError:
    """Make the error for a part of an activation, with its place."""
    return ValueError(f"{message} (character {node.col_offset + 1})")


@dataclass(frozen=True)
class _Function:
    """One function: its arguments, C++ with {0}, {1} for them, and the same on arrays."""

    arguments: int
    cuda: str
    compute: Callable[..., Any]


def _sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def _erf(xp: Any, x: Any) -> Any:
    import numpy as np

    if xp is not np:
        from cupyx.scipy.special import erf

        return erf(x)
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=np.float64).astype(x.dtype)


_FUNCTIONS = {
    "relu": _Function(
        1, "({0} <= 0.f ? 0.f : {0})", lambda xp, x: xp.where(x <= 0, xp.zeros_like(x), x)
    ),
    "gelu": _Function(
        1,
        "(0.5f * {0} * (1.f + erff({0} * 0.70710678118654752f)))",
        lambda xp, x: 0.5 * x * (1 + _erf(xp, x * math.sqrt(0.5))),
    ),
    "silu": _Function(1, "__fdividef({0}, 1.f + expf(-{0}))", lambda xp, x: x * _sigmoid(xp, x)),
    "sigmoid": _Function(1, "__fdividef(1.f, 1.f + expf(-{0}))", _sigmoid),
    "max": _Function(2, "fmaxf({0}, {1})", lambda xp, x, y: xp.fmax(x, y)),
    "min": _Function(2, "fminf({0}, {1})", lambda xp, x, y: xp.fmin(x, y)),
    "exp": _Function(1, "expf({0})", lambda xp, x: xp.exp(x)),
    "log": _Function(1, "logf({0})", lambda xp, x: xp.log(x)),
    "tanh": _Function(1, "tanhf({0})", lambda xp, x: xp.tanh(x)),
    "erf": _Function(1, "erff({0})", _erf),
    "sqrt": _Function(1, "sqrtf({0})", lambda xp, x: xp.sqrt(x)),
    "abs": _Function(1, "fabsf({0})", lambda xp, x: xp.abs(x)),
}
_CHOICES = ("relu", "max", "min", "abs")
"""Functions whose results are one of their arguments, or its negative."""
FUNCTIONS = tuple(_FUNCTIONS)
"""Names of the functions that an activation may call."""
_EXAMPLE = "write it over x, such as max(x, 0) or gelu(x)"


def _is_exact(value: object) -> bool:
    """Whether float32 holds the constant as it is."""
    return isinstance(value, int | float) and as_float32(value) == value


def _body(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _check(node: ast.expr, text: str) -> None:
    """Raise ValueError for anything that is not listed."""
    match node:
        case ast.Name(id=name):
            if name in _FUNCTIONS:
                raise _refusal(node, f"{name} in {text!r} is a function: write {name}(x)")
            if name != VARIABLE:
                raise _refusal(node, _unknown(name, text))
        case ast.Constant(value=value):
            written = ast.get_source_segment(text, node) or repr(value)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise _refusal(node, f"{written} in {text!r} is not a number")
            if _NUMBER.fullmatch(written) is None:
                raise _refusal(node, f"{written} in {text!r} is not a decimal number")
            if not _is_float32(value):
                raise _refusal(node, f"{written} in {text!r} is not a number that float32 holds")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            _check(left, text)
            _check(right, text)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check(operand, text)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name not in _FUNCTIONS:
                raise _refusal(node, _unknown(name, text))
            wanted = _FUNCTIONS[name].arguments
            if len(args) != wanted:
                raise _refusal(
                    node,
                    f"{name} in {text!r} takes {wanted} argument{'s' * (wanted > 1)}, "
                    f"got {len(args)}",
                )
            for argument in args:
                _check(argument, text)
        case _:
            part = ast.get_source_segment(text, node) or text
            raise _refusal(
                node,
                f"{part!r} is not possible in an activation: it is made of x, numbers, + - * /, "
                f"parentheses and {', '.join(FUNCTIONS)}",
            )


def _unknown(name: str, text: str) -> str:
    from difflib import get_close_matches

    from fa4gen.config.synonyms import FUNCTION_SYNONYMS

    near = get_close_matches(name.lower(), FUNCTIONS, n=1)
    near = [FUNCTION_SYNONYMS[name]] if name in FUNCTION_SYNONYMS else near
    hint = f"did you mean {near[0]}?" if near else f"there are x, {', '.join(FUNCTIONS)}"
    return f"{name!r} in {text!r} is not known; {hint}"


def _is_float32(value: float) -> bool:
    """Whether ``value`` neither overflows float32 nor, unless it is 0, underflows to 0."""
    try:
        rounded = as_float32(value)
    except OverflowError:
        return False
    return math.isfinite(rounded) and (rounded != 0 or value == 0)


def _written(node: ast.expr) -> int:
    """Count the names and numbers in what ``_cuda`` returns, without writing it."""
    match node:
        case ast.BinOp(left=left, right=right):
            return _written(left) + _written(right)
        case ast.UnaryOp(operand=operand):
            return _written(operand)
        case ast.Call(func=ast.Name(id=name), args=args):
            places = _FUNCTIONS[name].cuda
            return sum(places.count(f"{{{i}}}") * _written(a) for i, a in enumerate(args))
    return 1


def _cuda(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return VARIABLE
        case ast.Constant(value=int() | float() as value):
            return _literal(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{_cuda(operand)})"
        case ast.UnaryOp(operand=operand):
            return _cuda(operand)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return f"__fdividef({_cuda(left)}, {_cuda(right)})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({_cuda(left)} {_OPERATORS[type(op)]} {_cuda(right)})"
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name].cuda.format(*map(_cuda, args))
    raise AssertionError(ast.dump(node))


def _literal(value: float) -> str:
    """Return the number as float32 reads it back: 0.1 -> 0.1f, 3 -> 3.f."""
    text = repr(as_float32(value) if isinstance(value, int) else value)
    return f"{text.removesuffix('0') if text.endswith('.0') else text}f"


def _evaluate(node: ast.expr, x: Any, xp: Any) -> Any:
    match node:
        case ast.Name():
            return x
        case ast.Constant(value=int() | float() as value):
            return xp.full_like(x, value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, x, xp)
        case ast.UnaryOp(operand=operand):
            return _evaluate(operand, x, xp)
        case ast.BinOp(left=left, op=op, right=right):
            first, second = _evaluate(left, x, xp), _evaluate(right, x, xp)
            match op:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return first * second
            return first / second
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name].compute(xp, *(_evaluate(a, x, xp) for a in args))
    raise AssertionError(ast.dump(node))
