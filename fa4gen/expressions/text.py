"""The rules that every expression's text must keep before Python's parser reads it."""

from __future__ import annotations

import re

from fa4gen.expressions.words import ExpressionError

_BLANKS = re.compile(r"[ \t\r\n]+")
_NOT_POSSIBLE = {"#": "begins a comment", "\\": "joins lines", ";": "ends a statement"}


def tidy(text: str, what: str, most: int) -> str:
    """Return the text with single blanks.

    Raises ExpressionError for more than ``most`` characters, and for those that Python's parser
    would ignore or take for something else; ``what`` is its name, such as "an activation".
    """
    text = _BLANKS.sub(" ", text).strip(" ")
    if len(text) > most:
        raise ExpressionError(
            f"{text[:most]!r}... is too long: {len(text)} characters, at most {most}"
        )
    for place, character in enumerate(text, 1):
        if not " " <= character <= "~":
            code = f"U+{ord(character):04X}"
            raise ExpressionError(
                f"character {place} of {text!r} is {code}, which is not an ASCII character", place
            )
        if character in _NOT_POSSIBLE:
            raise ExpressionError(
                f"character {place} of {text!r}: {character} {_NOT_POSSIBLE[character]}, which is "
                f"not possible in {what}",
                place,
            )
    return text
