"""From text to a checked tree. Python's own parser reads it; no Python is run.

Only what is listed here is accepted: whole numbers, indices by name, + - * // %, comparisons,
``and or not``, ``min max abs where``. Everything is of a known kind and of a known range, so that
a kernel computes it in 32 bits, and nothing is ever divided by 0.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from typing import TYPE_CHECKING

from fa4gen.expressions import exact
from fa4gen.expressions.intervals import Interval, Intervals
from fa4gen.expressions.text import tidy
from fa4gen.expressions.tree import Kind, Node, Number, Operation, Variable, evaluate, variables_in

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LENGTH = 400
"""Characters of an expression."""
MAX_NODES = 100
"""Names, numbers and operations of an expression."""
INT32 = range(-(2**31), 2**31)
_NUMBER = re.compile(r"[0-9]+")
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}
_INSTEAD: dict[type[ast.AST], str] = {
    ast.Div: "/ gives fractions; // rounds down",
    ast.BitAnd: "write and for &",
    ast.BitOr: "write or for |",
    ast.Invert: "write not for ~",
    ast.IfExp: "write where(condition, first, second)",
}
FUNCTIONS = {"min": "minimum", "max": "maximum", "abs": "absolute", "where": "where"}


@dataclass(frozen=True)
class Language:
    """What an expression is called, and which indices it may name."""

    what: str
    """With its article, such as "a mask"."""
    example: str
    variables: Mapping[str, Interval]
    """Each with the numbers from which to which it may be."""


def parse_condition(text: str, language: Language) -> tuple[str, Node]:
    """Return the text with single blanks, and the tree of a condition.

    Raises ValueError, which says what is wrong, at which character, and what is possible.
    """
    text = tidy(text, language.what, MAX_LENGTH)
    try:
        body = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        offset = getattr(error, "offset", None)
        where = f" at character {offset}" if offset else ""
        raise ValueError(
            f"{text!r} is not an expression{where}; write it like {language.example!r}"
        ) from None
    size = sum(isinstance(one, (ast.expr, ast.operator, ast.cmpop)) for one in ast.walk(body))
    if size > MAX_NODES:
        raise ValueError(f"{text!r} is too long: at most {MAX_NODES} names, numbers and operations")
    tree = _Reader(text, language).read(body)
    if tree.kind is not Kind.TRUTH:
        raise ValueError(
            f"{text!r} is {tree.kind.value}, and {language.what} is a condition; write it like "
            f"{language.example!r}"
        )
    found = evaluate(tree, language.variables, Intervals(exact))
    if not found.possible:
        raise ValueError(f"{text!r} never holds")
    return text, tree


@dataclass(frozen=True)
class _Reader:
    text: str
    language: Language

    def read(self, node: ast.expr) -> Node:
        """Return the tree of a part; ValueError for anything that is not listed."""
        match node:
            case ast.Name(id=name):
                return self._variable(node, name)
            case ast.Constant():
                return self._number(node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                name = _ARITHMETIC[type(op)]
                found = self._operation(name, left, right)
                if name in ("floor_divide", "remainder"):
                    return self._with_divisor(found, right)
                return self._ranged(node, found)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._ranged(node, self._operation("negative", operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._of_kind(operand, Kind.WHOLE)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Operation("logical_not", (self._of_kind(operand, Kind.TRUTH),))
            case ast.BoolOp(op=op, values=values):
                name = "logical_and" if isinstance(op, ast.And) else "logical_or"
                sides = [self._of_kind(one, Kind.TRUTH) for one in values]
                return reduce(lambda left, right: Operation(name, (left, right)), sides)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                return self._comparison(node, [left, *rest], ops)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(node, name, arguments)
        raise self._refusal(node, self._not_possible(node))

    def _of_kind(self, node: ast.expr, kind: Kind) -> Node:
        found = self.read(node)
        if found.kind is not kind:
            raise self._refusal(
                node, f"{self._part(node)} is {found.kind.value}, and {kind.value} is needed"
            )
        return found

    def _operation(self, name: str, *operands: ast.expr) -> Operation:
        return Operation(name, tuple(self._of_kind(one, Kind.WHOLE) for one in operands))

    def _ranged(self, node: ast.expr, found: Node) -> Node:
        """Return ``found`` if 32 bits hold it for all indices."""
        if found.kind is Kind.TRUTH:
            return found
        reach = evaluate(found, self.language.variables, Intervals(exact))
        for end in (reach.low, reach.high):
            if end not in INT32:
                raise self._refusal(
                    node, f"{self._part(node)} may reach {end}, which 32 bits do not hold"
                )
        return found

    def _with_divisor(self, found: Operation, divisor: ast.expr) -> Node:
        tree = found.arguments[1]
        value = None if variables_in(tree) else evaluate(tree, {}, exact)
        if value is None or value <= 0:
            raise self._refusal(
                divisor,
                f"{self._part(divisor)} divides, and is not a number above 0: an index cannot "
                "divide, since it may be 0"
                if value is None
                else f"{self._part(divisor)} is {value}, and a divisor is a number above 0",
            )
        return Operation(found.name, (found.arguments[0], Number(value)))

    def _comparison(self, node: ast.Compare, sides: list[ast.expr], ops: list[ast.cmpop]) -> Node:
        for op in ops:
            if type(op) not in _COMPARISONS:
                raise self._refusal(node, self._not_possible(node))
        trees = [self._of_kind(one, Kind.WHOLE) for one in sides]
        pairs: list[Node] = [
            Operation(_COMPARISONS[type(op)], (trees[i], trees[i + 1])) for i, op in enumerate(ops)
        ]
        return reduce(lambda left, right: Operation("logical_and", (left, right)), pairs)

    def _call(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Node:
        if name not in FUNCTIONS:
            raise self._refusal(node, self._unknown(name))
        count = len(arguments)
        wanted = {"abs": "1 argument", "where": "3 arguments"}.get(name, "2 arguments or more")
        fits = {"abs": count == 1, "where": count == 3}.get(name, count >= 2)
        if not fits:
            raise self._refusal(node, f"{name} takes {wanted}, got {count}")
        if name == "where":
            return self._choice(*arguments)
        trees = [self._of_kind(one, Kind.WHOLE) for one in arguments]
        if name == "abs":
            return Operation("absolute", tuple(trees))
        operation = FUNCTIONS[name]
        return reduce(lambda left, right: Operation(operation, (left, right)), trees)

    def _choice(self, condition: ast.expr, first: ast.expr, second: ast.expr) -> Node:
        """Return a choice; one of two conditions as the conditions that it means."""
        holds, one = self._of_kind(condition, Kind.TRUTH), self.read(first)
        other = self._of_kind(second, one.kind)
        if one.kind is Kind.WHOLE:
            return Operation("where", (holds, one, other))
        fails = Operation("logical_not", (holds,))
        sides = Operation("logical_and", (holds, one)), Operation("logical_and", (fails, other))
        return Operation("logical_or", sides)

    def _variable(self, node: ast.expr, name: str) -> Node:
        if name in FUNCTIONS:
            raise self._refusal(node, f"{name} is a function: write {name}(...)")
        if name not in self.language.variables:
            raise self._refusal(node, self._unknown(name))
        return Variable(name)

    def _number(self, node: ast.Constant) -> Node:
        written = self._part(node).strip("'")
        if isinstance(node.value, bool) or not isinstance(node.value, int):
            raise self._refusal(node, f"{self._part(node)} is not a whole number")
        if _NUMBER.fullmatch(written) is None:
            raise self._refusal(node, f"{self._part(node)} is not a decimal number")
        if node.value not in INT32:
            raise self._refusal(node, f"{self._part(node)} is more than 32 bits hold")
        return Number(node.value)

    def _unknown(self, name: str) -> str:
        known = [*self.language.variables, *FUNCTIONS]
        near = get_close_matches(name.lower(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        return f"{name!r} is not known; {hint}"

    def _not_possible(self, node: ast.expr) -> str:
        kinds = [type(node), type(getattr(node, "op", None))]
        instead = next((_INSTEAD[kind] for kind in kinds if kind in _INSTEAD), None)
        return f"{self._part(node)} is not possible in {self.language.what}: " + (
            instead
            or f"it is made of {', '.join(self.language.variables)}, whole numbers, + - * // %, "
            f"comparisons, and, or, not, {', '.join(FUNCTIONS)}"
        )

    def _part(self, node: ast.expr) -> str:
        return repr(ast.get_source_segment(self.text, node) or self.text)

    def _refusal(self, node: ast.expr, message: str) -> ValueError:
        return ValueError(f"{message} (character {node.col_offset + 1} of {self.text!r})")
