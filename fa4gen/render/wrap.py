"""Breaks the long lines of a rendered file: their length depends on names, shapes and counts.

Only blanks between the tokens of C++ become line ends, a string becomes two adjacent ones, and a
comment continues in the next line: the compiler sees the same program. Lines that fit stay as their
template has them. Preprocessor lines are left alone, but for the text of a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_COLUMNS = 100
_NEVER = 9.0
"""The cost of a break that is taken only without an alternative."""
_GAP = re.compile(r"\S {2,}(?=\S)")
_MESSAGE = "#pragma message( \\"
_INLINE = re.compile(r"^( *)((?:\w+ )*__device__ .*\)(?: const)?) \{ (.+) \}$")
_GUARD = re.compile(r"^ *(?:(?:\} )?else )?(?:if(?: constexpr)?|for|while) \(")
_BRACKET = re.compile(r"[()\[\]{}<>]")
_OPENING = {")": "(", "]": "[", "}": "{"}
_OPERANDS = re.compile(r"^ *::? ?")
_BEFORE = {"?": 1.0, ":": 1.0}
_AFTER = {
    "||": 1.0, "&&": 1.1, "|": 1.2, "==": 1.2, "!=": 1.2, "<": 1.2, ">": 1.2, "<=": 1.2, ">=": 1.2,
    "+": 1.4, "-": 1.4, "<<": 1.5, ">>": 1.5, "=": 1.6, "*": 1.8, "/": 1.8, "%": 1.8,
}  # fmt: skip
"""The cost of a break before or after a word: operators that bind least go first."""
_AFTER_BRACKET = 4.0


@dataclass(frozen=True)
class Line:
    """A line, and the line (from 0) of the text before that it came from."""

    text: str
    origin: int


@dataclass(frozen=True)
class _Bracket:
    """An open bracket: the old and the new column of its contents."""

    character: str
    was: int
    column: int
    is_list: bool
    """Whether its contents begin in its line; after others, what follows has an indentation."""


@dataclass(frozen=True)
class _Break:
    """A place where a line may end: the next one continues at ``rest``, indented to ``column``."""

    end: int
    rest: int
    depth: int
    cost: float
    column: int
    open_brackets: tuple[int, ...]


def wrap(text: str) -> list[Line]:
    """Return the lines of ``text``, each of MAX_COLUMNS or less wherever a break is possible.

    Lines that continue inside a bracket start in the bracket's column.
    """
    lines = text.split("\n")
    done: list[Line] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        above = lines[number - 1] if number else ""
        if above == _MESSAGE and len(line) > MAX_COLUMNS:
            done += [Line(piece, number) for piece in _message(line)]
            number += 1
        elif len(line) <= MAX_COLUMNS or line.startswith("#") or "\\" in (line[-1:], above[-1:]):
            done.append(Line(line, number))
            number += 1
        elif line.lstrip().startswith("//"):
            filled, number = _comment(lines, number)
            done += filled
        else:
            pieces, number = _statement(lines, number)
            done += pieces
    return list(_aligned(done))


def _aligned(lines: Sequence[Line]) -> Iterator[Line]:
    """Move lines inside a bracket to its column: templates do not know the lengths of names.

    Four columns more, for the operands of an operator, remain four; operands of ``asm`` remain.
    Where the bracket's own line ends with it, the others are four columns from that line's first.
    """
    brackets: list[_Bracket] = []
    above = ""
    for line in lines:
        text = line.text
        if text.startswith("#") or "\\" in (text[-1:], above[-1:]) or not text.strip():
            above = text
            yield line
            continue
        above = text
        in_block = not brackets or (brackets[-1].character == "{" and not brackets[-1].is_list)
        if in_block and _closed(text) and "<" not in text:
            yield line
            continue
        indent = len(text) - len(text.lstrip())
        column = _column(text, indent, brackets[-1]) if brackets else indent
        pieces = [" " * column + text[indent:]]
        if column > indent and len(pieces[0]) > MAX_COLUMNS:
            columns = tuple(bracket.column for bracket in brackets)
            pieces = [text] if split_comment(text)[1] else _code(pieces[0], columns, True)
            if max(map(len, pieces)) > MAX_COLUMNS:
                pieces = [text]
        for piece in pieces:
            _track(brackets, piece, len(piece) - len(piece.lstrip()) - indent)
            yield Line(piece, line.origin)


def _column(text: str, indent: int, inside: _Bracket) -> int:
    """Return the column of a line that begins inside a bracket."""
    if text[indent] in ")]}?" or (text[indent] == ":" and inside.is_list):
        return indent
    if not inside.is_list:
        return indent if indent < inside.was else indent + inside.column - inside.was
    if indent in (inside.was, inside.was + 4):
        return indent + inside.column - inside.was
    return indent if text[indent] == "/" else inside.column


def _track(brackets: list[_Bracket], line: str, shift: int) -> None:
    """Bring the open brackets up to date with a line that moved by ``shift`` columns."""
    for start, end, is_string in _pieces(line):
        for match in () if is_string else _BRACKET.finditer(line, start, end):
            i, character = match.start(), match[0]
            if character in "([{" or (character == "<" and _opens_template(line[:i])):
                is_list = bool(split_comment(line[i + 1 :])[0].strip())
                column = i + 1
                if line.endswith("("):
                    column = len(line) - len(line.lstrip()) + 4
                elif line[:i].endswith(("asm", "asm volatile")):
                    is_list = False
                brackets.append(_Bracket(character, i + 1 - shift, column, is_list))
            elif character in ")]}":
                while brackets and brackets.pop().character != _OPENING[character]:
                    pass
            elif brackets and brackets[-1].character == "<" and line[i - 1 : i] not in ("-", "="):
                brackets.pop()


def _opens_template(before: str) -> bool:
    """Whether a ``<`` after this text is a bracket."""
    return before[-1:].isalnum() or before.endswith(("_", "template "))


def _message(line: str) -> list[str]:
    """Return the text of a pragma's message as strings that compilers join."""
    end = " \\"
    pieces = _split_string(line, (), MAX_COLUMNS - len(end))
    return [*(piece + end for piece in pieces[:-1]), pieces[-1]] if pieces else [line]


