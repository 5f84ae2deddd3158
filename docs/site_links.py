"""A hook of mkdocs: links from a page to files outside docs/ become the text that they have.

On a hosting service such a link opens the file; the site has pages of docs/ alone.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def inside(folder: PurePosixPath, target: str) -> bool:
    """Return whether ``target``, written on a page in ``folder``, is in docs/ or on the web."""
    if ":" in target:
        return True
    depth = len(folder.parts)
    for part in PurePosixPath(target).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page's text without links that lead out of docs/."""
    folder = PurePosixPath(page.file.src_uri).parent
    return _LINK.sub(
        lambda match: match[0] if inside(folder, match[2]) else match[1],
        markdown,
    )
