"""Bodies of functions: statements, blocks, labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.errors import PtxSyntaxError
from fa4gen.emulator.ptx import declarations
from fa4gen.emulator.ptx.opcodes import split_opcode
from fa4gen.emulator.ptx.operands import OperandReader
from fa4gen.emulator.ptx.scopes import Scope
from fa4gen.emulator.ptx.syntax import (
    Address,
    FunctionName,
    Instruction,
    Label,
    LabelTable,
    Operand,
    Register,
    RegisterClass,
    Space,
    Symbol,
    Variable,
    Vector,
)
from fa4gen.emulator.ptx.tokens import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Container

    from fa4gen.emulator.ptx.declarations import Parameter
    from fa4gen.emulator.ptx.source import SourceLines
    from fa4gen.emulator.ptx.tokens import Tokens

_LEAVES: Final = ("ret", "exit", "trap", "bra", "brx")
_LONGEST: Final = 400  # characters of an opcode with its modifiers
_COMPONENTS: Final = ("xyzw", "rgba")


@dataclass(frozen=True, slots=True)
class Body:
    """The contents of a function's braces."""

    instructions: tuple[Instruction, ...]
    registers: dict[RegisterClass, int]
    variables: tuple[Variable, ...]
    labels: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Jump:
    """An instruction whose labels may follow later."""

    index: int
    scope: Scope
    name: str
    line: int


