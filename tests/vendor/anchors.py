"""Anchors of edits, written as the templates are, in the words of vendored files."""

from __future__ import annotations

import re


def with_tabs(text: str) -> str:
    """``text`` with a tab for every two spaces that a line begins with."""
    return re.sub(r"^(?:  )+", lambda spaces: "\t" * (len(spaces[0]) // 2), text, flags=re.M)
