"""Operands of instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.emulator.ptx.constants import constant, integer, literal
from fa4gen.emulator.ptx.syntax import (
    Address,
    FunctionName,
    Immediate,
    NotPredicate,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)
from fa4gen.emulator.ptx.tokens import Tokens, is_word, shown

if TYPE_CHECKING:
    from collections.abc import Container

    from fa4gen.emulator.ptx.scopes import Named, Scope

_SINK = Sink()
_AFTER_OPERAND = frozenset(",;]})|")


class OperandReader:
    """Reads operands where a cursor stands; ``functions`` are the names a pointer may take."""

    def __init__(self, tokens: Tokens, functions: Container[str]) -> None:
        self._tokens = tokens
        self._functions = functions

    def read(self, scope: Scope) -> Operand:
        """One operand, pairs ``d|p`` included."""
        first = self._single(scope)
        if not self._tokens.accept("|"):
            return first
        return Pair(first, self._single(scope))

    def list_until(self, closing: str, scope: Scope) -> tuple[Operand, ...]:
        """Operands separated by commas, maybe none, and the closing token."""
        tokens = self._tokens
        if tokens.accept(closing):
            return ()
        tokens.deeper()
        items = [self.read(scope)]
        while tokens.accept(","):
            items.append(self.read(scope))
        tokens.back()
        if not tokens.accept(closing):
            raise tokens.unexpected(f"',' or {closing!r} after an operand")
        return tuple(items)

    def register(self, scope: Scope, what: str) -> Register:
        """Read an operand that must be a register."""
        found = self._named(scope)
        if not isinstance(found, Register):
            self._tokens.position -= 1
            raise self._tokens.unexpected(what)
        return found

    def _single(self, scope: Scope) -> Operand:
        tokens = self._tokens
        token = tokens.texts[tokens.position]
        found = scope.find(token)
        if found is not None:
            tokens.position += 1
            if isinstance(found, Symbol) and tokens.peek() in ("+", "-"):
                return Symbol(found.variable, integer(tokens))
            return found
        if token == "[":
            return self._address(scope)
        if token == "{":
            tokens.position += 1
            return Vector(self.list_until("}", scope))
        if token == "_":
            tokens.position += 1
            return _SINK
        if token == "!":
            tokens.position += 1
            return NotPredicate(self._predicate(scope))
        number = literal(token)
        if (
            number is not None
            and tokens.texts[tokens.position + 1] in _AFTER_OPERAND
            and (number.kind != "int" or number.bits >> 64 == 0)
        ):
            tokens.position += 1
            return number
        if number is not None or token in ("-", "+", "~", "("):
            return constant(tokens)
        if token in self._functions:
            tokens.position += 1
            return FunctionName(token)
        return self._named(scope)

    def _predicate(self, scope: Scope) -> Register:
        register = self.register(scope, "a predicate register after '!'")
        if register.cls != "p":
            raise self._tokens.error(f"{register.name} is not a predicate")
        return register

    def _address(self, scope: Scope) -> Address:
        tokens = self._tokens
        tokens.expect("[")
        base: Register | Immediate | Symbol
        offset = 0
        if literal(tokens.peek()) is not None or tokens.peek() in ("-", "("):
            base = Immediate("int", integer(tokens))
        else:
            found = self._named(scope)
            if not isinstance(found, Register | Symbol):
                tokens.position -= 1
                raise tokens.unexpected("a register, a variable or a number after '['")
            base = found
            if tokens.peek() in ("+", "-"):
                offset = integer(tokens)
        coordinates = None
        if tokens.accept(","):
            tokens.expect("{")
            coordinates = Vector(self.list_until("}", scope))
        if not tokens.accept("]"):
            raise tokens.unexpected("']' after an address")
        return Address(base, offset, coordinates)

    def _named(self, scope: Scope) -> Named:
        tokens = self._tokens
        token = tokens.peek()
        found = scope.find(token)
        if found is None:
            if token.startswith("%"):
                raise tokens.error(f"register {shown(token)} is not declared")
            if is_word(token):
                raise tokens.error(f"{shown(token)} is not declared")
            raise tokens.unexpected("an operand")
        tokens.next()
        return found