class BodyReader:
    """Reads one body; the cursor is after its opening brace."""

    def __init__(
        self,
        tokens: Tokens,
        module: Scope,
        functions: Container[str],
        sources: SourceLines,
    ) -> None:
        self._tokens = tokens
        self._functions = functions
        self._sources = sources
        self._operands = OperandReader(tokens, functions)
        self._scope = Scope(module)
        self._instructions: list[Instruction] = []
        self._jumps: list[_Jump] = []
        self._registers: dict[RegisterClass, int] = {"p": 0, "h": 0, "r": 0, "d": 0, "q": 0}
        self._variables: list[Variable] = []
        self._labels: dict[str, int] = {}
        # The number of blocks that have a label of a name.
        self._label_names: Counter[str] = Counter()
        # Results held in registers, to be stored before the function returns.
        self._results: list[tuple[Variable, Register]] = []

    def read(self, parameters: tuple[Parameter, ...], results: tuple[Parameter, ...]) -> Body:
        """Read the whole body, its closing brace included."""
        self._sources.forget()
        for parameter in parameters:
            register = self._formal(parameter)
            if register is not None:
                self._load_parameter(parameter.variable, register)
        for result in results:
            register = self._formal(result)
            if register is not None:
                self._results.append((result.variable, register))
        self._block()
        self._resolve_jumps()
        return Body(
            tuple(self._instructions), self._registers, tuple(self._variables), self._labels
        )

    # Blocks and statements

    def _block(self) -> None:
        tokens = self._tokens
        depth = [self._scope]
        while True:
            token = tokens.texts[tokens.position]
            if token == "}":
                if len(depth) == 1:
                    self._close()
                    tokens.position += 1
                    return
                depth.pop()
                self._scope = depth[-1]
                tokens.position += 1
            elif token == "{":
                if len(depth) > MAX_DEPTH:
                    raise tokens.error(f"more than {MAX_DEPTH} blocks inside each other")
                self._scope = Scope(self._scope)
                depth.append(self._scope)
                tokens.position += 1
            elif token.startswith("."):
                self._directive(token)
            elif token == "@":
                self._guarded()
            elif token == ";":
                tokens.position += 1
            elif tokens.texts[tokens.position + 1 : tokens.position + 2] == [":"]:
                self._label()
            else:
                self._instruction(None, False)

    def _close(self) -> None:
        """Make the end of the body a return, so that every path and label has an instruction."""
        end = len(self._instructions)
        last = self._instructions[-1] if self._instructions else None
        ends = last is not None and last.guard is None and last.opcode in _LEAVES
        if not ends or end in self._labels.values():
            line = self._tokens.line()
            self._store_results(line, None, False)
            self._append(line, "ret", (), None, False)

    def _directive(self, token: str) -> None:
        tokens = self._tokens
        if token == ".loc":
            self._sources.loc(tokens)
            return
        tokens.next()
        if token == ".reg":
            for declared in declarations.registers(tokens):
                self._declare_registers(declared)
        elif token in declarations.SPACES:
            self._declare_variables(declarations.SPACES[token], False)
        elif token == ".extern" and tokens.peek() == ".shared":
            tokens.next()
            self._declare_variables("shared", True)
        elif token == ".pragma":
            tokens.skip_past(";")
        else:
            tokens.position -= 1
            raise tokens.unexpected("a statement")

    def _label(self) -> None:
        tokens = self._tokens
        name = tokens.word("a label")
        tokens.expect(":")
        scope = self._scope
        if name in scope.labels or name in scope.tables:
            raise tokens.error(f"label {name} is already declared")
        if tokens.accept(".branchtargets"):
            targets = [tokens.word("a label")]
            while tokens.accept(","):
                targets.append(tokens.word("a label"))
            tokens.expect(";")
            scope.tables[name] = tuple(targets)
        elif tokens.peek() in (".callprototype", ".calltargets"):
            # Only indirect calls use them, and these are refused where they stand.
            tokens.skip_past(";")
            scope.tables[name] = ()
        else:
            scope.labels[name] = len(self._instructions)
            count = self._label_names[name]
            self._label_names[name] += 1
            shown = name if not count else f"{name}'" if count == 1 else f"{name}'{count}"
            self._labels[shown] = len(self._instructions)

    # Instructions

    def _guarded(self) -> None:
        tokens = self._tokens
        tokens.expect("@")
        negated = tokens.accept("!")
        register = self._operands.register(self._scope, "a predicate register after '@'")
        if register.cls != "p":
            raise tokens.error(f"{register.name} guards an instruction but is not a predicate")
        self._instruction(register, negated)

    def _instruction(self, guard: Register | None, negated: bool) -> None:
        tokens = self._tokens
        line = tokens.line()
        text = tokens.next()
        if not text[:1].isalpha():
            tokens.position -= bool(text)
            raise tokens.unexpected("an instruction")
        while tokens.texts[tokens.position].startswith("."):
            text += tokens.next()
        if len(text) > _LONGEST:
            tokens.position -= 1
            raise tokens.error(f"an opcode of {len(text)} characters; none has {_LONGEST}")
        opcode = split_opcode(text)[0]
        operands: tuple[Operand, ...]
        if opcode == "call":
            operands = self._call()
        elif opcode == "bra":
            self._jump(line)
            tokens.expect(";")
            operands = ()
        elif opcode == "brx":
            operands = (self._operands.register(self._scope, "an index register"),)
            tokens.expect(",")
            self._jump(line)
            tokens.expect(";")
        else:
            operands = self._operands.list_until(";", self._scope)
        if opcode == "ret":
            self._store_results(line, guard, negated)
        self._append(line, text, operands, guard, negated)

    def _append(
        self,
        line: int,
        text: str,
        operands: tuple[Operand, ...],
        guard: Register | None,
        negated: bool,
    ) -> None:
        opcode, modifiers = split_opcode(text)
        self._instructions.append(
            Instruction(
                text, opcode, modifiers, operands, line, guard, negated, self._sources.current
            )
        )

    def _jump(self, line: int) -> None:
        name = self._tokens.word("a label")
        self._jumps.append(_Jump(len(self._instructions), self._scope, name, line))

    def _call(self) -> tuple[Operand, ...]:
        """``(results), callee, (arguments), prototype``; always three operands, or four."""
        tokens, scope = self._tokens, self._scope
        results: tuple[Operand, ...] = ()
        if tokens.accept("("):
            results = self._operands.list_until(")", scope)
            tokens.expect(",")
        name = tokens.word("the function to call")
        callee: Operand
        found = scope.find(name)
        if isinstance(found, Register):
            callee = found
        elif name in self._functions:
            callee = FunctionName(name)
        else:
            tokens.position -= 1
            raise tokens.error(f"function {name} is not declared")
        arguments: tuple[Operand, ...] = ()
        if tokens.accept(","):
            if tokens.accept("("):
                arguments = self._operands.list_until(")", scope)
            else:
                tokens.position -= 1
        operands = (Vector(results), callee, Vector(arguments))
        if tokens.accept(","):
            prototype = tokens.word("a prototype")
            if scope.table(prototype) is None:
                tokens.position -= 1
                raise tokens.error(f"prototype {prototype} is not declared")
            tokens.expect(";")
            return (*operands, FunctionName(prototype))
        tokens.expect(";")
        return operands

    def _resolve_jumps(self) -> None:
        for jump in self._jumps:
            instruction = self._instructions[jump.index]
            target: Label | LabelTable
            if instruction.opcode == "bra":
                target = Label(jump.name, self._target(jump.scope, jump.name, jump.line))
            else:
                found = jump.scope.table(jump.name)
                if not found or not found[1]:
                    raise PtxSyntaxError(f"no .branchtargets named {jump.name}", jump.line)
                scope, names = found
                target = LabelTable(
                    jump.name, tuple(self._target(scope, name, jump.line) for name in names)
                )
            self._instructions[jump.index] = replace(
                instruction, operands=(*instruction.operands, target)
            )

    @staticmethod
    def _target(scope: Scope, name: str, line: int) -> int:
        found = scope.label(name)
        if found is None:
            raise PtxSyntaxError(f"label {name} is not declared", line)
        return found

    # Declarations

    def _declare_registers(self, declared: declarations.RegisterDeclaration) -> None:
        first = self._registers[declared.cls]
        if declared.length > 1:
            self._declare_vector(declared, first)
            return
        if declared.count is None:
            register = Register(declared.name, declared.cls, first)
            fresh = self._scope.declare(declared.name, register)
        else:
            fresh = self._scope.declare_range(declared.name, declared.cls, first, declared.count)
        if not fresh:
            raise self._tokens.error(f"register {declared.name} is already declared")
        self._registers[declared.cls] = first + (1 if declared.count is None else declared.count)

    def _declare_vector(self, declared: declarations.RegisterDeclaration, first: int) -> None:
        """The whole is a vector of plain registers; ``v.x`` or ``v.r`` is the first of them."""
        parts = tuple(
            Register(f"{declared.name}.{index}", declared.cls, first + index)
            for index in range(declared.length)
        )
        fresh = self._scope.declare(declared.name, Vector(parts))
        for letters in _COMPONENTS if declared.length <= len(_COMPONENTS[0]) else ():
            for letter, part in zip(letters, parts, strict=False):
                fresh = self._scope.declare(f"{declared.name}.{letter}", part) and fresh
        if not fresh:
            raise self._tokens.error(f"register {declared.name} is already declared")
        self._registers[declared.cls] = first + declared.length

    def _declare_variables(self, space: Space, extern: bool) -> None:
        tokens = self._tokens
        for variable in declarations.variables(tokens, space, extern, ()):
            if not self._scope.declare(variable.name, Symbol(variable)):
                raise tokens.error(f"{variable.name} is already declared")
            self._variables.append(variable)

    def _formal(self, parameter: Parameter) -> Register | None:
        """Declare a formal parameter; the register if it is one."""
        variable = parameter.variable
        meaning: Register | Symbol = Symbol(variable)
        if parameter.in_register:
            cls = declarations.register_class(variable.element)
            meaning = Register(variable.name, cls, self._registers[cls])
            self._registers[cls] += 1
        if not self._scope.declare(variable.name, meaning):
            raise self._tokens.error(f"parameter {variable.name} is already declared")
        return meaning if isinstance(meaning, Register) else None

    # Formals in registers are read as if they were variables, loaded first and stored last

    def _load_parameter(self, variable: Variable, register: Register) -> None:
        operands = (register, Address(Symbol(variable)))
        line = self._tokens.line()
        self._append(line, f"ld.param.{variable.element}", operands, None, False)

    def _store_results(self, line: int, guard: Register | None, negated: bool) -> None:
        for variable, register in self._results:
            operands = (Address(Symbol(variable)), register)
            self._append(line, f"st.param.{variable.element}", operands, guard, negated)
