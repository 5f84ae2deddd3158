"""Errors of the caller, before or during an emulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction


_LONGEST = 1000  # characters of a message: names of C++ templates are long, too


class EmulatorError(Exception):
    """An error for the user: its cause, its place, and the expectation."""


class PtxSyntaxError(EmulatorError):
    """The text is not PTX as far as the parser can tell."""

    def __init__(self, message: str, line: int) -> None:
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]} ..."
        super().__init__(f"line {line}: {message}")
        self.line = line


class UnsupportedError(EmulatorError):
    """An instruction or a modifier that the emulator does not model.

    The emulator never guesses: an unknown instruction ends the launch before it starts.
    """

    def __init__(self, instruction: Instruction, reason: str = "") -> None:
        detail = f": {reason}" if reason else ""
        super().__init__(f"line {instruction.line}: {instruction.text} is not modelled{detail}")
        self.line = instruction.line
        self.opcode = instruction.text


class LaunchError(EmulatorError):
    """A launch whose arguments or options do not fit the entry, the chip or this machine.

    ``key`` is the argument or the launch file's key at fault, if any.
    """

    def __init__(self, message: str, key: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.remedy = remedy


class OutOfMemoryError(LaunchError):
    """A launch that needs more memory than it may use, or than this machine gives."""
