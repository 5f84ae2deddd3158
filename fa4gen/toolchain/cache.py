"""A folder of compiled kernels keyed by everything that determines the result.

An entry is a file, written under another name and renamed into place; nothing is locked. It is used
only if its hash is right, and replaced otherwise.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.cache_folder import MODE, cache_folder, read_own
from fa4gen.json_text import parse_json
from fa4gen.render.manifest import sha256
from fa4gen.temporary import replace_file
from fa4gen.toolchain.model import Built

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.toolchain.model import Compiler, Unit

SCHEMA = 3
"""Increased when the form of entries or the meaning of a key's ingredients changes."""
SUFFIX = ".kernel"
"""The ending of an entry's file: a line with a hash, and JSON that it is the hash of."""


def key_ingredients(unit: Unit, compiler: Compiler) -> dict[str, Any]:
    """Return everything that determines the result of ``compiler`` for ``unit``."""
    return {
        "schema": SCHEMA,
        "name": unit.name,
        "arch": unit.arch,
        "source": sha256(unit.source),
        "headers": {name: sha256(unit.headers[name]) for name in sorted(unit.headers)},
        "options": list(compiler.options(unit)),
        "compiler": compiler.name,
        "compiler_version": compiler.version,
    }


def content_key(ingredients: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the ingredients, in hexadecimal."""
    return sha256(json.dumps(ingredients, sort_keys=True))


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

    def file(self, key: str) -> Path:
        """Return the file of the entry of ``key``, which may not exist."""
        return self.root / f"v{SCHEMA}" / key[:2] / f"{key}{SUFFIX}"

    def load(self, key: str) -> Entry | None:
        """Return the entry of ``key``; None for none, and for a damaged one."""
        try:
            digest, _, text = read_own(self.file(key)).partition(b"\n")
            record = parse_json(text) if digest == sha256(text).encode() else {}
            built = Built(record["ptx"], b64decode(record["cubin"]), record["log"])
            whole = record["key"] == key and built.ptx and built.cubin
            return Entry(built, record["seconds"]) if whole else None
        except (OSError, ValueError, KeyError):
            return None

    def store(self, key: str, ingredients: Mapping[str, Any], entry: Entry) -> str:
        """Publish ``entry``; return "" or why it could not be kept. Never raises for the disk."""
        record = {
            "key": key,
            "ingredients": dict(ingredients),
            "seconds": entry.seconds,
            "ptx": entry.built.ptx,
            "log": entry.built.log,
            "cubin": b64encode(entry.built.cubin).decode(),
        }
        text = json.dumps(record, indent=1).encode()
        try:
            replace_file(self.file(key), f"{sha256(text)}\n".encode() + text, MODE)
        except OSError as error:
            return f"not kept in the cache: {error.strerror}: {error.filename or self.root}"
        return ""
