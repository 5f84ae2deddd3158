"""The files of a vendored folder that their names and contents show to be fa4gen's.

The lock alone does not show that: a person who can change it can list a file of the user's with its
hash. A file that is deleted or replaced has to pass ``is_generated`` as well.
"""

from __future__ import annotations

import re

from fa4gen.render.marks import has_mark
from fa4gen.resources import license_terms
from fa4gen.vendoring.lock import LOCK_NAME

LICENSE = "LICENSE"
_WORD = r"[a-z][a-z0-9_]*"
_NAMES = re.compile(
    "|".join(
        (
            rf"include/{_WORD}\.h",
            rf"src/{_WORD}\.[ch]",
            rf"test/{_WORD}\.c",
            rf"cubins/{_WORD}\.c",
            rf"kernels/{_WORD}(\.cu|_barriers\.h|_device\.cuh|\.json)",
            rf"cmake/{_WORD}-[a-z-]+\.cmake(\.in)?",
            rf"{_WORD}\.pc\.in",
            rf"adapters/{_WORD}/{_WORD}\.(py|cc|cpp)",
            r"(adapters/[a-z_]+/)?CMakeLists\.txt",
            r"README\.md|\.gitattributes|\.clang-format",
        )
    )
)


def is_generated(path: str, data: bytes) -> bool:
    """Whether ``data`` at ``path`` of a folder has a name that fa4gen gives, and fa4gen's mark."""
    if path == LOCK_NAME:
        return True
    if path == LICENSE:
        return data == license_terms().encode()
    return _NAMES.fullmatch(path) is not None and has_mark(data)
