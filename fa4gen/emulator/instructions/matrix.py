"""Matrix fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fa4gen.emulator.instructions.registry import Translate

TRANSLATIONS: Final[dict[str, Translate]] = {}
