"""Declarations of variables, parameters and registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.ptx import types
from fa4gen.emulator.ptx.initialisers import Initialiser
from fa4gen.emulator.ptx.syntax import RegisterClass, Space, Variable

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from fa4gen.emulator.ptx.tokens import Tokens

SPACES: Final[dict[str, Space]] = {
    ".param": "param",
    ".shared": "shared",
    ".global": "global",
    ".const": "const",
    ".local": "local",
}
_CLASSES: Final[dict[int, RegisterClass]] = {
    1: "p", 8: "h", 16: "h", 32: "r", 64: "d", 128: "q"
}  # fmt: skip
_VECTOR_LENGTHS: Final = {".v2": 2, ".v4": 4, ".v8": 8}


@dataclass(frozen=True, slots=True)
class RegisterDeclaration:
    """``%r<5>`` (count 5) or ``%r`` (count None); ``length`` elements where it is a vector."""

    name: str
    cls: RegisterClass
    count: int | None
    length: int = 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal parameter or result; one held in a register names its type."""

    variable: Variable
    in_register: bool


@dataclass(slots=True)
class _Type:
    element: str = ""
    length: int = 1
    align: int = 0


def register_class(element: str) -> RegisterClass:
    """Return the class of registers declared with a type."""
    return _CLASSES[types.bits_of(element)]


def registers(tokens: Tokens) -> Iterator[RegisterDeclaration]:
    """Read the rest after ``.reg``, the semicolon included."""
    length = _VECTOR_LENGTHS.get(tokens.peek(), 1)
    if length > 1:
        tokens.next()
    cls = register_class(_element(tokens))
    if length > 1 and cls == "p":
        raise tokens.error("vectors of predicates do not exist")
    while True:
        name = tokens.word("the name of a register")
        count = None
        if tokens.accept("<"):
            if length > 1:
                raise tokens.error("numbered vector registers are not supported")
            count = tokens.natural("the number of registers")
            tokens.expect(">")
        yield RegisterDeclaration(name, cls, count, length)
        if not tokens.accept(","):
            break
    tokens.expect(";")


def variables(
    tokens: Tokens, space: Space, extern: bool, symbols: Container[str]
) -> Iterator[Variable]:
    """Read the rest after ``.global`` and the like, the semicolon included."""
    kind = _type(tokens)
    while True:
        yield _variable(tokens, kind, space, extern, symbols)
        if not tokens.accept(","):
            break
    tokens.expect(";")


def parameters(tokens: Tokens) -> tuple[Parameter, ...]:
    """Read a list in parentheses."""
    tokens.expect("(")
    found: list[Parameter] = []
    if tokens.accept(")"):
        return ()
    while True:
        found.append(_parameter(tokens))
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return tuple(found)


def _parameter(tokens: Tokens) -> Parameter:
    in_register = tokens.accept(".reg")
    if not in_register:
        tokens.expect(".param")
    kind = _type(tokens)
    if in_register and kind.element == "pred":
        raise tokens.error("predicate registers as parameters are not supported")
    return Parameter(_variable(tokens, kind, "param", False, ()), in_register)


def _type(tokens: Tokens) -> _Type:
    """Read the dotted words before a name: alignment, type, vector length, pointers."""
    kind = _Type()
    pointer = False
    while (token := tokens.peek()).startswith("."):
        if token == ".align":
            tokens.next()
            align = tokens.natural("an alignment")
            if align == 0 or align & (align - 1):
                raise tokens.error(f"alignment {align} is not a power of two")
            # After .ptr it is the alignment of the memory that the parameter points to.
            kind.align = kind.align if pointer else align
        elif token in _VECTOR_LENGTHS:
            tokens.next()
            kind.length = _VECTOR_LENGTHS[token]
        elif token == ".ptr":
            tokens.next()
            pointer = True
        elif token == ".attribute":
            tokens.next()
            tokens.expect("(")
            tokens.skip_past(")")
        elif pointer and token in SPACES:
            tokens.next()
        elif kind.element:
            raise tokens.unexpected("a name")
        else:
            kind.element = _element(tokens)
    if not kind.element:
        raise tokens.unexpected("a type")
    return kind


def _element(tokens: Tokens) -> str:
    token = tokens.peek()
    name = token[1:]
    if not token.startswith(".") or not types.is_type(name):
        raise tokens.unexpected("a type such as .b32")
    tokens.next()
    return name


def _variable(
    tokens: Tokens, kind: _Type, space: Space, extern: bool, symbols: Container[str]
) -> Variable:
    if kind.element == "pred":
        raise tokens.error("a variable cannot be a predicate")
    name = tokens.word("the name of a variable")
    dimensions: list[int | None] = []
    while tokens.accept("["):
        if tokens.accept("]"):
            if dimensions:
                raise tokens.error("only the first dimension may be left open")
            dimensions.append(None)
        else:
            dimensions.append(tokens.natural("a number of elements"))
            tokens.expect("]")
    initialiser = Initialiser(tokens, symbols) if tokens.accept("=") else None
    if dimensions and dimensions[0] is None:
        dimensions[0] = initialiser.length() if initialiser is not None else 0
    if kind.length > 1:
        dimensions.append(kind.length)
    extents = tuple(extent for extent in dimensions if extent is not None)
    width = types.bits_of(kind.element) // 8
    size = width
    for extent in extents:
        size *= extent
    initial: bytes | None = None
    relocations: tuple[tuple[int, str, bool], ...] = ()
    if initialiser is not None:
        initial, relocations = initialiser.layout(kind.element, extents)
    natural_alignment = width * kind.length
    return Variable(
        name=name,
        space=space,
        align=kind.align or natural_alignment,
        size=size,
        element=kind.element,
        initial=initial,
        extern=extern,
        relocations=relocations,
    )