def split_comment(line: str) -> tuple[str, str]:
    """Return code and trailing comment of a line; the comment begins with ``//`` or is empty."""
    for start, end, is_string in _pieces(line):
        if not is_string and (at := line.find("//", start, end)) >= 0:
            return line[:at].rstrip(), line[at:]
    return line, ""


def _comment(lines: Sequence[str], number: int) -> tuple[list[Line], int]:
    """Fill a comment of its own; what is too much goes to the lines of its paragraph below it."""
    line = lines[number]
    indent = len(line) - len(line.lstrip())
    gap = next((m.end() for m in _GAP.finditer(line, indent + 3, indent + 60)), 0)
    listed = line[indent + 3 :].startswith(" ")
    prefix = (
        " " * indent
        + "//"
        + " "
        * (gap - indent - 2 if gap else len(line[indent + 2 :]) - len(line[indent + 2 :].lstrip()))
    )
    if listed and not gap:
        prefix += "  "
    done = []
    while len(line) > MAX_COLUMNS:
        at = line.rfind(" ", len(prefix) + 1, MAX_COLUMNS + 1)
        at = at if at >= 0 else line.find(" ", MAX_COLUMNS)  # behind a word that is too long
        if at < 0:
            break
        done.append(Line(line[:at], number))
        line = prefix + line[at + 1 :]
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if not gap and _goes_on(below, prefix):
            number += 1
            line += " " + below[len(prefix) :]
    return [*done, Line(line, number)], number + 1


def _goes_on(line: str, prefix: str) -> bool:
    """Whether ``line`` is a further line of the paragraph that ``prefix`` begins."""
    rest = line[len(prefix) :]
    return line.startswith(prefix) and bool(re.match(r"[\w`(]", rest)) and not _GAP.search(rest)


def _statement(lines: Sequence[str], number: int) -> tuple[list[Line], int]:
    """Break a line of code; the rest goes to the line below where that continues with the list."""
    line = lines[number]
    code, comment = split_comment(line)
    if comment:
        column = line.index(comment, len(code))
        if column <= MAX_COLUMNS // 2:
            first, *more = _filled(comment, column)
            filled = [line[:column] + first, *(" " * column + piece for piece in more)]
            return [Line(piece, number) for piece in filled], number + 1
    indent = len(line) - len(line.lstrip())
    above = [" " * indent + piece for piece in _filled(comment, indent)] if comment else []
    goes_on = number > 0 and _goes_on_in_next(split_comment(lines[number - 1])[0])
    done = [Line(piece, number) for piece in [*above, *_code(code, (), goes_on)]]
    while not comment and number + 1 < len(lines):
        last, below = done[-1].text, lines[number + 1]
        column = len(last) - len(last.lstrip())
        listed = last.endswith(",") and below.startswith(" " * column) and below[column:].strip()
        starts = below[column : column + 1] not in (" ", ":", "}", ")", "/", "")
        if not (listed and starts and "//" not in below) or column == 0:
            break
        number += 1
        done[-1:] = [
            Line(piece, done[-1].origin) for piece in _code(f"{last} {below.lstrip()}", (), True)
        ]
    return done, number + 1


def _goes_on_in_next(code: str) -> bool:
    """Whether a line of code ends within a statement."""
    return bool(code) and not code.endswith((";", "{", "}", ":", ">"))


def _filled(comment: str, column: int) -> list[str]:
    """Return a trailing comment as comments that fit behind ``column``."""
    pieces = [""]
    for word in comment.removeprefix("//").split():
        if pieces[-1] and column + 3 + len(pieces[-1]) + 1 + len(word) > MAX_COLUMNS:
            pieces.append(word)
        else:
            pieces[-1] = f"{pieces[-1]} {word}".strip()
    return [f"// {piece}" for piece in pieces]


