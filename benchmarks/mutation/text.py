"""C++ text as mutation rules read it: code without comments, tokens, operands and statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_HIDDEN = re.compile(
    r"(?P<other_target>^#else  // a pass of the build for another target.*\Z)"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')'
    r"|(?P<directive>^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)"
    r'|(?P<asm>(?<=\basm)(?: volatile)?\((?:"(?:\\.|[^"\\])*"|[^;"])*\);)'
    r"|(?P<assertion>\bstatic_assert\((?:\"(?:\\.|[^\"\\])*\"|[^;\"])*;)",
    re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(
    r"[A-Za-z_]\w*|\d[\w.]*|::|->|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[^\s\w]"
)
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_STATEMENT_BOUNDARIES = frozenset(
    {";", ",", "=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>=", "return"}
)
LOGIC_BOUNDARIES = _STATEMENT_BOUNDARIES | {"?", ":"}
"""What an operand of && and || does not reach across."""
SUM_BOUNDARIES = LOGIC_BOUNDARIES | {
    *("&&", "||", "==", "!=", "<=", ">=", "<", ">", "<<", ">>", "&", "|", "^", "!"),
}
"""What a term of a sum does not reach across."""
_OPERAND = re.compile(r"[\w)\]]")
_SIZES = r"\[[^\]]*\]"


@dataclass(frozen=True)
class Token:
    """A word, number, operator or bracket, and where it is."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Chain:
    """Operands with the operators between them: ``a && b && c``, ``a + b - c``."""

    operands: tuple[tuple[int, int], ...]
    """Start and end of each in the text."""
    operators: tuple[str, ...]

    @property
    def span(self) -> tuple[int, int]:
        """Start and end of the whole."""
        return self.operands[0][0], self.operands[-1][1]


@dataclass(frozen=True)
class CText:
    """A C++ or CUDA file."""

    raw: str

    @cached_property
    def code(self) -> str:
        """The text with blanks for comments, directives, assertions, and inside strings and asm."""
        return _HIDDEN.sub(_blank, self.raw)

    @cached_property
    def assembly(self) -> str:
        """The text with blanks for comments and directives, strings left as they are."""
        return _HIDDEN.sub(lambda m: m[0] if m["string"] or m["asm"] else _blank(m), self.raw)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of ``code``."""
        return tuple(Token(m[0], m.start(), m.end()) for m in _TOKEN.finditer(self.code))

    @cached_property
    def words(self) -> frozenset[str]:
        """All identifiers."""
        return frozenset(token.text for token in self.tokens if token.text[0].isalpha())

    @cached_property
    def floats(self) -> frozenset[str]:
        """Names of variables, arrays and members of type float."""
        declared = re.finditer(
            r"\bfloat\s*\(?[&*]?\s*(\w+)((?:\)?\[[^\]]*\])*(?:, \w+(?:\[[^\]]*\])*)*;)?", self.code
        )
        text = " ".join(f"{match[1]} {re.sub(_SIZES, '', match[2] or '')}" for match in declared)
        return frozenset(re.findall(r"[A-Za-z_]\w*", text))

    def closing(self, opening: int) -> int:
        """Return the place of the bracket that closes the one at ``opening``; -1 without one."""
        return next((end for _, end in self._levels(opening) if end >= 0), -1)

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """Return where each of the comma-separated expressions within a bracket starts and ends."""
        spans: list[tuple[int, int]] = []
        start = opening + 1
        for comma, end in self._levels(opening):
            spans.append(self.trimmed(start, comma if comma >= 0 else end))
            start = comma + 1
        return [span for span in spans if span[0] < span[1]]

    def expression_end(self, start: int, stops: Collection[str] = (";", ",")) -> int:
        """Return where an expression ends: at one of ``stops``, or the bracket that holds it."""
        depth = 0
        for match in _TOKEN.finditer(self.code, start):
            text = match[0]
            if depth == 0 and (text in stops or text in (")", "]", "}")):
                return self.trimmed(start, match.start())[1]
            depth += (text in _CLOSER) - (text in (")", "]", "}"))
        return start

    def trimmed(self, start: int, end: int) -> tuple[int, int]:
        """Return the span without blanks at either end, comments counted as blanks."""
        part = self.code[start:end]
        return start + len(part) - len(part.lstrip()), start + len(part.rstrip())

    def clean(self, start: int, end: int) -> str:
        """Return the text of a span; without its comments, where one would swallow what follows."""
        return self.code[start:end] if "//" in self.raw[start:end] else self.raw[start:end]

    def chains(self, operators: Collection[str], boundaries: Collection[str]) -> Iterator[Chain]:
        """Yield the chains of binary ``operators``, inner ones first."""
        stack = [_Level(0)]
        previous = ""
        for token in self.tokens:
            text, level = token.text, stack[-1]
            if text in _CLOSER:
                stack.append(_Level(token.end))
            elif text in (")", "]", "}"):
                yield from level.chain(self, token.start)
                if len(stack) > 1:
                    stack.pop()
                if text == "}":  # a block ends a statement without a semicolon
                    stack[-1].begin(token.end)
            elif text in operators and self._is_binary(token, previous):
                level.operands.append(self.trimmed(level.start, token.start))
                level.operators.append(text)
                level.start = token.end
            elif text in boundaries and (text not in "<>" or self._is_spaced(token)):
                yield from level.chain(self, token.start)
                level.begin(token.end)
            previous = text

    def _is_binary(self, token: Token, previous: str) -> bool:
        if token.text not in ("+", "-"):
            return True
        return bool(previous and _OPERAND.match(previous[-1])) and previous != "return"

    def _is_spaced(self, token: Token) -> bool:
        """Whether blanks are on both sides, as around comparisons but not template arguments."""
        return self.code[token.start - 1].isspace() and self.code[token.end].isspace()

    def _levels(self, opening: int) -> Iterator[tuple[int, int]]:
        """Yield (comma, -1) for each comma directly within a bracket, then (-1, its end)."""
        depth = 0
        for match in _TOKEN.finditer(self.code, opening):
            text = match[0]
            if text in _CLOSER:
                depth += 1
            elif text in (")", "]", "}"):
                depth -= 1
                if depth == 0:
                    yield -1, match.start()
                    return
            elif text == "," and depth == 1:
                yield match.start(), -1


@dataclass
class _Level:
    """The chain that is being read within one bracket."""

    start: int

    def __post_init__(self) -> None:
        self.operands: list[tuple[int, int]] = []
        self.operators: list[str] = []

    def begin(self, start: int) -> None:
        self.start, self.operands, self.operators = start, [], []

    def chain(self, text: CText, end: int) -> Iterator[Chain]:
        if self.operators:
            operands = [*self.operands, text.trimmed(self.start, end)]
            if all(start < stop for start, stop in operands):
                yield Chain(tuple(operands), tuple(self.operators))


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    if match["asm"]:
        opening = text.index("(") + 1
        return text[:opening] + re.sub(r"[^\n]", " ", text[opening:-2]) + text[-2:]
    if match["string"]:
        return text[0] + " " * (len(text) - 2) + text[-1]
    return re.sub(r"[^\n]", " ", text)
