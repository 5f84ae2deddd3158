"""A folder of compiled kernels keyed by everything that determines the result.

Entries are written to a private folder, synced and renamed into place; nothing is locked. Of two
processes that compile the same kernel the later one keeps its own result. An entry is used only if
all of its hashes are right, and replaced otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.cache_folder import cache_folder, read_own
from fa4gen.json_text import parse_json
from fa4gen.temporary import NEW_IN_CACHE, clean_cache
from fa4gen.toolchain.model import Built

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.toolchain.model import Compiler, Unit

SCHEMA = 2
"""Increased when the form of entries or the meaning of a key's ingredients changes."""
_ENTRY = "entry.json"
_PTX, _CUBIN, _LOG = "kernel.ptx", "kernel.cubin", "log.txt"


def key_ingredients(unit: Unit, compiler: Compiler) -> dict[str, Any]:
    """Return everything that determines the result of ``compiler`` for ``unit``."""
    return {
        "schema": SCHEMA,
        "name": unit.name,
        "arch": unit.arch,
        "source": _sha256(unit.source.encode()),
        "headers": {name: _sha256(unit.headers[name].encode()) for name in sorted(unit.headers)},
        "options": list(compiler.options(unit)),
        "compiler": compiler.name,
        "compiler_version": compiler.version,
    }


def content_key(ingredients: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the ingredients, in hexadecimal."""
    return _sha256(json.dumps(ingredients, sort_keys=True).encode())


@dataclass(frozen=True)
class Entry:
    """An entry read from the cache."""

    built: Built
    seconds: float


@dataclass(frozen=True)
class Cache:
    """A cache folder; it is made when the first entry is stored."""

    root: Path

    @classmethod
    def default(cls) -> Cache:
        """Return the cache in fa4gen's own folder, see ``cache_folder``."""
        return cls(cache_folder())

    def folder(self, key: str) -> Path:
        """Return the folder of the entry of ``key``, which may not exist."""
        return self.root / f"v{SCHEMA}" / key[:2] / key

    def load(self, key: str) -> Entry | None:
        """Return the entry of ``key``; None for none, a damaged one, or one that others write."""
        folder = self.folder(key)
        try:
            record = parse_json(read_own(folder / _ENTRY))
            data = {name: read_own(folder / name) for name in (_PTX, _CUBIN, _LOG)}
            intact = record["key"] == key and all(
                record["sha256"][name] == _sha256(content) for name, content in data.items()
            )
            if not intact or not data[_PTX] or not data[_CUBIN]:
                return None
            built = Built(data[_PTX].decode(), data[_CUBIN], data[_LOG].decode())
            return Entry(built, float(record["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def store(self, key: str, ingredients: Mapping[str, Any], entry: Entry) -> str:
        """Publish ``entry``; return "" or why it could not be kept. Never raises for the disk."""
        data = {
            _PTX: entry.built.ptx.encode(),
            _CUBIN: entry.built.cubin,
            _LOG: entry.built.log.encode(),
        }
        record = {
            "key": key,
            "ingredients": dict(ingredients),
            "seconds": entry.seconds,
            "sha256": {name: _sha256(content) for name, content in data.items()},
        }
        data[_ENTRY] = (json.dumps(record, indent=2) + "\n").encode()
        folder = self.folder(key)
        private: Path | None = None
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            clean_cache(each for each in folder.parent.parent.iterdir() if each.is_dir())
            private = Path(tempfile.mkdtemp(prefix=NEW_IN_CACHE, dir=folder.parent))
            for name, content in data.items():
                _write_synced(private / name, content)
            _sync_folder(private)
            self._publish(private, folder, key)
            _sync_folder(folder.parent)
        except OSError as error:
            return f"not kept in the cache: {error.strerror}: {error.filename or self.root}"
        finally:
            if private is not None:
                shutil.rmtree(private, ignore_errors=True)
        return ""

    def _publish(self, private: Path, folder: Path, key: str) -> None:
        """Rename ``private`` to ``folder``, unless an intact entry is there already."""
        private.chmod(0o755)
        try:
            private.rename(folder)
        except OSError:
            if self.load(key) is not None:
                return
            # Something damaged is in the way: rename it aside, so that readers never see half.
            aside = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
            try:
                with suppress(FileNotFoundError):  # another process was faster
                    folder.rename(aside / "entry")
                with suppress(OSError):  # likewise: its entry is as good
                    private.rename(folder)
            finally:
                shutil.rmtree(aside, ignore_errors=True)


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        path.chmod(0o644)  # whatever the umask: read_own refuses files that a group may write
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # Windows opens no folders, some network file systems sync files alone
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
