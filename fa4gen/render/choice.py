"""The record of which candidate of a config was taken, in a kernel's manifest or its hashes.

A config leaves keys to the plan, and a compiler decides which of the design's candidates it takes
for them. The record lets a kernel be rendered again to the same bytes without a compiler. It counts
for as long as the config is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fa4gen.json_text import parse_json
from fa4gen.render.manifest import CHOICE, manifest_json, sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.render.render import RenderedKernel


@dataclass(frozen=True)
class LeftOut:
    """A candidate that did not compile clean."""

    keys: Mapping[str, Any]
    why: str


@dataclass(frozen=True)
class ChoiceRecord:
    """The candidate that was taken."""

    keys: Mapping[str, Any] = field(default_factory=dict)
    """Values for keys that the config leaves to the plan; none for its first candidate."""
    compiler: str = ""
    """Name and version of the compiler that took it; "" where none was asked."""
    left: tuple[LeftOut, ...] = ()
    """The candidates tried before it, in order."""

    def data(self) -> dict[str, Any]:
        """Return the record as the manifest has it."""
        left = [{"set": dict(one.keys), "why": one.why} for one in self.left]
        return {"set": dict(self.keys), "compiler": self.compiler, "left": left}


FIRST = ChoiceRecord()
"""The first candidate, of which no compiler said anything."""


def choice_of(manifest: Mapping[str, Any]) -> ChoiceRecord:
    """Return the record of an intact manifest; FIRST for one of a version without the record."""
    try:
        return choice_from(manifest[CHOICE])
    except (KeyError, TypeError, AttributeError):
        return FIRST


def choice_from(said: Mapping[str, Any]) -> ChoiceRecord:
    """Return the record in ``said``, which ``ChoiceRecord.data`` gave; KeyError for other data."""
    left = tuple(LeftOut(dict(one["set"]), str(one["why"])) for one in said["left"])
    return ChoiceRecord(dict(said["set"]), str(said["compiler"]), left)


def with_choice(rendered: RenderedKernel, choice: ChoiceRecord) -> RenderedKernel:
    """Return ``rendered`` with ``choice`` in its manifest."""
    name = f"{rendered.name}.json"
    manifest = {**parse_json(rendered.files[name].encode()), CHOICE: choice.data()}
    return replace(rendered, files={**rendered.files, name: manifest_json(sealed(manifest))})


def not_compiled(rendered: RenderedKernel) -> RenderedKernel:
    """Return ``rendered`` as one of the same candidate of which no compiler said anything."""
    keys = choice_of(parse_json(rendered.files[f"{rendered.name}.json"].encode())).keys
    return with_choice(rendered, ChoiceRecord(keys))
