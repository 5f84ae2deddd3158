"""The one place where generated Python is checked, compiled and executed.

PTX comes from anywhere. No name, label, string, number or comment of it may become code, so every
statement is compared with a list of what the emitter writes, as a syntax tree, before it is
compiled. Statements of the same form (digits aside) are compared once.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from fa4gen.emulator.errors import EmulatorError
from fa4gen.emulator.ptx.types import VIEWS

Function = Callable[[Any, Any], None]

UFUNCS: Final = frozenset((
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "copyto", "invert", "left_shift",
    "minimum", "maximum", "multiply", "right_shift", "subtract",
))  # fmt: skip
"""Functions of NumPy that generated code calls by name; all others have numbered names."""
STATEMENTS: Final = (ast.Expr, ast.Assign)
EXPRESSIONS: Final = (
    ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript, ast.Slice, ast.Tuple,
    ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp, ast.keyword,
    ast.Load, ast.Store, ast.USub, ast.Invert, ast.Is, ast.NotEq,
    ast.Add, ast.BitAnd, ast.BitOr, ast.BitXor, ast.RShift,
)  # fmt: skip
"""All that statements may contain; no ``def``, ``lambda``, ``import``, comprehension, ``await``."""
METHODS: Final = frozenset(("any", "astype", "clock", "copy", "reshape", "rows", "take", "view"))
FIELDS: Final = frozenset(("cta", "machine", "shared_base", "special"))
KEYWORDS: Final = frozenset(("out", "where"))
_ASSIGNED: Final = frozenset("wtu")
_DIGITS: Final = re.compile(r"[0-9]+")
# Digits aside: all numbered names begin with k.
_READ: Final = _ASSIGNED | {_DIGITS.sub("0", name) for name in ("g", "m", "held", "k0", *VIEWS)}
_WORD: Final = re.compile(r"%?[A-Za-z_][A-Za-z0-9_.]*")
# No comment, semicolon, backslash, brace, double quote, tab or other line break among them.
_LINE: Final = re.compile(r"(?:    |        )[A-Za-z0-9_(\[~][A-Za-z0-9_ ()\[\],.:=%'!~&|^+>-]*")
_GUARD: Final = "    if w.any():"


class ForbiddenCodeError(EmulatorError):
    """A generated statement that no instruction needs: a mistake of the emulator's."""


def make_function(
    views: Iterable[str], lines: Sequence[str], namespace: dict[str, Any], name: str
) -> Function:
    """Compile ``def run(g, m)`` of these statements, which find ``namespace`` as globals.

    ``views`` are views of registers to have as variables; ``name`` is the text's name in
    tracebacks. Raises ForbiddenCodeError for statements with anything that is not listed here.
    """
    views = sorted(views)
    for view in views:
        if view not in VIEWS and view != "held":
            raise ForbiddenCodeError(f"a view called {view!r} in generated code")
    for line in lines:
        check_line(line)
    text = "\n".join(
        ["def run(g, m):", *(f"    {view} = g.{view}" for view in views), *lines, "    return None"]
    )
    # NumPy imports modules of its own when it needs them, under the name of its caller.
    namespace["__builtins__"] = {"__import__": builtins.__import__}
    exec(compile(text, name, "exec"), namespace)
    function: Function = namespace["run"]
    return function


def check_line(line: str) -> None:
    """Raise ForbiddenCodeError unless a line is one whole statement of the listed forms."""
    if line == _GUARD:
        return
    if _LINE.fullmatch(line) is None:
        raise ForbiddenCodeError(f"generated code has the line {line[:100]!r}")
    _check_form(_DIGITS.sub("0", line.lstrip(" ")))


@lru_cache(maxsize=8192)
def _check_form(statement: str) -> None:
    try:
        (tree,) = ast.parse(statement).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ForbiddenCodeError(f"generated code has {statement[:100]!r}") from None
    check_statement(tree)


def check_statement(tree: ast.stmt) -> None:
    """Raise ForbiddenCodeError unless a statement is a call or an assignment of listed parts."""
    if not isinstance(tree, STATEMENTS) or (
        isinstance(tree, ast.Expr) and not isinstance(tree.value, ast.Call)
    ):
        raise _forbidden(tree)
    for node in ast.walk(tree):
        if node is not tree and not _is_listed(node):
            raise _forbidden(node)


def _is_listed(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return name in _ASSIGNED
        case ast.Name(id=name):
            return name in UFUNCS or _DIGITS.sub("0", name) in _READ
        case ast.Constant(value=value):
            if isinstance(value, str):
                return _WORD.fullmatch(value) is not None
            return value is None or value is ... or type(value) is int
        case ast.Attribute(attr=name, ctx=ast.Load()):
            return name in METHODS or name in FIELDS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in METHODS
        case ast.Call(func=func):
            return isinstance(func, ast.Name)
        case ast.keyword(arg=name):
            return name in KEYWORDS
    return isinstance(node, EXPRESSIONS) and not isinstance(node, ast.Attribute)


def _forbidden(node: ast.AST) -> ForbiddenCodeError:
    what = ast.unparse(node) if isinstance(node, (ast.stmt, ast.expr)) else type(node).__name__
    return ForbiddenCodeError(f"generated code has {what[:100]!r}, which no instruction needs")
