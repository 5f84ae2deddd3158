"""The value of a bare word of a YAML file: YAML 1.2's rules, and remarks on where 1.1 differs.

Most people have met both versions. Where both read a word alike, that is its value; a number that
they read differently (``017``, ``1:30``) is refused rather than guessed at.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

Scalar = str | int | float | bool | None

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOLS = {
    **dict.fromkeys(("yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "off", "Off", "OFF"), False),
}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_OCTAL = re.compile(r"0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_SPECIAL_FLOATS = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))")
_LEADING_ZERO = re.compile(r"(?P<sign>[-+]?)0+(?P<digits>[0-9]+)")
_UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+")
# Longer numbers are errors, and conversion takes time quadratic in the length.
_MOST_DIGITS = 40


@dataclass(frozen=True)
class Meaning:
    """The value of a bare word, with what a message about it should explain."""

    value: Scalar
    note: str = ""
    """A note on how YAML came to this value, if that may surprise."""
    refusal: str = ""
    """Why the word is not accepted at all; ``value`` is then only a placeholder."""
    remedy: str = ""


def meaning_of(word: str) -> Meaning:
    """Return the value of ``word``, written without quotes."""
    if word in _NULLS:
        return Meaning(None, note="" if word else "Nothing was written after the colon.")
    if word in _BOOLS:
        return Meaning(_BOOLS[word])
    if word in _OLD_BOOLS:
        value = _OLD_BOOLS[word]
        return Meaning(value, f"YAML reads {word} as {str(value).lower()}; in quotes it is text.")
    return _number(word) or Meaning(word)


def _number(word: str) -> Meaning | None:
    if len(word) > _MOST_DIGITS:
        return None
    if _DECIMAL.fullmatch(word):
        return Meaning(int(word))
    if _HEXADECIMAL.fullmatch(word) or _OCTAL.fullmatch(word):
        return Meaning(int(word, 0))
    if match := _LEADING_ZERO.fullmatch(word):
        return _leading_zero(word, match["sign"], match["digits"])
    if _FLOAT.fullmatch(word):
        if math.isinf(float(word)):
            return Meaning(
                0,
                refusal=f"{word} is beyond what a number can be",
                remedy="Write .inf for infinity.",
            )
        return Meaning(float(word))
    if _SPECIAL_FLOATS.fullmatch(word):
        return Meaning(float(word.replace(".", "")))
    if _UNDERSCORES.fullmatch(word):
        plain = word.replace("_", "")
        return Meaning(
            0,
            refusal=f"{word} is a number in YAML 1.1 and text in YAML 1.2",
            remedy=f"Write {plain}.",
        )
    if _SEXAGESIMAL.fullmatch(word):
        return Meaning(
            0,
            refusal=f"{word} is a number to base 60 in YAML 1.1 and text in YAML 1.2",
            remedy=f'Write the number in digits, or "{word}" in quotes for text.',
        )
    return None


def _leading_zero(word: str, sign: str, digits: str) -> Meaning:
    decimal = f"{sign}{int(digits)}"
    if set(digits) <= set("01234567"):
        octal = f"{sign}{int(digits, 8)}"
        if octal == decimal:
            return Meaning(int(decimal))
        return Meaning(
            0,
            refusal=f"{word} is octal in YAML 1.1 ({octal}) and decimal in YAML 1.2 ({decimal})",
            remedy=f"Write {octal} or {decimal}, whichever you mean.",
        )
    return Meaning(
        0,
        refusal=f"{word} is text in YAML 1.1 and the number {decimal} in YAML 1.2",
        remedy=f"Write {decimal}.",
    )
