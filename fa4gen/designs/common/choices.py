"""The record of how each value of a plan came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from fa4gen.designs.common.model import Choice, ChoiceSource

if TYPE_CHECKING:
    from fa4gen.designs.common.kernel_config import KernelConfig

T = TypeVar("T")


class ChoiceLog:
    """Takes values from a config or their defaults, and remembers their origin."""

    def __init__(self, config: KernelConfig) -> None:
        self._written = config.model_fields_set
        self._rows: list[Choice] = []

    @property
    def rows(self) -> tuple[Choice, ...]:
        """The choices so far, in order."""
        return tuple(self._rows)

    def take(self, key: str, given: T | Literal["auto"], default: T, reason: str) -> T:
        """Return the config's value of ``key``, or ``default`` where that is auto."""
        if given == "auto":
            self.note(key, default, "auto", reason)
            return default
        value = given
        if key in self._written:
            self.note(key, value, "config")
        else:
            self.note(key, value, "default", reason)
        return value

    def note(self, key: str, value: object, source: ChoiceSource, reason: str = "") -> None:
        """Record a value that was decided elsewhere."""
        self._rows.append(Choice(key, value, source, reason))
