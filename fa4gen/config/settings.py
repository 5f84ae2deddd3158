"""Keys of configs that the command line sets: ``--set key=value``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTION = "--set"
_KEY = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class Setting:
    """One key with its value."""

    text: str
    """The user's text: ``BN=64``."""
    path: tuple[str, ...]
    """The key, and with dots the keys inside it: ``registers.producer``."""
    value: Any
    """The value by YAML."""
    note: str = ""
    """A note on YAML's reading, if that may surprise."""
    flag: str = OPTION
    """The option that it was given by."""

    @property
    def words(self) -> list[str]:
        """The option as words of a command line."""
        return [self.flag, self.text]

    @property
    def option(self) -> str:
        """The option with its value, as messages name it."""
        return f"{self.flag} {self.text}"


def parse_settings(texts: Sequence[str]) -> tuple[Setting, ...]:
    """Return the settings in ``texts``, each ``key=value`` with the value in YAML.

    Raises ConfigError with everything that is wrong with them; whether there is such a key shows
    when a config is read.
    """
    settings: dict[tuple[str, ...], Setting] = {}
    problems: list[Problem] = []
    for text in texts:
        try:
            setting = _parse(text)
        except ConfigError as error:
            problems += error.problems
            continue
        for other in settings.values():
            shorter = min(len(setting.path), len(other.path))
            if setting.path[:shorter] == other.path[:shorter]:
                what = f"{'.'.join(setting.path)} is set already by {other.option}"
                problems.append(Problem(what, "Give one of them.", option=setting.option))
                break
        settings.setdefault(setting.path, setting)
    if problems:
        raise ConfigError(*problems)
    return tuple(settings.values())


def option_setting(flag: str, key: str, text: str) -> Setting:
    """Return the setting of ``key`` by an option of its own, ``flag``; ConfigError."""
    return _setting(text, (key,), text, flag)


def _parse(text: str) -> Setting:
    option = f"{OPTION} {text}"
    key, equals, value = text.partition("=")
    if not equals or not _KEY.fullmatch(key):
        what = f"{text!r} is not KEY=VALUE"
        raise ConfigError(Problem(what, "Write for example BN=64.", option=option))
    path = tuple(key.split("."))
    if path[0] == "extends":
        what = "extends is set in files only"
        raise ConfigError(Problem(what, "Write it into a config.", option=option))
    return _setting(text, path, value, OPTION)


def _setting(text: str, path: tuple[str, ...], value: str, flag: str) -> Setting:
    from fa4gen.config.yaml_positions import read_document

    try:
        document = read_document(value, "")
        wrong = document.problems
    except ConfigError as error:
        wrong = error.problems
    if wrong:
        option = f"{flag} {text}"
        raise ConfigError(*(Problem(p.message, p.remedy, option=option) for p in wrong))
    return Setting(text, path, document.value, document.notes.get((), ""), flag)
