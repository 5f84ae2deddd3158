"""The parsed form of a PTX module: plain data, no behaviour.

Registers are numbered per width class, since PTX registers hold bits and the instruction says how
to read them: ``p`` predicates, ``h`` 16 bits (8-bit registers too), ``r`` 32, ``d`` 64, ``q`` 128.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

RegisterClass: TypeAlias = Literal["p", "h", "r", "d", "q"]
Space: TypeAlias = Literal["param", "shared", "global", "const", "local"]


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register: ``index`` counts within its class and function."""

    name: str
    cls: RegisterClass
    index: int


@dataclass(frozen=True, slots=True)
class NotPredicate:
    """``!%p`` as an operand."""

    register: Register


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal. ``int``: any Python integer, may be negative. ``f32``/``f64``: raw bits."""

    kind: Literal["int", "f32", "f64"]
    bits: int


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as ``%tid.x``, ``%laneid``, ``WARP_SZ``."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable of a module or function; compared by identity, since scopes may repeat names.

    ``size`` is in bytes; ``initial`` holds the initialiser or None; an ``extern`` shared variable
    of size 0 starts where dynamic shared memory starts. ``relocations`` are byte offsets into
    ``initial`` where the address of another variable belongs (``generic(x)`` when flagged). The
    bytes there already hold the number to add to the address.
    """

    name: str
    space: Space
    align: int
    size: int
    element: str
    initial: bytes | None = None
    extern: bool = False
    relocations: tuple[tuple[int, str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable within its space, plus a constant number of bytes."""

    variable: Variable
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, ...}``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``, or ``[base, {coordinates}]`` for tensor copies."""

    base: Register | Immediate | Symbol
    offset: int = 0
    coordinates: Vector | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """``d|p``: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``: nothing is kept."""


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target, resolved: the index of an instruction of the function."""

    name: str
    target: int


@dataclass(frozen=True, slots=True)
class LabelTable:
    """The ``.branchtargets`` list of a ``brx.idx``."""

    name: str
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FunctionName:
    """The callee of a ``call``; none is left after calls have been inlined."""

    name: str


Operand: TypeAlias = (
    Register
    | NotPredicate
    | Immediate
    | Special
    | Symbol
    | Vector
    | Address
    | Pair
    | Sink
    | Label
    | LabelTable
    | FunctionName
)


_INNER_CALLS: Final = 3
"""The most places of inlining that are shown next to the inlined code; the last one is, too."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """The source position of an instruction, from ``.loc``.

    ``call`` is the place ``inlined_at`` which the code was inlined, "" for code of its own;
    ``calls`` are that place and those around it, out to the kernel. ``path`` is the whole path of
    the file.
    """

    file: str
    line: int
    call: str = ""
    path: str = ""
    calls: tuple[SourceLine, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def inlined(self) -> str:
        """Places where it was inlined, from the inside to the outside, in words; "" for none."""
        if not self.calls:
            return ""
        inner, last = self.calls[:_INNER_CALLS], self.calls[-1]
        cut = ("...",) if len(self.calls) > _INNER_CALLS + 1 else ()
        outer = (last,) if len(self.calls) > _INNER_CALLS else ()
        return f" (inlined at {', '.join(map(str, (*inner, *cut, *outer)))})"


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One instruction; compared by identity.

    ``text`` is the whole opcode as written (``ld.global.v4.f32``); ``opcode`` its first component
    and ``modifiers`` the others, split at single dots (``shared::cta`` stays whole).
    ``guard`` with ``guard_negated`` is ``@%p`` / ``@!%p``. ``line`` counts in the PTX text from 1.
    """

    text: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    line: int
    guard: Register | None = None
    guard_negated: bool = False
    source: SourceLine | None = None

    @property
    def where(self) -> str:
        """The source line if known, else the PTX line."""
        return str(self.source) if self.source else f"PTX line {self.line}"

    @property
    def inlined(self) -> str:
        """The places where the source line was inlined, in words; see SourceLine."""
        return self.source.inlined if self.source else ""

    @property
    def position(self) -> str:
        """The source position and the places where it was inlined, out to the kernel, in words."""
        return f"{self.where}{self.inlined}"

    @property
    def place(self) -> str:
        """The common place of copies of one statement: an unrolled loop has it many times."""
        if self.source is None:
            return f"PTX line {self.line}"
        return f"{self.source} {self.source.call}" if self.source.call else str(self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function or entry. ``labels`` maps names to instruction indices (for display only).

    ``registers`` counts the registers of each class. ``variables`` are those declared in the body
    (shared variables of a body exist once per CTA; local ones once per thread). ``directives``
    holds the performance directives: ``maxntid``, ``reqntid``, ``reqnctapercluster`` as three
    numbers, ``minnctapersm``, ``maxnreg`` as one, ``explicitcluster`` and others as ().
    """

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    instructions: tuple[Instruction, ...]
    registers: dict[RegisterClass, int]
    variables: tuple[Variable, ...]
    labels: dict[str, int] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A parsed PTX module."""

    version: tuple[int, int]
    target: str
    variables: tuple[Variable, ...]
    functions: dict[str, Function]
