"""From text to a checked tree. Python's own parser reads it; no Python is run.

Only what is listed here is accepted: whole numbers, indices by name, elements of declared tensors,
+ - * // %, comparisons, ``and or not``, ``min max abs where bit``; and with floats those,
``/``, ``exp2 log2 tanh``. Everything is of a known kind and of a known range, so that a kernel
computes it in 32 bits, nothing is ever divided by 0, and no result is NaN or infinite. In a
language of floats alone only constants are known: none of them is infinite, NaN or a divisor of 0.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from fa4gen.expressions import exact
from fa4gen.expressions.constants import (
    fault_of_constant,
    fault_of_divisor,
    fault_of_number,
)
from fa4gen.expressions.real_intervals import Range
from fa4gen.expressions.reals import (
    LARGEST,
    SMALLEST,
    as_real,
    compares_reals,
    joined,
    of_reals,
    with_constant,
)
from fa4gen.expressions.text import tidy
from fa4gen.expressions.tree import (
    Element,
    Kind,
    Node,
    Number,
    Operation,
    Real,
    Variable,
    evaluate,
    substituted,
    variables_in,
    written,
)
from fa4gen.expressions.words import FUNCTIONS, MAX_LENGTH, SYNONYMS, ExpressionError

if TYPE_CHECKING:
    from fa4gen.expressions.language import Language

MAX_NODES = 100
"""Names, numbers and operations of an expression."""
MAX_WRITTEN = 400
"""Names and numbers of an expression with macros, which name their argument more than once."""
INT32 = range(-(2**31), 2**31)
_NUMBER = re.compile(r"[0-9]+")
_FLOAT = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")
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
_NESTED = "is nested too deeply: C++ names the argument of some functions twice"
_INSTEAD: dict[type[ast.AST], str] = {
    ast.Div: "/ gives fractions; // rounds down",
    ast.BitAnd: "write and for &",
    ast.BitOr: "write or for |",
    ast.Invert: "write not for ~",
    ast.IfExp: "write where(condition, first, second)",
}


def parse_condition(text: str, language: Language) -> tuple[str, Node]:
    """Return the text with single blanks, and the tree of a condition; see ``parse``."""
    text, tree = parse(text, language)
    if not language.reach(tree).possible:
        raise ExpressionError(f"{text!r} never holds")
    return text, tree


def parse(text: str, language: Language) -> tuple[str, Node]:
    """Return the text with single blanks, and its tree.

    Raises ExpressionError, which says what is wrong, at which character, and what is possible.
    """
    text = tidy(text, language.what, MAX_LENGTH)
    try:
        body = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        offset = getattr(error, "offset", None)
        where = f" at character {offset}" if offset else ""
        raise ExpressionError(
            f"{text!r} is not an expression{where}; write it like {language.example!r}",
            offset or None,
        ) from None
    size = sum(isinstance(one, (ast.expr, ast.operator, ast.cmpop)) for one in ast.walk(body))
    if size > MAX_NODES:
        raise ExpressionError(
            f"{text!r} is too long: at most {MAX_NODES} names, numbers and operations"
        )
    tree = _Reader(text, language).read(body)
    if written(tree) > MAX_WRITTEN:
        raise ExpressionError(f"{text!r} {_NESTED}")
    if language.has_floats and tree.kind is Kind.WHOLE:
        tree = as_real(tree)
    if tree.kind is not language.result:
        raise ExpressionError(
            f"{text!r} is {tree.kind.value}, and {language.what} is {language.result.value}; "
            f"write it like {language.example!r}"
        )
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
            case ast.Subscript(value=ast.Name(id=name), slice=slice_) if not self._only_floats:
                return self._element(node, name, slice_)
            case ast.BinOp(left=left, op=ast.Div(), right=right) if self.language.has_floats:
                return self._quotient(node, left, right)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in self._arithmetic:
                name = _ARITHMETIC[type(op)]
                if name in ("floor_divide", "remainder"):
                    return self._with_divisor(name, left, right)
                return self._ranged(node, joined(name, self._numbers(left, right)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._ranged(node, joined("negative", self._numbers(operand)))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                [found] = self._numbers(operand)
                return found
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

    @property
    def _only_floats(self) -> bool:
        return self.language.only_floats

    @property
    def _arithmetic(self) -> set[type[ast.operator]]:
        rounding: set[type[ast.operator]] = {ast.FloorDiv, ast.Mod} if self._only_floats else set()
        return _ARITHMETIC.keys() - rounding

    def _of_kind(self, node: ast.expr, kind: Kind) -> Node:
        found = self.read(node)
        if found.kind is not kind:
            raise self._refusal(
                node, f"{self._part(node)} is {found.kind.value}, and {kind.value} is needed"
            )
        return found

    def _of_whole(self, *operands: ast.expr) -> tuple[Node, ...]:
        return tuple(self._of_kind(one, Kind.WHOLE) for one in operands)

    def _numbers(self, *operands: ast.expr) -> tuple[Node, ...]:
        """Return whole numbers; or floats, where there are some among them."""
        if not self.language.has_floats:
            return self._of_whole(*operands)
        found = []
        for one in operands:
            tree = self.read(one)
            if tree.kind is Kind.TRUTH:
                raise self._refusal(
                    one, f"{self._part(one)} is {tree.kind.value}, and a number is needed"
                )
            found.append(tree)
        if all(tree.kind is Kind.WHOLE for tree in found):
            return tuple(found)
        return tuple(map(as_real, found))

    def _quotient(self, node: ast.expr, left: ast.expr, right: ast.expr) -> Node:
        one, other = (as_real(tree) for tree in self._numbers(left, right))
        if self._only_floats:
            self._refuse_fault(right, fault_of_divisor(other))
            return self._ranged(node, of_reals("divide", (one, other)))
        if self.language.reach(other).has_zero:
            raise self._refusal(
                right, f"{self._part(right)} divides, and may be 0; add to it, as in 1 + abs(x)"
            )
        return self._ranged(node, with_constant("divide", one, other))

    def _element(self, node: ast.Subscript, name: str, slice_: ast.expr) -> Node:
        tensors = self.language.tensors
        written = slice_.elts if isinstance(slice_, ast.Tuple) else [slice_]
        kind = Kind.WHOLE
        if tensors is not None:
            if name not in tensors:
                known = f"there are {', '.join(tensors)}" if tensors else "add it to parameters"
                raise self._refusal(node, f"{name!r} is not a tensor; {known}")
            shape, kind = tensors[name].shape, tensors[name].kind
            if len(shape) != len(written):
                raise self._refusal(
                    node,
                    f"{self._part(node)} has {len(written)} indices, and {name} is "
                    f"({', '.join(map(str, shape))})",
                )
        if kind is Kind.REAL and not self.language.has_floats:
            raise self._refusal(node, f"{name} is of floats, and {self.language.what} has none")
        return Element(name, self._of_whole(*written), kind)

    def _ranged(self, node: ast.expr, found: Node) -> Node:
        """Return ``found`` if 32 bits hold it for all indices."""
        if found.kind is Kind.TRUTH:
            return found
        if self._only_floats:
            self._refuse_fault(node, fault_of_constant(found))
            return found
        reach = self.language.reach(found)
        if found.kind is Kind.REAL:
            for end in (reach.low, reach.high):
                if not abs(end) <= LARGEST:
                    raise self._refusal(
                        node,
                        f"{self._part(node)} may reach {end:.3g}, more than {LARGEST:.3g}: limit "
                        "it, as in min(x, 20)",
                    )
            return found
        for end in (reach.low, reach.high):
            if end not in INT32:
                raise self._refusal(
                    node, f"{self._part(node)} may reach {end}, which 32 bits do not hold"
                )
        return found

    def _refuse_fault(self, node: ast.expr, fault: str | None) -> None:
        if fault is not None:
            raise self._refusal(node, f"{self._part(node)} {fault}")

    def _with_divisor(self, name: str, dividend: ast.expr, divisor: ast.expr) -> Node:
        left, tree = self._of_whole(dividend, divisor)
        value = None if variables_in(tree) else evaluate(tree, {}, exact)
        if value is None or value <= 0:
            raise self._refusal(
                divisor,
                f"{self._part(divisor)} divides, and is not a number above 0: an index cannot "
                "divide, since it may be 0"
                if value is None
                else f"{self._part(divisor)} is {value}, and a divisor is a number above 0",
            )
        return Operation(name, (left, Number(value)))

    def _comparison(self, node: ast.Compare, sides: list[ast.expr], ops: list[ast.cmpop]) -> Node:
        for op in ops:
            if type(op) not in _COMPARISONS:
                raise self._refusal(node, self._not_possible(node))
        trees = self._numbers(*sides)
        prefix = "real_" if trees[0].kind is Kind.REAL else ""
        pairs: list[Node] = [
            Operation(prefix + _COMPARISONS[type(op)], (trees[i], trees[i + 1]))
            for i, op in enumerate(ops)
        ]
        return reduce(lambda left, right: Operation("logical_and", (left, right)), pairs)

    def _call(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Node:
        if name not in self.language.functions:
            raise self._refusal(node, self._unknown(name))
        count = len(arguments)
        of_floats = (*self.language.of_floats, *self.language.macros)
        exact_count = {"abs": 1, **dict.fromkeys(of_floats, 1), "bit": 2, "where": 3}.get(name)
        if count != exact_count and (exact_count is not None or count < 2):
            wanted = "2 arguments or more"
            if exact_count is not None:
                wanted = f"{exact_count} argument{'s' * (exact_count > 1)}"
            raise self._refusal(node, f"{name} takes {wanted}, got {count}")
        if name == "bit":
            return Operation(name, self._of_whole(*arguments))
        if name == "where":
            return self._choice(*arguments)
        trees = self._numbers(*arguments)
        if name not in of_floats:
            return self._ranged(node, joined(FUNCTIONS[name], trees))
        [argument] = map(as_real, trees)
        if name in self.language.macros:
            return self._macro(node, name, argument)
        if name == "log2" and not self._may_be_logarithm_of(argument):
            raise self._refusal(
                arguments[0],
                f"{self._part(arguments[0])} has a logarithm taken, and may be 0 or below; limit "
                "it, as in max(x, 1)",
            )
        return self._ranged(node, of_reals(name, (argument,)))

    def _may_be_logarithm_of(self, tree: Node) -> bool:
        return self._only_floats or self.language.reach(tree).low >= SMALLEST

    def _macro(self, node: ast.Call, name: str, argument: Node) -> Node:
        found = substituted(self.language.macros[name], "x", argument)
        if written(found) > MAX_WRITTEN:  # each of its arguments is not, so that this ends soon
            raise self._refusal(node, f"{self._part(node)} {_NESTED}")
        return self._ranged(node, found)

    def _choice(self, condition: ast.expr, first: ast.expr, second: ast.expr) -> Node:
        """Return a choice; one of two conditions as the conditions that it means."""
        holds, one, other = self._of_kind(condition, Kind.TRUTH), self.read(first), None
        if one.kind is not Kind.TRUTH:
            one, other = self._numbers(first, second)
            if compares_reals(holds) or one.kind is Kind.REAL:
                return Operation("real_where", (holds, as_real(one), as_real(other)))
            return Operation("where", (holds, one, other))
        other = self._of_kind(second, one.kind)
        fails = Operation("logical_not", (holds,))
        sides = Operation("logical_and", (holds, one)), Operation("logical_and", (fails, other))
        return Operation("logical_or", sides)

    def _variable(self, node: ast.expr, name: str) -> Node:
        if name in self.language.functions:
            raise self._refusal(node, f"{name} is a function: write {name}(...)")
        if name in self.language.declared:
            raise self._refusal(node, f"{name} is a tensor: write {name}[...]")
        if name not in self.language.variables:
            raise self._refusal(node, self._unknown(name))
        is_float = isinstance(self.language.variables[name], Range)
        return Variable(name, Kind.REAL if is_float else Kind.WHOLE)

    def _number(self, node: ast.Constant) -> Node:
        written = self._part(node).strip("'")
        if self._only_floats:
            self._refuse_fault(node, fault_of_number(node.value))
            if not (_NUMBER.fullmatch(written) or _FLOAT.fullmatch(written)):
                raise self._refusal(node, f"{self._part(node)} is not a decimal number")
            assert isinstance(node.value, int | float)
            return Real(float(node.value))
        if self.language.has_floats and isinstance(node.value, float):
            if _FLOAT.fullmatch(written) is None:
                raise self._refusal(node, f"{self._part(node)} is not a decimal number")
            if node.value and not SMALLEST <= node.value <= LARGEST:
                raise self._refusal(
                    node, f"{self._part(node)} is not from {SMALLEST:.3g} to {LARGEST:.3g}"
                )
            return Real(node.value)
        if isinstance(node.value, bool) or not isinstance(node.value, int):
            what = "a number" if self.language.has_floats else "a whole number"
            raise self._refusal(node, f"{self._part(node)} is not {what}")
        if _NUMBER.fullmatch(written) is None:
            raise self._refusal(node, f"{self._part(node)} is not a decimal number")
        if node.value not in INT32:
            raise self._refusal(node, f"{self._part(node)} is more than 32 bits hold")
        return Number(node.value)

    def _unknown(self, name: str) -> str:
        known = [*self.language.variables, *self.language.declared, *self.language.functions]
        from difflib import get_close_matches

        near = [SYNONYMS[name]] if SYNONYMS.get(name) in known else []
        near = near or get_close_matches(name.lower(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        return f"{name!r} is not known; {hint}"

    def _not_possible(self, node: ast.expr) -> str:
        kinds = [type(node), type(getattr(node, "op", None))]
        instead = next((_INSTEAD[kind] for kind in kinds if kind in _INSTEAD), None)
        names = ", ".join((*self.language.variables, *self.language.declared))
        numbers = "numbers, + - * /" if self.language.has_floats else "whole numbers, + - *"
        if not self._only_floats:
            numbers += " // %"
        return f"{self._part(node)} is not possible in {self.language.what}: " + (
            instead
            or f"it is made of {names}, {numbers}, comparisons, and, or, not, "
            f"{', '.join(self.language.functions)}"
        )

    def _part(self, node: ast.expr) -> str:
        return repr(ast.get_source_segment(self.text, node) or self.text)

    def _refusal(self, node: ast.expr, message: str) -> ExpressionError:
        at = node.col_offset + 1
        return ExpressionError(f"{message} (character {at} of {self.text!r})", at)
