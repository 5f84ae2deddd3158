"""An entry with every call replaced by the callee's body, so that nothing is left to call."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.errors import EmulatorError, LaunchError
from fa4gen.emulator.ptx.opcodes import split_opcode
from fa4gen.emulator.ptx.syntax import (
    Address,
    Function,
    FunctionName,
    Immediate,
    Instruction,
    Label,
    LabelTable,
    NotPredicate,
    Operand,
    Pair,
    Register,
    RegisterClass,
    Sink,
    Symbol,
    Variable,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.emulator.ptx.syntax import Module

# Functions of the driver that end the kernel, and those that print: their output is not read.
_TRAPS: Final = frozenset({"__assertfail", "__assert_fail", "__trap", "abort"})
_PRINTS: Final = frozenset({"vprintf"})
MAX_INSTRUCTIONS: Final = 1_000_000
"""The number of instructions of an entry with all calls inlined: calls of calls multiply."""
MAX_COPIES: Final = 20_000
"""Calls that are inlined."""
MAX_CALLS: Final = 100
"""Functions that call each other in a row."""


def flatten(module: Module, entry: str) -> Function:
    """Inline all calls of an entry.

    Function-scope ``.param`` variables, the callee's formals among them, become local variables;
    the entry's own parameters stay parameters.
    """
    function = module.functions.get(entry)
    if function is None or not function.entry:
        names = ", ".join(name for name, each in module.functions.items() if each.entry)
        raise LaunchError(f"the module has no entry {entry}; it has {names or 'none'}")
    if not function.instructions:
        raise LaunchError(f"entry {entry} is declared but has no body")
    return _Inliner(module, function).flatten()


@dataclass(frozen=True, slots=True)
class _Frame:
    """One copy of a function's body: its first registers, and the copies of its variables."""

    function: Function
    first: dict[RegisterClass, int]
    variables: dict[int, Variable]
    suffix: str

    def register(self, register: Register) -> Register:
        base = self.first[register.cls]
        if not base and not self.suffix:
            return register
        return Register(register.name + self.suffix, register.cls, register.index + base)


