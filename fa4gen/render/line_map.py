"""A map from the lines of a rendered file to the lines of its templates.

The files themselves carry no trace of their templates. When the compiler or the text checks
complain about a line, the kernel is rendered once more with every piece of template text tagged
by its place; the tags are then taken out again and leave the map.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinja2.ext import Extension
from jinja2.lexer import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2.lexer import TokenStream

# Characters that no template contains and that survive rendering unchanged.
_OPEN, _CLOSE = "\x01", "\x02"
_TAG = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*):([0-9]+){_CLOSE}")


class LineTags(Extension):
    """Writes ``<name:line>`` tags before text and expressions, and after each line end."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Tag the tokens of a template."""
        for token in stream:
            if token.type == "data":
                pieces = token.value.split("\n")
                tagged = "\n".join(
                    _tag(stream.name, token.lineno + i) + piece for i, piece in enumerate(pieces)
                )
                yield Token(token.lineno, "data", tagged)
            else:
                if token.type == "variable_begin":
                    yield Token(token.lineno, "data", _tag(stream.name, token.lineno))
                yield token


def split_tags(tagged: str, text: str) -> list[tuple[str, int] | None]:
    """Return (template name, line) for each line of ``text``, which ``tagged`` is with tags.

    A line without template text of its own is None. Where a filter measured or trimmed the tagged
    text so that it no longer has the lines of ``text``, all of it is None.
    """
    lines = tagged.split("\n")
    wanted = text.split("\n")
    if [_TAG.sub("", line).rstrip() for line in lines] != [line.rstrip() for line in wanted]:
        return [None] * len(wanted)
    return [_origin(line) for line in lines]


def _tag(name: str | None, line: int) -> str:
    return f"{_OPEN}{name}:{line}{_CLOSE}"


def _origin(line: str) -> tuple[str, int] | None:
    # The text before a tag belongs to the tag before it: the last tag ahead of the first character.
    origin = None
    for match in _TAG.finditer(line):
        before = _TAG.sub("", line[: match.start()])
        if origin is None or not before.strip():
            origin = (match[1], int(match[2]))
    return origin
