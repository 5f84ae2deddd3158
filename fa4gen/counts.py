"""Numbers of things in messages: "1 case", "2 cases"."""

from __future__ import annotations

_IRREGULAR = {"consumer": "consumer", "entry": "entries", "was": "were", "is": "are", "has": "have"}


def counted(number: int, what: str) -> str:
    """Return ``number`` and the words ``what``, all of them in the plural where it is not 1.

    Words are in the singular: counted(2, "kernel was") is "2 kernels were". A consumer belongs to
    the word after it: "2 consumer warpgroups".
    """
    if number != 1:
        what = " ".join(_IRREGULAR.get(word, f"{word}s") for word in what.split(" "))
    return f"{number} {what}"
