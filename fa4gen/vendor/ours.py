"""The files of a vendored folder that their names and contents show to be fa4gen's.

The lock alone does not show that: whoever can change it can list a file of the user's with its
hash. What is deleted, or replaced without being kept aside, has to pass ``is_generated`` as well.
"""

from __future__ import annotations

import re

from fa4gen.render.marks import has_mark
from fa4gen.resources import license_terms
from fa4gen.vendor.lock import LOCK_NAME, STATE_FOLDER

LICENSE = "LICENSE"
_ASIDE = re.compile(r"\.orig(\.[0-9]+)?$")
_OWN = (LOCK_NAME, f"{STATE_FOLDER}/originals.zip")
UNSHOWN = "the lock lists it, but its name and its head do not show that fa4gen wrote it"
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


def has_own_name(path: str) -> bool:
    """Whether fa4gen gives this name to a file of a folder, or to one that it keeps aside."""
    name = _ASIDE.sub("", path)
    return name in _OWN or name == LICENSE or _NAMES.fullmatch(name) is not None


def is_generated(path: str, data: bytes) -> bool:
    """Whether ``data`` at ``path`` of a folder has a name that fa4gen gives, and fa4gen's mark."""
    if path in _OWN:
        return True
    if path == LICENSE:
        return data == license_terms().encode()
    return _NAMES.fullmatch(path) is not None and has_mark(data)