def _code(line: str, open_brackets: tuple[int, ...], goes_on: bool = False) -> list[str]:
    """Break a line of code; ``goes_on``: it is not the first of its statement."""
    if len(line) <= MAX_COLUMNS:
        return [line]
    if not goes_on and (match := _INLINE.match(line)) and _closed(match[2]):
        indent, head = match[1], match[2]
        body = [piece for part in _statements(match[3]) for piece in _code(f"{indent}  {part}", ())]
        return [*_code(f"{indent}{head} {{", ()), *body, indent + "}"]
    possible = [
        b
        for b in _breaks(line, open_brackets, goes_on)
        if b.end <= MAX_COLUMNS and b.column < b.rest  # else the rest is as long as the line
    ]
    best = min(possible, key=lambda b: (b.cost >= _NEVER, b.depth, b.cost, -b.end), default=None)
    if best is None or best.cost >= _AFTER_BRACKET:
        pieces = _split_string(line, open_brackets)
        if pieces or best is None or best.cost >= _NEVER:
            return pieces or [line]
    rest = " " * best.column + line[best.rest :]
    return [line[: best.end], *_code(rest, best.open_brackets, True)]


def _breaks(line: str, open_brackets: tuple[int, ...], goes_on: bool) -> Iterator[_Break]:
    """Yield the places between tokens where ``line`` may end."""
    indent = len(line) - len(line.lstrip())
    operands = _OPERANDS.match(line)
    outer = operands.end() if operands else indent + (0 if goes_on else 4)
    guard = _GUARD.match(line) if not goes_on else None
    brackets = list(open_brackets)
    for start, end, is_string in _pieces(line):
        for i in range(start, start if is_string else end):
            _follow(brackets, line, i)
            if line[i] == "(" and line[i + 1 : i + 2] not in (")", ""):
                inside = (*brackets[:-1], indent + 4)
                yield _Break(i + 1, i + 1, len(brackets), _AFTER_BRACKET, indent + 4, inside)
            elif line[i] == " " and i > indent and line[i + 1 : i + 2] not in ("", " "):
                cost, column = _cost(line, i), brackets[-1] if brackets else outer
                if guard and not brackets and line[i - 1] == ")" and line[i + 1] not in "{&|":
                    cost, column = 0.5, indent + 2
                yield _Break(i, i + 1, len(brackets), cost, column, tuple(brackets))


def _follow(brackets: list[int], line: str, i: int) -> None:
    """Bring the columns behind the open brackets up to date with the character at ``i``."""
    character, before = line[i], line[:i]
    if character in "([{" or (character == "<" and _opens_template(before)):
        brackets.append(i + 1)
    elif brackets and (
        character in ")]}" or (character == ">" and before[-1:] not in (" ", "-", "="))
    ):
        brackets.pop()


def _cost(line: str, blank: int) -> float:
    """Return the cost of a break at a blank, by the words on either side of it."""
    before, after = line[:blank].rsplit(" ", 1)[-1], line[blank + 1 :].split(" ", 1)[0]
    if before.endswith((",", ";")) or (before.endswith('"') and after.startswith('"')):
        return 0.0
    if before in _BEFORE or before.endswith(("(", "[")):
        return _NEVER
    return _BEFORE.get(after, _AFTER.get(before, _NEVER))


def _split_string(
    line: str, open_brackets: tuple[int, ...], most_columns: int = MAX_COLUMNS
) -> list[str]:
    """Return the line with its too long string as two; [] for a line without one."""
    for start, end, is_string in _pieces(line):
        if not is_string or end <= most_columns:
            continue
        at = line.rfind(" ", start + 2, most_columns)
        if start >= MAX_COLUMNS - 20 or at < 0:
            return []
        rest = " " * start + '"' + line[at:]
        if len(rest) >= len(line):
            return []
        brackets = list(open_brackets)
        for first, last, quoted in _pieces(line[:start]):
            for i in range(first, first if quoted else last):
                _follow(brackets, line, i)
        return [line[:at] + '"', *_code(rest, tuple(brackets), True)]
    return []


def _statements(body: str) -> list[str]:
    """Return the statements of a body that stands in one line."""
    parts, start, depth = [], 0, 0
    for i, character in enumerate(body):
        depth += (character in "([{") - (character in ")]}")
        if character == ";" and depth == 0:
            parts.append(body[start : i + 1].strip())
            start = i + 1
    return [part for part in [*parts, body[start:].strip()] if part]


def _closed(code: str) -> bool:
    """Whether every bracket of ``code`` is closed in it."""
    return all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}"))


def _pieces(line: str) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, is a string) of the strings of a line, and of the text between them."""
    start = 0
    for match in re.finditer(r'//.*|"(?:[^"\\]|\\.)*"', line):
        if match[0].startswith("//"):
            break
        if match.start() > start:
            yield start, match.start(), False
        yield match.start(), match.end(), True
        start = match.end()
    if start < len(line):
        yield start, len(line), False
