"""``.file`` and ``.loc``: which source line an instruction comes from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.ptx.syntax import SourceLine

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.tokens import Tokens

_FLAGS: Final = ("is_stmt", "basic_block", "prologue_end", "epilogue_begin", "isa", "discriminator")


class SourceLines:
    """The files of a module and the place the last ``.loc`` named."""

    def __init__(self, tokens: Tokens) -> None:
        # The .file directives often come last, after the .loc that need them.
        texts = tokens.texts
        self._files = {
            texts[at + 1]: re.split(r"[/\\]", texts[at + 2].strip('"'))[-1]
            for at, token in enumerate(texts)
            if token == ".file" and texts[at + 2 : at + 3]
        }
        self._places: dict[tuple[str, int, str], SourceLine] = {}
        self.current: SourceLine | None = None

    def forget(self) -> None:
        """Start a function: nothing is known of its first instructions."""
        self.current = None

    def loc(self, tokens: Tokens) -> None:
        """Take a ``.loc``; of inlined code its own place counts, not the call's."""
        tokens.expect(".loc")
        key = tokens.peek()
        tokens.natural("a file number")
        line = tokens.natural("a line")
        tokens.natural("a column")
        call = ""
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
                    call = f"{self._files.get(file, file)}:{numbers[1]}:{numbers[2]}"
                else:
                    tokens.position -= 1
                    raise tokens.unexpected("function_name or inlined_at")
            elif tokens.peek() in _FLAGS:
                tokens.next()
                if tokens.peek().isdigit():
                    tokens.next()
            else:
                break
        if key not in self._files:
            raise tokens.error(f"file {key} is not declared")
        place = (key, line, call)
        if place not in self._places:
            self._places[place] = SourceLine(self._files[key], line, call)
        # Line 0 marks code that no line of the source stands for.
        self.current = self._places[place] if line else None


def skip_file(tokens: Tokens) -> None:
    """Take ``.file 1 "name", timestamp, size``."""
    tokens.expect(".file")
    tokens.natural("a file number")
    if not tokens.peek().startswith('"'):
        raise tokens.unexpected("a file name in quotes")
    tokens.next()
    while tokens.accept(","):
        tokens.natural("a number")
