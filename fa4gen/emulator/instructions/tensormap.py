"""Instructions of the family tensormap; none is modelled yet."""

from collections.abc import Mapping
from typing import Final

from fa4gen.emulator.instructions.registry import Translate

TRANSLATIONS: Final[Mapping[str, Translate]] = {}
