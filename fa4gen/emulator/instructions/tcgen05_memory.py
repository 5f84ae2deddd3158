"""Tensor memory: allocation, loads and stores, waits and fences (PTX ISA, "tcgen05")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.waiting import MakeEnd

TRANSLATIONS: Final[Mapping[str, Translate]] = {}

ENDS: Final[Mapping[str, MakeEnd]] = {}
