"""Kinds of mutation rules: where each finds something to change in a file, and what it writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutation.text import CText

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_DECLARES = re.compile(r"(?<!return)(?<!else)(?<!case)(?<=[\w>])[&*]* $")
"""The text before a name that is declared, not used."""
_PARAMETER = re.compile(r"(?:const )?[\w:]+[&*]* \(?[&*]?\w+\)?(?:\[[^\]]*\])*")
_OF_INTEGERS = re.compile(r"\bu?int\d* $")
"""The text before a name that is declared as an integer here, whatever it is elsewhere."""
_DECLARES_ARRAY = re.compile(
    r"(?:\b(?:u?int\d*|u?int\d+_t|size_t|float\d?|double|char|bool|\w+_\w+)\b [^;=,()]*"
    r"|\([&*]\w+\)(?:\[[^\]]*\])*)$"
)
"""The text before a bracket that gives an array's size, not an element."""


@dataclass(frozen=True)
class Edit:
    """Replaces the text from ``start`` to ``end`` by ``new``."""

    start: int
    end: int
    new: str

    def of(self, text: str) -> str:
        """Return ``text`` with the change."""
        return text[: self.start] + self.new + text[self.end :]


class Finder(Protocol):
    """Finds what a rule may change."""

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield every single change that the rule makes to a file."""


@dataclass(frozen=True)
class Words:
    """Replaces each match of ``pattern`` by each of ``new``; in strings with ``in_assembly``."""

    pattern: str
    new: tuple[str, ...]
    in_assembly: bool = False

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the replacements."""
        for match in re.finditer(self.pattern, text.assembly if self.in_assembly else text.code):
            for new in self.new:
                yield Edit(match.start(), match.end(), match.expand(new))


@dataclass(frozen=True)
class Calls:
    """Replaces whole calls, ``pattern`` up to the opening bracket, by ``new`` of their arguments.

    ``new`` has {0} for the first argument and so on.
    """

    pattern: str
    new: tuple[str, ...]

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the replacements."""
        for match in re.finditer(self.pattern, text.code):
            spans = text.arguments(match.end() - 1)
            arguments = [text.clean(*span) for span in spans]
            end = text.closing(match.end() - 1) + 1
            for new in self.new if len(arguments) == 2 else ():
                yield Edit(match.start(), end, new.format(*arguments))


@dataclass(frozen=True)
class Arguments:
    """Replaces arguments ``first`` to ``last`` of calls by each of ``new``, with {} for itself."""

    pattern: str
    new: tuple[str, ...]
    first: int = 0
    last: int | None = None
    floats: bool = False
    """Only those that are elements of float variables."""

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the replacements."""
        for match in re.finditer(self.pattern, text.code):
            for span in text.arguments(match.end() - 1)[self.first : self.last]:
                argument = text.clean(*span)
                is_float = bool(text.floats & set(_NAME.findall(argument)))
                if _PARAMETER.fullmatch(argument) or (self.floats and not is_float):
                    continue
                for new in self.new:
                    yield Edit(*span, new.format(argument))


@dataclass(frozen=True)
class Subscripts:
    """Replaces array indices by each of ``new``, with {} for the index."""

    new: tuple[str, ...]

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the replacements."""
        for match in re.finditer(r"(?<=[\w\])])\[", text.code):
            line_start = text.code.rfind("\n", 0, match.start()) + 1
            if _DECLARES_ARRAY.search(text.code[line_start : match.start()]):
                continue
            for span in text.arguments(match.start()):
                for new in self.new:
                    yield Edit(*span, new.format(text.clean(*span)))


@dataclass(frozen=True)
class Expressions:
    """Replaces the expression that begins after ``pattern`` by each of ``new``, with {} for it."""

    pattern: str
    new: tuple[str, ...]
    stops: tuple[str, ...] = (";", ",")
    floats: bool = False
    """Only where the pattern's first group names a float variable."""

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the replacements."""
        for match in re.finditer(self.pattern, text.code):
            if self.floats and (
                match[1] not in text.floats or _OF_INTEGERS.search(text.code, 0, match.start())
            ):
                continue
            start, end = match.end(), text.expression_end(match.end(), self.stops)
            if end <= start:
                continue
            for new in self.new:
                yield Edit(start, end, new.format(text.clean(start, end)))


@dataclass(frozen=True)
class FloatReturns:
    """Replaces what functions of type float return by ``new``, with {} for it."""

    new: str

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the replacements."""
        for match in re.finditer(r"\bfloat \w+\([^;{}]*\)(?: const)? \{", text.code):
            body = text.code[match.end() : text.closing(match.end() - 1)]
            for found in re.finditer(r"\breturn ", body):
                start = match.end() + found.end()
                end = text.expression_end(start)
                yield Edit(start, end, self.new.format(text.clean(start, end)))


@dataclass(frozen=True)
class Statements:
    """Drops the statements that begin with ``pattern``."""

    pattern: str
    containing: str = ""
    """A pattern of what they have to contain, strings included."""

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the deletions."""
        for match in re.finditer(self.pattern, text.code):
            before = text.code[: match.start()].rstrip()
            if not before.endswith((";", "{", "}", ")", "else")):
                continue
            end = text.expression_end(match.start(), (";",))
            if re.search(self.containing, text.assembly[match.start() : end]):
                yield Edit(match.start(), end, "")


@dataclass(frozen=True)
class Terms:
    """Drops each operand of a chain of ``operators``."""

    operators: tuple[str, ...]
    boundaries: frozenset[str]

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the chains without one operand."""
        for chain in text.chains(self.operators, self.boundaries):
            for dropped in range(len(chain.operands)):
                new = ""
                for number, span in enumerate(chain.operands):
                    if number == dropped:
                        continue
                    operator = chain.operators[number - 1] if number else ""
                    if new:
                        new += f" {operator} "
                    elif operator == "-":
                        new = "-"
                    new += text.clean(*span)
                yield Edit(*chain.span, new)


@dataclass(frozen=True)
class Choices:
    """Replaces the condition of ``a ? b : c`` by each of ``new``."""

    new: tuple[str, ...]
    boundaries: frozenset[str]

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the replacements."""
        for chain in text.chains(("?",), self.boundaries):
            for new in self.new:
                yield Edit(*chain.operands[0], new)


@dataclass(frozen=True)
class Names:
    """Exchanges a word in identifiers that match ``pattern`` for a neighbour in ``neighbours``.

    Identifiers that match ``but`` are left out, and so are those that would get a name which the
    file does not have.
    """

    pattern: str
    neighbours: tuple[tuple[str, str], ...]
    but: str = r"(?!)"

    def find(self, text: CText) -> Iterator[Edit]:
        """Yield the exchanges."""
        for token in text.tokens:
            if not re.search(self.pattern, token.text) or re.search(self.but, token.text):
                continue
            line_start = text.code.rfind("\n", 0, token.start) + 1
            if _DECLARES.search(text.code[line_start : token.start]):
                continue
            for new in self._others(token.text):
                if new in text.words:
                    yield Edit(token.start, token.end, new)

    def _others(self, name: str) -> Iterator[str]:
        for match in _PART.finditer(name):
            for other in self._partners.get(match[0].lower(), ()):
                part = other.capitalize() if match[0][0].isupper() else other
                yield name[: match.start()] + part + name[match.end() :]

    @cached_property
    def _partners(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one, other in self.neighbours:
            found.setdefault(one, []).append(other)
            found.setdefault(other, []).append(one)
        return found
