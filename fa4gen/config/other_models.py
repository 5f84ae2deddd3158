"""Keys and values that a config could have with other values of the keys that decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fa4gen.config.expectations import Expectations
from fa4gen.designs.registry import DECIDING_IN_ARCH, USUAL
from fa4gen.yaml_words import listing, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.config.expectations import JsonSchema
    from fa4gen.config.yaml_positions import KeyPath


class Home(NamedTuple):
    """The place of a key that this config may not have."""

    deciding_key: str
    """The key to change: "arch" or "kernel"."""
    words: str
    """"sm_90a", or "kernel attention"."""


class OtherModels:
    """Answers for all architectures and families but those that ``data`` names.

    A family is another one only where ``data`` names one that exists, and so is an architecture.
    """

    def __init__(self, schema: JsonSchema, data: Mapping[str, Any]) -> None:
        everything = Expectations(schema, {})
        self._schema = schema
        self._data = data
        self._archs = list(dict.fromkeys(everything.values(("arch",))))
        self._kernels = list(dict.fromkeys(everything.values(("kernel",))))

    def home_of(self, path: KeyPath) -> Home | None:
        """Return the place where the key at ``path`` is known; the same family comes first."""
        archs = [arch for arch, e in self._other_archs(self._data) if _has(e, path)]
        if archs:
            return Home("arch", listing(archs, "and"))
        families = [words for kernel in self._other_kernels() for words in self._in(kernel, path)]
        return Home("kernel", listing(families, "and")) if families else None

    def possible(self, path: KeyPath, value: Any) -> list[str]:
        """Return a sentence on the architectures that take ``value`` at ``path``, or none."""
        archs: dict[str, list[str]] = {}
        for arch, expected in self._other_archs(self._data):
            accepted = expected.accepted(path, value)
            if accepted is not None:
                archs.setdefault(shown(accepted), []).append(arch)
        words = [f"{word} is possible with arch {listing(there)}." for word, there in archs.items()]
        return words or self._possible_here(path, value)

    def _possible_here(self, path: KeyPath, value: Any) -> list[str]:
        """Return sentences on keys of which another value, with the same architecture, goes."""
        words = []
        for key in DECIDING_IN_ARCH:
            given = self._data.get(key, USUAL.get(key))
            there = [
                shown(other)
                for other in dict.fromkeys(Expectations(self._schema, self._data).values((key,)))
                if other != given
                and Expectations(self._schema, {**self._data, key: other}).accepted(path, value)
                is not None
            ]
            if there and path != (key,):
                words.append(f"{shown(value)} is possible with {key}: {listing(there)}.")
        return words

    def _other_archs(self, data: Mapping[str, Any]) -> Iterator[tuple[str, Expectations]]:
        if data.get("arch") in self._archs:
            for arch in self._archs:
                if arch != data["arch"]:
                    yield arch, Expectations(self._schema, {**data, "arch": arch})

    def _other_kernels(self) -> list[str]:
        named = self._data.get("kernel")
        return [k for k in self._kernels if k != named] if named in self._kernels else []

    def _in(self, kernel: str, path: KeyPath) -> list[str]:
        """Return ``kernel`` in words where it knows the key; with the architectures, if others."""
        data = {**self._data, "kernel": kernel}
        if _has(Expectations(self._schema, data), path):
            return [f"kernel {kernel}"]
        archs = [arch for arch, expected in self._other_archs(data) if _has(expected, path)]
        return [f"kernel {kernel} with arch {listing(archs, 'and')}"] if archs else []


def _has(expected: Expectations, path: KeyPath) -> bool:
    return path[-1] in expected.keys(path[:-1])
