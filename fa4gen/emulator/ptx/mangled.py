"""C++ names in reports: the name in ``_ZN1a4kernIiEEvPT_``, without arguments, not too long."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LONGEST: Final = 80
"""Characters of a name that are shown."""
_ENDING: Final = 20
"""The characters from the end of a long name that are kept."""
_MOST: Final = 20_000
"""Characters of a mangled name that is read at all."""

_QUALIFIERS: Final = "PROKVrCG"
_SIMPLE: Final = "vwbcahstijlmxynofdegz"
_WITH_D: Final = re.compile(r"D(?:[nisuacfdeh]|F16[_b])")
_SUBSTITUTION: Final = re.compile(r"S(?:[abdsio]|[0-9A-Z]*_)")
_PARAMETER: Final = re.compile(r"T[0-9]*_")
_OPERATOR: Final = re.compile(r"[a-z][a-zA-Z]")
_NUMBER: Final = re.compile(r"[0-9]+")
_DISCRIMINATOR: Final = re.compile(r"_[0-9]|__[0-9]+_")


@lru_cache(maxsize=256)
def shown_name(name: str) -> str:
    """A name for people: demangled where it can be, and cut in the middle where it is long."""
    text = name
    if name.startswith("_Z") and len(name) <= _MOST:
        try:
            text = _Reader(name).qualified()
        except (IndexError, ValueError, RecursionError):
            text = name  # something that is not read here
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _ENDING - 3]}...{text[-_ENDING:]}"


class _Reader:
    """Reads a mangled name (Itanium C++ ABI); ValueError or IndexError for unknown forms.

    Types and arguments are skipped: only their ends matter.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def qualified(self) -> str:
        """The name with its scopes."""
        self._expect("_Z")
        return "::".join(self._name())

    # ---- characters

    def _next(self) -> str:
        return self._text[self._at]

    def _accept(self, word: str) -> bool:
        if self._text.startswith(word, self._at):
            self._at += len(word)
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise ValueError(word)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(pattern.pattern)
        self._at = found.end()
        return found[0]

    # ---- names

    def _name(self) -> list[str]:
        if self._accept("Z"):
            scopes = self._name()
            while not self._accept("E"):
                self._type()
            if not self._accept("s"):  # a string literal has no name
                scopes = scopes + self._name()
            return scopes
        if self._accept("N"):
            while self._next() in "rVKRO":
                self._at += 1
            parts: list[str] = []
            while not self._accept("E"):
                self._part(parts)
            return parts
        parts = ["std"] if self._accept("St") else []
        self._part(parts)
        if self._at < len(self._text) and self._next() == "I":
            self._part(parts)
        found = _DISCRIMINATOR.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return parts

    def _part(self, parts: list[str]) -> None:
        """The next component of a name; template arguments belong to the one before."""
        self._accept("L")
        if self._next().isdigit():
            parts.append(self._word())
        elif self._accept("I"):
            self._arguments()
            parts[-1] += "<...>"
        elif self._accept("St"):
            parts.append("std")
        elif self._next() == "S":
            self._match(_SUBSTITUTION)
            parts.append("...")
        elif self._next() == "T":
            self._match(_PARAMETER)
            parts.append("...")
        elif self._next() in "CD" and self._text[self._at + 1].isdigit():
            parts.append(("~" if self._next() == "D" else "") + parts[-1])
            self._at += 2
        elif self._accept("Ul"):
            while not self._accept("E"):
                self._type()
            self._match(re.compile(r"[0-9]*_"))
            parts.append("lambda")
        elif self._accept("B"):
            self._word()
        else:
            operator = self._match(_OPERATOR)
            parts.append("operator()" if operator == "cl" else "operator")
            if operator == "cv":
                self._type()

    def _word(self) -> str:
        length = int(self._match(_NUMBER))
        word = self._text[self._at : self._at + length]
        if len(word) != length:
            raise ValueError(word)
        self._at += length
        return "(anonymous)" if word.startswith("_GLOBAL__N") else word

    # ---- skipped parts

    def _arguments(self) -> None:
        while not self._accept("E"):
            self._argument()

    def _argument(self) -> None:
        if self._accept("J"):
            self._arguments()
        elif self._accept("L"):
            if self._accept("_Z"):
                self._name()
                while not self._accept("E"):
                    self._type()
                return
            self._type()
            self._at = self._text.index("E", self._at) + 1
        else:
            self._type()

    def _type(self) -> None:
        while self._next() in _QUALIFIERS:
            self._at += 1
        first = self._next()
        if first in _SIMPLE:
            self._at += 1
        elif first in "NZ" or first.isdigit() or self._text.startswith(("St", "Ul"), self._at):
            self._name()
        elif first in "ST":
            self._match(_SUBSTITUTION if first == "S" else _PARAMETER)
            if self._accept("I"):
                self._arguments()
        elif self._accept("F"):
            while not self._accept("E"):
                self._type()
        elif self._accept("A"):
            self._match(_NUMBER)
            self._expect("_")
            self._type()
        elif self._accept("M"):
            self._type()
            self._type()
        elif self._accept("Dp"):
            self._type()
        elif self._accept("Dv"):
            self._match(_NUMBER)
            self._expect("_")
            self._type()
        else:
            self._match(_WITH_D)
