"""Literals and constant expressions."""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.ptx.syntax import Immediate

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.tokens import Tokens

_INTEGER: Final = re.compile(r"(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|\d+)U?", re.ASCII)
_ALL: Final = (1 << 64) - 1
_SIGN: Final = {"f32": 1 << 31, "f64": 1 << 63}


@lru_cache(maxsize=4096)
def literal(token: str) -> Immediate | None:
    """Return the literal a token spells, or None; integers that start with 0 are octal."""
    head = token[:2].lower()
    if not (token[:1].isdigit() and token.isascii()):
        return None
    if head == "0f":
        return Immediate("f32", int(token[2:], 16))
    if head == "0d":
        return Immediate("f64", int(token[2:], 16))
    if _INTEGER.fullmatch(token) is None:
        bits = struct.unpack("<Q", struct.pack("<d", float(token)))[0]
        return Immediate("f64", bits)
    digits = token.removesuffix("U")
    try:
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            return Immediate("int", int(digits, 8))
        return Immediate("int", int(digits, 0))
    except ValueError:
        return None


def integer(tokens: Tokens) -> int:
    """Take a constant expression that must be an integer; it may start with a sign."""
    value = constant(tokens)
    if value.kind != "int":
        raise tokens.error("expected an integer, found a floating constant")
    return value.bits


def constant(tokens: Tokens) -> Immediate:
    """Take a constant expression: ``+ - * << >>``, signs and parentheses."""
    value = _sum(tokens)
    while (operator := tokens.peek()) in ("<<", ">>"):
        tokens.next()
        left, right = _integers(tokens, value, _sum(tokens))
        if not 0 <= right < 64:
            raise tokens.error(f"shift by {right} in a constant, expected 0 to 63")
        value = _wrapped(left << right if operator == "<<" else left >> right)
    return value


def _sum(tokens: Tokens) -> Immediate:
    value = _product(tokens)
    while (operator := tokens.peek()) in ("+", "-"):
        tokens.next()
        left, right = _integers(tokens, value, _product(tokens))
        value = _wrapped(left + right if operator == "+" else left - right)
    return value


def _product(tokens: Tokens) -> Immediate:
    value = _unary(tokens)
    while tokens.accept("*"):
        left, right = _integers(tokens, value, _unary(tokens))
        value = _wrapped(left * right)
    return value


def _unary(tokens: Tokens) -> Immediate:
    token = tokens.peek()
    if token in ("+", "-", "~", "("):
        tokens.deeper()
        tokens.next()
        value = constant(tokens) if token == "(" else _unary(tokens)
        if token == "(":
            tokens.expect(")")
        tokens.back()
        return value if token in ("+", "(") else _signed(tokens, token, value)
    number = literal(token)
    if number is None:
        raise tokens.unexpected("a constant")
    if number.kind == "int" and number.bits >> 64:
        raise tokens.error(f"the constant {token[:40]} does not fit into 64 bits")
    tokens.next()
    return number


def _signed(tokens: Tokens, sign: str, value: Immediate) -> Immediate:
    """A value after ``-`` or ``~``."""
    if sign == "~":
        return _wrapped(~_integers(tokens, value, value)[0])
    if value.kind == "int":
        return _wrapped(-value.bits)
    return Immediate(value.kind, value.bits ^ _SIGN[value.kind])


def _wrapped(value: int) -> Immediate:
    """A result in 64 bits; a larger one, signed or not, wraps to a signed one."""
    if not -(1 << 63) <= value < 1 << 64:
        value = ((value + (1 << 63)) & _ALL) - (1 << 63)
    return Immediate("int", value)


def _integers(tokens: Tokens, left: Immediate, right: Immediate) -> tuple[int, int]:
    if left.kind != "int" or right.kind != "int":
        raise tokens.error("constant expressions of floating numbers are not supported")
    return left.bits, right.bits
