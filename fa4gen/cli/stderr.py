"""A stderr that takes no more, on a full disk or a closed pipe, changes nothing of a run."""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Forgiving(io.FileIO):
    """A file of which writes that fail are dropped."""

    def write(self, data: Buffer, /) -> int:
        """Write ``data``, or nothing of it; return how many bytes are done with."""
        with suppress(OSError):
            return super().write(data) or 0
        return memoryview(data).nbytes


def forgive_stderr() -> None:
    """Drop messages that cannot be written to stderr: no error, no other exit status."""
    stream = sys.stderr
    if stream is not sys.__stderr__ or not isinstance(stream, io.TextIOWrapper):
        return  # a caller's own
    stream.flush()
    raw = _Forgiving(stream.fileno(), "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )
