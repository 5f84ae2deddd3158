"""PTX text cut into tokens, and a cursor over them."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from fa4gen.emulator.errors import PtxSyntaxError

# One match per token, with the blanks and comments before it. Dotted words are one token, so an
# opcode comes whole; directives come one component at a time. The end of the text matches empty.
_TOKEN: Final = re.compile(
    r"""
    (?: \s+ | //[^\n]* | /\*.*?\*/ )*+
    (
        [%$A-Za-z_] [\w$]* (?: (?: \. | :: ) [\w$]+ )*
      | \. [A-Za-z_] \w* (?: :: \w+ )*
      | 0[fF][0-9A-Fa-f]{8} | 0[dD][0-9A-Fa-f]{16}
      | 0[xX][0-9A-Fa-f]+U? | 0[bB][01]+U?
      | \d+ \. \d* (?: [eE][+-]?\d+ )? | \d+ [eE][+-]?\d+ | \d+U?
      | "[^"\n]*"
      | << | >>
      | \Z
      | .
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_NEWLINE: Final = re.compile("\n")
_WORD: Final = re.compile(r"[%$A-Za-z_][\w$]*", re.ASCII)

END: Final = ""
MAX_DEPTH: Final = 100
"""Brackets, braces and signs inside each other: far more than any compiler writes."""
_SHOWN: Final = 200  # characters of a token in a message
_MOST: Final = 2**63 - 1  # sizes and counts


def is_word(token: str) -> bool:
    """Whether the token can name something: no dots, no punctuation."""
    return _WORD.fullmatch(token) is not None


def shown(token: str) -> str:
    """A token as messages show it."""
    return token if len(token) <= _SHOWN else f"{token[:_SHOWN]}... ({len(token)} characters)"


def _found(token: str) -> str:
    return repr(shown(token)) if token else "the end of the text"


class Tokens:
    """A cursor over the tokens of a text; the last one is always END."""

    __slots__ = ("_depth", "_newlines", "_starts", "position", "texts")

    def __init__(self, text: str) -> None:
        self.texts: list[str] = []
        self._starts: list[int] = []
        self._newlines = [match.start() for match in _NEWLINE.finditer(text)]
        self.position = 0
        self._depth = 0
        for match in _TOKEN.finditer(text):
            token = match[1]
            self.texts.append(token)
            self._starts.append(match.start(1))
            if not token:
                break
            if token == "/" and text.startswith("/*", match.start(1)):
                self.position = len(self.texts) - 1
                raise self.error("a comment begins with /* and does not end")

    def deeper(self) -> None:
        """Note that the next tokens are inside one more bracket, brace or sign."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} brackets, braces or signs inside each other")

    def back(self) -> None:
        """Note the end of a level that ``deeper`` began."""
        self._depth -= 1

    def line(self) -> int:
        """Return the line of the next token, from 1."""
        return bisect_right(self._newlines, self._starts[self.position]) + 1

    def peek(self, ahead: int = 0) -> str:
        """Return a token without taking it."""
        return self.texts[min(self.position + ahead, len(self.texts) - 1)]

    def next(self) -> str:
        """Take a token."""
        token = self.texts[self.position]
        if token:
            self.position += 1
        return token

    def accept(self, token: str) -> bool:
        """Take the next token if it is this one."""
        if self.texts[self.position] != token:
            return False
        self.position += 1
        return True

    def expect(self, token: str) -> None:
        """Take exactly this token."""
        if self.texts[self.position] != token:
            raise self.unexpected(repr(token))
        self.position += 1

    def word(self, what: str) -> str:
        """Take a name; ``what`` says for the message what is named."""
        token = self.texts[self.position]
        if not is_word(token):
            raise self.unexpected(what)
        self.position += 1
        return token

    def natural(self, what: str) -> int:
        """Take an unsigned integer."""
        token = self.texts[self.position]
        try:
            value = int(token.removesuffix("U"), 0)
        except ValueError:
            raise self.unexpected(what) from None
        if value > _MOST:
            raise self.error(f"expected {what}, found one above {_MOST}")
        self.position += 1
        return value

    def skip_past(self, closing: str) -> None:
        """Take everything up to and including the next ``closing``."""
        try:
            self.position = self.texts.index(closing, self.position) + 1
        except ValueError:
            self.position = len(self.texts) - 1
            raise self.unexpected(repr(closing)) from None

    def error(self, message: str) -> PtxSyntaxError:
        """Make an error at the next token."""
        return PtxSyntaxError(message, self.line())

    def unexpected(self, expected: str) -> PtxSyntaxError:
        """Make an error that names the next token and the expected one."""
        return self.error(f"expected {expected}, found {_found(self.texts[self.position])}")
