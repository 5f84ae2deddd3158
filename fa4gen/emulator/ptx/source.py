"""``.file`` and ``.loc``: which source line an instruction comes from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.ptx.syntax import SourceLine

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.tokens import Tokens

_DEEPEST: Final = 32
"""Calls inlined into each other that are followed."""
_FLAGS: Final = ("is_stmt", "basic_block", "prologue_end", "epilogue_begin", "isa", "discriminator")


class SourceLines:
    """The files of a module and the place the last ``.loc`` named."""

    def __init__(self, tokens: Tokens) -> None:
        # The .file directives often come last, after the .loc that need them.
        texts = tokens.texts
        self._paths = {
            texts[at + 1]: texts[at + 2].strip('"')
            for at, token in enumerate(texts)
            if token == ".file" and texts[at + 2 : at + 3]
        }
        self._places: dict[tuple[str, int, str, tuple[SourceLine, ...]], SourceLine] = {}
        # of each place of a function that was named: where it was inlined, when it was named last
        self._calls: dict[tuple[str, int, int], tuple[SourceLine, ...]] = {}
        self.current: SourceLine | None = None

    def forget(self) -> None:
        """Start a function: nothing is known of its first instructions."""
        self.current = None
        self._calls.clear()

    def loc(self, tokens: Tokens) -> None:
        """Take a ``.loc``; of inlined code its own place counts, not the call's."""
        tokens.expect(".loc")
        key = tokens.peek()
        tokens.natural("a file number")
        line = tokens.natural("a line")
        column = tokens.natural("a column")
        call = ""
        calls: tuple[SourceLine, ...] = ()
        while True:
            if tokens.accept(","):
                word = tokens.peek()
                tokens.next()
                if word == "function_name":
                    tokens.word("a label")
                    if tokens.accept("+"):
                        tokens.natural("an offset")
                elif word == "inlined_at":
                    file = tokens.peek()
                    numbers = [
                        tokens.natural(what) for what in ("a file number", "a line", "a column")
                    ]
                    around = self._calls.get((file, numbers[1], numbers[2]), ())
                    calls = (self._place(file, numbers[1], "", ()), *around)[:_DEEPEST]
                    call = f"{calls[0]}:{numbers[2]}"
                else:
                    tokens.position -= 1
                    raise tokens.unexpected("function_name or inlined_at")
            elif tokens.peek() in _FLAGS:
                tokens.next()
                if tokens.peek().isdigit():
                    tokens.next()
            else:
                break
        if key not in self._paths:
            raise tokens.error(f"file {key} is not declared")
        self._calls[key, line, column] = calls
        # Line 0 marks code that no line of the source stands for.
        self.current = self._place(key, line, call, calls) if line else None

    def _place(self, key: str, line: int, call: str, calls: tuple[SourceLine, ...]) -> SourceLine:
        place = (key, line, call, calls)
        if place not in self._places:
            path = self._paths.get(key, key)
            file = re.split(r"[/\\]", path)[-1]
            self._places[place] = SourceLine(file, line, call, path, calls)
        return self._places[place]


def skip_file(tokens: Tokens) -> None:
    """Take ``.file 1 "name", timestamp, size``."""
    tokens.expect(".file")
    tokens.natural("a file number")
    if not tokens.peek().startswith('"'):
        raise tokens.unexpected("a file name in quotes")
    tokens.next()
    while tokens.accept(","):
        tokens.natural("a number")
