"""Keeps the Python code that Jinja makes of the shipped templates, so that a run need not again.

A file for each template and Python version, replaced when anything that determines the code has
changed. The code is executed, so only a file that nobody else could write is read.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

import jinja2

from fa4gen.cache_folder import cache_folder, read_own
from fa4gen.temporary import NEW_IN_CACHE, clean_cache

if TYPE_CHECKING:
    from collections.abc import Callable
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class CompiledTemplates:
    """A folder of compiled templates; where it cannot be used, each is compiled every time."""

    folder: Path
    origin: str
    """The version of everything that turns templates into code, as a text."""

    @classmethod
    def default(cls, environment_file: Path) -> CompiledTemplates:
        """Return fa4gen's own, for the environment that ``environment_file`` defines."""
        jinja = Path(jinja2.__file__).parent
        try:
            makers = [(file, file.stat()) for file in sorted(jinja.glob("*.py"))]
            stamps = [(str(file), made.st_size, made.st_mtime_ns) for file, made in makers]
            digest = hashlib.sha256(environment_file.read_bytes()).hexdigest()
        except OSError:
            return cls(Path(os.devnull), "")  # the origin of the code cannot be known: keep none
        return cls(cache_folder() / "templates", json.dumps([sys.version, digest, stamps]))

    def code(self, name: str, path: Path, text: str, make: Callable[[], CodeType]) -> CodeType:
        """Return the code of the template ``name``, whose text was read from ``path``.

        Kept code is returned; else ``make`` is called, and its result kept.
        """
        file = self.folder / f"{_digest(sys.version, str(path)).hex()[:32]}.bin"
        key = _digest(self.origin, name, str(path), text)
        code = _load(file, key)
        if code is None:
            code = make()
            _store(file, key, code)
        return code


def _digest(*texts: str) -> bytes:
    return hashlib.sha256(json.dumps(texts).encode()).digest()


def _load(file: Path, key: bytes) -> CodeType | None:
    """Return the code in ``file``; None when it is not that of ``key``, whole and one's own."""
    try:
        data = read_own(file)
    except OSError:
        return None
    content = data[2 * _DIGEST :]
    if data[: 2 * _DIGEST] != key + hashlib.sha256(content).digest():
        return None
    code = marshal.loads(content)  # own and whole
    return code if isinstance(code, CodeType) else None


def _store(file: Path, key: bytes, code: CodeType) -> None:
    import tempfile

    content = marshal.dumps(code)
    with suppress(OSError):  # a run without it is slower and has the same results
        file.parent.mkdir(parents=True, exist_ok=True)
        clean_cache([file.parent])
        descriptor, private = tempfile.mkstemp(prefix=NEW_IN_CACHE, dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(key + hashlib.sha256(content).digest() + content)
            Path(private).replace(file)
        except BaseException:
            Path(private).unlink(missing_ok=True)
            raise
