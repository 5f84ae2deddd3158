"""Reads the text of a file, or reports why that is not possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.config.expectations import similar
from fa4gen.config.file_kinds import KINDS, folder_kind, refuse_kind, wrong_kind
from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.config.file_kinds import Kind

MAX_BYTES = 1 << 20
"""A config is a few hundred bytes; anything larger is another kind of file."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_text(path: Path, wanted: Kind = "config", max_bytes: int = MAX_BYTES) -> str:
    """Return the text of the file at ``path``, which is to be of the kind ``wanted``.

    Raises ConfigError when it cannot be read, and when it is of another kind.
    """
    file = shown_path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            # reading it would wait for somebody to write
            raise ConfigError(
                Problem("this is a pipe or device, not a file", "Save the text in a file.", file)
            )
        with path.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise ConfigError(missing_file(path)) from error
    except IsADirectoryError as error:
        raise ConfigError(wrong_kind(path, folder_kind(path), wanted)) from error
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "Check its permissions." if isinstance(error, PermissionError) else ""
        raise ConfigError(Problem(f"cannot be read: {reason}", remedy, file)) from error
    if problem := refuse_kind(path, data, wanted):
        raise ConfigError(problem)
    if len(data) > max_bytes:
        remedy = f"Is this {KINDS[wanted].what}?"
        raise ConfigError(Problem(f"larger than {max_bytes} bytes", remedy, file))
    return _decode(data, file)


def missing_file(path: Path) -> Problem:
    """Return the problem that nothing exists at ``path``, with the most similar name that does."""
    folder = path.parent
    remedy = ""
    if not folder.is_dir():
        remedy = f"There is no folder {shown_path(folder)} either."
    else:
        try:
            names = sorted(entry.name for entry in folder.iterdir())
        except OSError:
            names = []
        near = similar(path.name, names)
        if near:
            remedy = f"Did you mean {shown_path(folder / near[0])}?"
    return Problem("no such file", remedy, shown_path(path))


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
        what = f"not UTF-8: byte 0x{data[error.start]:02x}"
        if data.startswith(_UTF16_MARKS):
            what, line, column = "UTF-16, not UTF-8", 1, 1
        raise ConfigError(Problem(what, "Save the file as UTF-8.", file, line, column)) from error
