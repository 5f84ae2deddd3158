"""C as a vendored folder has it: indented by tabs, fewer bytes than spaces and alignment.

A line that continues a statement has two tabs more than where the statement begins. Comments behind
code are not aligned.
"""

from __future__ import annotations

import re

STEP = 2
"""Spaces of a level in the templates."""

_IN_COMMENT = re.compile(r"\*(?:[ /]|$)")
"""A line that continues a comment; a pointer that is written through is no such line."""
_ALIGNED = re.compile(r"(?<=\S) +(?= /\*|  //)")


def tabbed(text: str) -> str:
    """Return ``text``, indented by spaces, with tabs."""
    done = []
    level = 0
    for line in text.split("\n"):
        code = _ALIGNED.sub("", line.lstrip(" "))
        of_comment = " " if _IN_COMMENT.match(code) else ""
        spaces = len(line) - len(line.lstrip(" ")) - len(of_comment)
        if not code or spaces < 0:
            done.append(line)
            continue
        if spaces > STEP * (level + 1):
            tabs = level + 2
        else:
            tabs = spaces // STEP
            if not (of_comment or code.startswith("#")):
                level = tabs
        done.append("\t" * tabs + of_comment + code)
    return "\n".join(done)
