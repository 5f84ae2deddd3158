"""Instructions that are refused as a whole, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_TEXTURES: Final = "textures and surfaces, which only a driver makes, do not exist here"
_STACK: Final = "memory of the stack has no addresses here"
_REASONS: Final[dict[str, tuple[str, ...]]] = {
    _TEXTURES: ("tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"),
    _STACK: ("alloca", "stacksave", "stackrestore"),
    "it stops a kernel for a debugger, and there is none": ("brkpt",),
    "a copy to several devices by the copy engine, and there is one device": (
        "multimem.cp",
    ),
}  # fmt: skip


def _refusal(reason: str) -> Translate:
    def refuse(i: Instruction, e: Emitter) -> None:
        raise e.refuse(reason)

    return refuse


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    opcode: _refusal(reason) for reason, opcodes in _REASONS.items() for opcode in opcodes
}
