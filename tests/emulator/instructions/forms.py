"""All forms of the instructions that compute registers from registers.

The forms are found by asking: each translator of the registry runs under an emitter that writes
down how operands are read, while every question for a modifier is answered in all possible ways.
So a new instruction, or a new modifier, is among them without being listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from fa4gen.emulator.errors import EmulatorError
from fa4gen.emulator.instructions.scalar import cvt, floating_point, integer, logic, moves, packed
from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.ptx.syntax import Register, RegisterClass
from fa4gen.emulator.ptx.types import bits_of
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

FAMILIES = (integer, logic, floating_point, packed, cvt, moves)
MOST_OPERANDS = 5
_CLASSES: tuple[RegisterClass, ...] = ("h", "r", "d")


@dataclass(frozen=True)
class Form:
    """An opcode with its modifiers, and the register classes of its operands, as in ``rrh``."""

    text: str
    classes: str
    tail: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.classes}{self.tail}"

    @property
    def sources(self) -> list[str]:
        """The registers that are read."""
        return [f"{cls}{n}" for n, cls in enumerate(self.classes) if n]

    @property
    def line(self) -> str:
        """One instruction; the result is in the register of number 0 of its class."""
        names = [f"%{cls}{n}" for n, cls in enumerate(self.classes)]
        return f"{self.text} {', '.join(names)}{self.tail};"


# What needs literals.
LITERALS = (
    *(Form("lop3.b32", "rrrr", f", {table:#x}") for table in (0, 0x96, 0xE8, 0x1B, 0xC0, 255)),
    *(Form("prmt.b32", "rrr", f", {selector:#x}") for selector in (0x5410, 0x3210, 0x0F8B)),
    *(Form(f"shl.b{width}", cls * 2, ", 7") for width, cls in ((16, "h"), (32, "r"), (64, "d"))),
    *(Form(f"shr.s{width}", cls * 2, ", 99") for width, cls in ((16, "h"), (32, "r"), (64, "d"))),
    Form("max.f32", "rr", ", 0f00000000"),
    Form("add.f32", "rr", ", 0f7fa00000"),  # a signalling NaN
)


class _RefusalError(EmulatorError):
    """The error of a translator that refuses; its text is not used."""


class _Listener(Emitter):
    """Notes as which type each operand is read or written, and emits nothing."""

    def __init__(self) -> None:
        super().__init__(None, False, {})  # type: ignore[arg-type]
        self.kinds: dict[int, str] = {}

    def _note(self, operand: Any, kind: str) -> str:
        if not isinstance(operand, Register):
            raise _RefusalError("not a register")
        self.kinds[operand.index] = kind
        return "x"

    def get(self, operand: Any, kind: str) -> str:
        return self._note(operand, kind)

    def target(self, destination: Any, kind: str) -> str:
        return self._note(destination, kind)

    def reader(self, operand: Any, kind: str) -> Any:
        return self._note(operand, kind)

    def writer(self, operand: Any, kind: str) -> Any:
        return self._note(operand, kind)

    def refuse(self, reason: str) -> Any:
        return _RefusalError(reason)


class _Questions:
    """Answers every question for a modifier in all ways: one script of answers after the other."""

    def __init__(self) -> None:
        self.script: list[int] = []
        self.fits = False  # whether the number of operands was ever right
        self.restart()

    def restart(self) -> None:
        self.widths: list[int] = []
        self.taken: list[str] = []

    def choose(self, options: tuple[str, ...]) -> str | None:
        choices = (*options, None)
        place = len(self.widths)
        if place == len(self.script):
            self.script.append(0)
        self.widths.append(len(choices))
        found = choices[self.script[place]]
        if found is not None:
            self.taken.append(found)
        return found

    def advance(self) -> bool:
        """On to the next script; False after the last."""
        while self.script and self.script[-1] == self.widths[len(self.script) - 1] - 1:
            self.script.pop()
        if self.script:
            self.script[-1] += 1
        self.restart()
        return bool(self.script)


def _answers(
    questions: _Questions, translate: Translate, opcode: str, operands: tuple[Register, ...]
) -> Iterator[Any]:
    """(modifiers, types of the operands) of everything that a translator takes."""

    def end(self: Words, *counts: int) -> None:
        if len(operands) not in counts:
            raise _RefusalError("operands")
        questions.fits = True

    choose = patch.object(Words, "one", lambda self, *options: questions.choose(options))
    with choose, patch.object(Words, "end", end):
        more = True
        while more:
            listener = _Listener()
            instruction = SimpleNamespace(
                opcode=opcode, operands=operands, modifiers=questions.taken
            )
            try:
                translate(instruction, listener)  # type: ignore[arg-type]
            except EmulatorError:
                pass
            else:
                yield tuple(questions.taken), listener.kinds
            more = questions.advance()


def _class_of(kind: str) -> str:
    if kind == "pred":
        return "p"
    return {8: "h", 16: "h", 32: "r", 64: "d"}.get(bits_of(kind), "")


def _forms_of(opcode: str, translate: Translate, keys: list[tuple[str, ...]]) -> Iterator[Form]:
    """The forms that a translator takes under the words by which it is found."""
    for count in range(2, MOST_OPERANDS + 1):
        for cls in _CLASSES:
            operands = tuple(Register(f"%{cls}{n}", cls, n) for n in range(count))
            questions = _Questions()
            for words, kinds in _answers(questions, translate, opcode, operands):
                if sorted(kinds) != list(range(count)):
                    continue
                classes = [_class_of(kinds[n]) for n in range(count)]
                fitting = [key for key in keys if set(key) <= set(words)]
                if not all(classes) or not fitting:
                    continue
                first = max(fitting, key=len)
                rest = [word for word in words if word not in first]
                yield Form(".".join([opcode, *first, *rest]), "".join(classes))
            if not questions.fits:
                break


@cache
def translators() -> Mapping[tuple[str, Translate], list[tuple[str, ...]]]:
    """The words by which each translator of an opcode is found."""
    found: dict[tuple[str, Translate], list[tuple[str, ...]]] = defaultdict(list)
    for family in FAMILIES:
        for key, translate in family.TRANSLATIONS.items():
            opcode, *words = key.split(".")
            found[opcode, translate].append(tuple(words))
    return found


@cache
def forms(opcode: str, translate: Translate) -> tuple[Form, ...]:
    """The forms of a translator.

    Of those that differ only in which modifiers go together as many as it takes to have each two
    modifiers, and each modifier with each register class, together once.
    """
    chosen: dict[Form, None] = {}
    seen: set[tuple[str, ...]] = set()
    for form in _forms_of(opcode, translate, translators()[opcode, translate]):
        words = [*form.text.split("."), form.classes]
        pairs = set(combinations(words, 2)) - seen
        if pairs:
            seen |= pairs
            chosen[form] = None
    return tuple(chosen)


def opcodes() -> list[str]:
    """The first words of all such instructions."""
    return list(dict.fromkeys(opcode for opcode, _ in translators()))


def forms_of(opcode: str) -> tuple[Form, ...]:
    """Every form of an opcode once, and those with literals."""
    found = [form for form in LITERALS if form.text.split(".")[0] == opcode]
    for name, translate in translators():
        if name == opcode:
            found += forms(opcode, translate)
    return tuple(dict.fromkeys(found))


def all_forms() -> tuple[Form, ...]:
    """Every form once."""
    return tuple(chain.from_iterable(map(forms_of, opcodes())))
