"""Keeps the Python code that Jinja makes of the shipped templates, so that a run need not again."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from fa4gen.cache_folder import MODE, cache_folder, read_own
from fa4gen.temporary import replace_file

if TYPE_CHECKING:
    from jinja2.bccache import Bucket


class CompiledTemplates(jinja2.BytecodeCache):
    """A folder with a file for each template, replaced when what the code depends on has changed.

    The code is executed, so only a file that nobody else could write is read.
    """

    def __init__(self, folder: Path, origin: str) -> None:
        """Keep code in ``folder``; ``origin`` is the version of all that makes it of templates."""
        self.folder = folder
        self.origin = origin

    @classmethod
    def default(cls, environment_file: Path) -> CompiledTemplates | None:
        """Return fa4gen's own, for the environment that ``environment_file`` defines."""
        try:
            jinja = Path(jinja2.__file__).stat()
            digest = hashlib.sha256(environment_file.read_bytes()).hexdigest()
        except OSError:
            return None  # the origin of the code cannot be known: keep none
        origin = [sys.version, digest, jinja2.__file__, jinja.st_mtime_ns, jinja.st_size]
        return cls(cache_folder() / "templates", json.dumps(origin))

    def get_source_checksum(self, source: str) -> str:
        """Return the hash of everything that determines the code of the text ``source``."""
        return hashlib.sha256(f"{self.origin}\n{source}".encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take the code that is kept, if it is one's own, whole, and of the same text."""
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            bucket.bytecode_from_string(read_own(self._file(bucket)))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code; a run without it is slower and has the same results."""
        with suppress(OSError):
            replace_file(self._file(bucket), bucket.bytecode_to_string(), MODE)

    def _file(self, bucket: Bucket) -> Path:
        return self.folder / f"{bucket.key}.bin"