class _Inliner:
    def __init__(self, module: Module, entry: Function) -> None:
        self._module = module
        self._entry = entry
        self._out: list[Instruction] = []
        self._registers: Counter[RegisterClass] = Counter(entry.registers)
        # In order of declaration, without repeats: shared variables of a callee exist once.
        self._variables: dict[int, Variable] = {}
        self._labels: dict[str, int] = {}
        self._copies = 0
        self._active: list[str] = []

    def flatten(self) -> Function:
        entry = self._entry
        self._body(entry, _Frame(entry, dict.fromkeys(entry.registers, 0), {}, ""))
        return replace(
            entry,
            instructions=tuple(self._out),
            registers=dict(self._registers),
            variables=tuple(self._variables.values()),
            labels=self._labels,
        )

    def _body(self, function: Function, frame: _Frame) -> None:
        """Append a copy of a function's body; labels are shifted once all places are known."""
        self._active.append(function.name)
        for variable in function.variables:
            self._adopt(variable, frame)
        start = len(self._out)
        places: list[int] = []
        inlined: set[int] = set()
        for instruction in function.instructions:
            places.append(len(self._out))
            if instruction.opcode == "call":
                before = len(self._out)
                self._call(instruction, frame)
                inlined.update(range(before, len(self._out)))
            else:
                self._out.append(self._copied(instruction, frame))
        end = len(self._out)
        for at in range(start, end):
            if at not in inlined:
                self._out[at] = self._placed(self._out[at], frame, places, end)
        for name, target in function.labels.items():
            self._labels[name + frame.suffix] = places[target]
        self._active.pop()

    def _placed(
        self, instruction: Instruction, frame: _Frame, places: list[int], end: int
    ) -> Instruction:
        """Move an instruction's targets; a callee's return becomes a branch to its end."""
        if instruction.opcode == "ret" and frame.suffix:
            return _rewritten(instruction, "bra.uni", (Label("return" + frame.suffix, end),))
        last = instruction.operands[-1] if instruction.operands else None
        moved: Label | LabelTable
        if isinstance(last, Label):
            moved = Label(last.name + frame.suffix, places[last.target])
        elif isinstance(last, LabelTable):
            targets = tuple(places[target] for target in last.targets)
            moved = LabelTable(last.name + frame.suffix, targets)
        else:
            return instruction
        return replace(instruction, operands=(*instruction.operands[:-1], moved))

    def _adopt(self, variable: Variable, frame: _Frame) -> None:
        """Take over a variable of a body: parameter and local ones anew for every copy."""
        ours = variable
        if variable.space == "param":
            ours = replace(variable, name=variable.name + frame.suffix, space="local")
        elif variable.space == "local" and frame.suffix:
            ours = replace(variable, name=variable.name + frame.suffix)
        frame.variables[id(variable)] = ours
        self._variables[id(ours)] = ours

    # Calls

    def _call(self, call: Instruction, frame: _Frame) -> None:
        results, callee, arguments = call.operands[:3]
        if not isinstance(callee, FunctionName):
            raise EmulatorError(f"line {call.line}: indirect calls are not supported")
        assert isinstance(results, Vector)
        assert isinstance(arguments, Vector)
        skip = len(self._out) if call.guard is not None else None
        if skip is not None:
            # Taken where the call is not: its target is known once the callee stands.
            around = _rewritten(call, "bra", ())
            negated = not call.guard_negated
            self._out.append(self._copied(replace(around, guard_negated=negated), frame))
        call = replace(call, guard=None, guard_negated=False)
        function = self._module.functions[callee.name]
        if callee.name in _TRAPS and not function.instructions:
            self._out.append(_rewritten(call, "trap", ()))
        elif callee.name in _PRINTS and not function.instructions:
            self._print(call, results, frame)
        else:
            self._inline(call, function, results, arguments, frame)
        if skip is not None:
            target = Label(f"after_call@{skip}", len(self._out))
            self._out[skip] = replace(self._out[skip], operands=(target,))

    def _print(self, call: Instruction, results: Vector, frame: _Frame) -> None:
        """Print nothing, and return that."""
        for result in results.items:
            place = self._operand(result, frame)
            if isinstance(place, Sink):
                continue
            text, operand = "mov.b32", place
            if isinstance(place, Symbol):
                text, operand = "st.local.b32", Address(place)
            self._out.append(_rewritten(call, text, (operand, Immediate("int", 0))))

    def _inline(
        self,
        call: Instruction,
        function: Function,
        results: Vector,
        arguments: Vector,
        frame: _Frame,
    ) -> None:
        name = function.name
        if not function.instructions:
            raise EmulatorError(f"line {call.line}: function {name} is not modelled")
        if name in self._active:
            raise EmulatorError(
                f"line {call.line}: recursion is not supported: "
                f"{' calls '.join([*self._active, name])}"
            )
        for what, formals, actuals in (
            ("parameters", function.parameters, arguments.items),
            ("results", function.results, results.items),
        ):
            if len(formals) != len(actuals):
                raise EmulatorError(
                    f"line {call.line}: {name} has {len(formals)} {what}, "
                    f"the call gives {len(actuals)}"
                )
        if len(self._active) > MAX_CALLS:
            raise EmulatorError(f"line {call.line}: more than {MAX_CALLS} calls inside each other")
        if len(self._out) > MAX_INSTRUCTIONS or self._copies > MAX_COPIES:
            raise EmulatorError(
                f"line {call.line}: {self._copies} calls inlined, which is how the emulator runs "
                f"them, are {len(self._out)} instructions; it accepts {MAX_COPIES} calls and "
                f"{MAX_INSTRUCTIONS} instructions"
            )
        self._copies += 1
        first = {cls: self._registers[cls] for cls in function.registers}
        self._registers.update(function.registers)
        inner = _Frame(function, first, {}, f"@{self._copies}")
        for formal, actual in zip(function.parameters, arguments.items, strict=True):
            value = self._bind(call, formal, actual, frame, inner)
            if value is not None:
                self._transfer(call, "st", inner.variables[id(formal)], value)
        copies = [
            (formal, self._bind(call, formal, actual, frame, inner))
            for formal, actual in zip(function.results, results.items, strict=True)
        ]
        self._body(function, inner)
        for formal, value in copies:
            if isinstance(value, Register):
                self._transfer(call, "ld", inner.variables[id(formal)], value)

    def _bind(
        self, call: Instruction, formal: Variable, actual: Operand, frame: _Frame, inner: _Frame
    ) -> Operand | None:
        """Bind the formal variable to the caller's; for another operand make one and return it."""
        place = self._operand(actual, frame)
        if not isinstance(place, Symbol):
            self._adopt(formal, inner)
            return place
        if place.offset or place.variable.space != "local":
            raise EmulatorError(
                f"line {call.line}: {place.variable.name} cannot be passed to {formal.name}"
            )
        if place.variable.size < formal.size:
            raise EmulatorError(
                f"line {call.line}: {formal.name} has {formal.size} bytes, "
                f"{place.variable.name} {place.variable.size}"
            )
        inner.variables[id(formal)] = place.variable
        return None

    def _transfer(self, call: Instruction, opcode: str, variable: Variable, value: Operand) -> None:
        address = Address(Symbol(variable))
        operands = (value, address) if opcode == "ld" else (address, value)
        self._out.append(_rewritten(call, f"{opcode}.local.{variable.element}", operands))

    # Copies of instructions

    def _copied(self, instruction: Instruction, frame: _Frame) -> Instruction:
        """Give an instruction the frame's registers and variables; targets come later."""
        if not frame.suffix and not frame.variables:
            return instruction
        operands = tuple(self._operand(operand, frame) for operand in instruction.operands)
        guard = None if instruction.guard is None else frame.register(instruction.guard)
        copy = replace(instruction, operands=operands, guard=guard)
        if instruction.opcode in ("ld", "st") and _addresses_local(operands):
            modifiers = [_local_space(modifier) for modifier in instruction.modifiers]
            return _rewritten(copy, ".".join((instruction.opcode, *modifiers)), operands)
        return copy

    def _operand(self, operand: Operand, frame: _Frame) -> Operand:
        match operand:
            case Register():
                return frame.register(operand)
            case NotPredicate(register):
                return NotPredicate(frame.register(register))
            case Symbol(variable, offset):
                return Symbol(frame.variables.get(id(variable), variable), offset)
            case Vector(items):
                return Vector(tuple(self._operand(item, frame) for item in items))
            case Pair(first, second):
                return Pair(self._operand(first, frame), self._operand(second, frame))
            case Address(base, offset, coordinates):
                moved = self._operand(base, frame)
                inner = None if coordinates is None else self._operand(coordinates, frame)
                assert isinstance(moved, Register | Immediate | Symbol)
                assert inner is None or isinstance(inner, Vector)
                return Address(moved, offset, inner)
            case _:
                return operand


def _rewritten(instruction: Instruction, text: str, operands: tuple[Operand, ...]) -> Instruction:
    """Another instruction in the same place, under the same guard."""
    opcode, modifiers = split_opcode(text)
    return replace(instruction, text=text, opcode=opcode, modifiers=modifiers, operands=operands)


def _local_space(modifier: str) -> str:
    return "local" if modifier in ("param", "param::func") else modifier


def _addresses_local(operands: Iterable[Operand]) -> bool:
    """Whether a load or store names a local variable."""
    return any(
        isinstance(operand, Address)
        and isinstance(operand.base, Symbol)
        and operand.base.variable.space == "local"
        for operand in operands
    )
