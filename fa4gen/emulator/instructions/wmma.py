"""``wmma``: matrices whose fragments only ``wmma`` instructions understand (PTX ISA, "wmma")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fa4gen.emulator.instructions.registry import Translate

TRANSLATIONS: Final[Mapping[str, Translate]] = {}
