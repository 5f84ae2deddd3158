"""PTX text to a Module.

The parser fails closed: an unknown form is an error that names the line, the text and the
expectation, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.ptx import declarations
from fa4gen.emulator.ptx.body import Body, BodyReader
from fa4gen.emulator.ptx.scopes import Scope
from fa4gen.emulator.ptx.source import SourceLines, skip_file
from fa4gen.emulator.ptx.syntax import Function, Module, Symbol, Variable
from fa4gen.emulator.ptx.tokens import END, Tokens

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.declarations import Parameter

_LINKAGE: Final = (".visible", ".weak", ".extern", ".common")
# Performance directives: the least and the most numbers they take; those of three are padded.
_DIRECTIVES: Final = {
    ".maxntid": (1, 3),
    ".reqntid": (1, 3),
    ".reqnctapercluster": (1, 3),
    ".minnctapersm": (1, 1),
    ".maxnctapersm": (1, 1),
    ".maxnreg": (1, 1),
    ".maxclusterrank": (1, 1),
    ".abi_preserve": (1, 1),
    ".abi_preserve_control": (1, 1),
    ".explicitcluster": (0, 0),
    ".blocksareclusters": (0, 0),
    ".noreturn": (0, 0),
}


TARGETS: Final = frozenset(
    f"sm_{number}{suffix}"
    for numbers, suffixes in (
        ((50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89), ("",)),
        ((90,), ("", "a")),
        ((100, 101, 103), ("", "a", "f")),
    )
    for number in numbers
    for suffix in suffixes
)
"""The values of ``.target``."""


def parse_module(text: str) -> Module:
    """Parse PTX of a compiler or a person; PtxSyntaxError describes the first error."""
    return _ModuleReader(text).read()


@dataclass(frozen=True, slots=True)
class _Header:
    name: str
    entry: bool
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    directives: dict[str, tuple[int, ...]]


class _ModuleReader:
    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._sources = SourceLines(self._tokens)
        self._scope = Scope()
        self._variables: dict[str, Variable] = {}
        self._functions: dict[str, Function] = {}
        # Names that initialisers may take addresses of.
        self._symbols: set[str] = set()
        self._version: tuple[int, int] | None = None
        self._target: str | None = None

    def read(self) -> Module:
        tokens = self._tokens
        while (token := tokens.peek()) != END:
            if token in _LINKAGE or token in (".func", ".entry") or token in declarations.SPACES:
                self._object()
            elif token == ".file":
                skip_file(tokens)
            elif token == ".loc":
                self._sources.loc(tokens)
            elif token == ".section":
                tokens.skip_past("{")
                tokens.skip_past("}")
            elif token == ".pragma":
                tokens.skip_past(";")
            elif token == ";":
                tokens.next()
            else:
                self._header(token)
        if self._version is None or self._target is None:
            raise tokens.error("a module needs .version and .target")
        return Module(self._version, self._target, tuple(self._variables.values()), self._functions)

    def _header(self, token: str) -> None:
        tokens = self._tokens
        if token == ".version":
            tokens.next()
            major, dot, minor = tokens.peek().partition(".")
            if not (major.isdigit() and dot and minor.isdigit()):
                raise tokens.unexpected("a version such as 9.0")
            tokens.next()
            self._version = int(major), int(minor)
        elif token == ".target":
            tokens.next()
            self._target = tokens.word("a target such as sm_90a")
            if self._target not in TARGETS:
                tokens.position -= 1
                raise tokens.error(
                    f"the target {self._target[:40]} is not known: this runs PTX for sm_90 to "
                    "sm_103, and PTX for older targets as these run it"
                )
            while tokens.accept(","):
                tokens.word("a target option")
        elif token == ".address_size":
            tokens.next()
            if tokens.natural("an address size") != 64:
                tokens.position -= 1
                raise tokens.unexpected("address size 64")
        else:
            raise tokens.unexpected("a directive, a variable or a function")

    def _object(self) -> None:
        """Read a variable or a function, with its linkage."""
        tokens = self._tokens
        extern = False
        while (token := tokens.peek()) in _LINKAGE:
            extern = extern or token == ".extern"
            tokens.next()
        if token in (".func", ".entry"):
            self._function()
        elif token in declarations.SPACES and token not in (".param", ".local"):
            tokens.next()
            space = declarations.SPACES[token]
            for variable in declarations.variables(tokens, space, extern, self._symbols):
                if not self._scope.declare(variable.name, Symbol(variable)):
                    raise tokens.error(f"variable {variable.name} is already declared")
                self._variables[variable.name] = variable
                self._symbols.add(variable.name)
        else:
            raise tokens.unexpected("a variable or a function")

    def _function(self) -> None:
        tokens = self._tokens
        header = self._function_header()
        earlier = self._functions.get(header.name)
        if tokens.accept(";"):
            if earlier is None:
                self._add(header, Body((), {}, (), {}))
            return
        if earlier is not None and earlier.instructions:
            raise tokens.error(f"function {header.name} is already defined")
        # Known before its body is read: it may call itself.
        self._add(header, Body((), {}, (), {}))
        if not tokens.accept("{"):
            raise tokens.unexpected("'{', ';' or a directive such as .maxntid")
        reader = BodyReader(tokens, self._scope, self._functions, self._sources)
        self._add(header, reader.read(header.parameters, header.results))

    def _function_header(self) -> _Header:
        tokens = self._tokens
        entry = tokens.next() == ".entry"
        while tokens.accept(".attribute"):
            tokens.expect("(")
            depth = 1
            while depth:
                token = tokens.next()
                if token == END:
                    raise tokens.unexpected("')'")
                depth += (token == "(") - (token == ")")
        results = declarations.parameters(tokens) if tokens.peek() == "(" and not entry else ()
        name = tokens.word("the name of a function")
        parameters = declarations.parameters(tokens) if tokens.peek() == "(" else ()
        return _Header(name, entry, parameters, results, self._performance())

    def _performance(self) -> dict[str, tuple[int, ...]]:
        tokens = self._tokens
        found: dict[str, tuple[int, ...]] = {}
        while (token := tokens.peek()).startswith("."):
            if token == ".pragma":
                tokens.skip_past(";")
                continue
            if token not in _DIRECTIVES:
                raise tokens.unexpected("a performance directive or a body")
            tokens.next()
            least, most = _DIRECTIVES[token]
            numbers: list[int] = []
            if least:
                numbers.append(tokens.natural(f"a number after {token}"))
                while len(numbers) < most and tokens.accept(","):
                    numbers.append(tokens.natural(f"a number after {token}"))
            found[token[1:]] = (*numbers, *[1] * (most - len(numbers)))
        return found

    def _add(self, header: _Header, body: Body) -> None:
        self._symbols.add(header.name)
        self._functions[header.name] = Function(
            name=header.name,
            entry=header.entry,
            parameters=tuple(parameter.variable for parameter in header.parameters),
            results=tuple(result.variable for result in header.results),
            instructions=body.instructions,
            registers=body.registers,
            variables=body.variables,
            labels=body.labels,
            directives=header.directives,
        )
