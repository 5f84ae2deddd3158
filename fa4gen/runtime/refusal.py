"""The report of a wrong argument: its name, the expected and the given value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.errors import ArgumentError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def wrong(argument: str, got: str, expected: str, remedy: str = "") -> Problem:
    """Describe one wrong argument."""
    return Problem(f"{argument}: expected {expected}, got {got}", remedy=remedy, key=argument)


def wrong_device(
    argument: str, device: int, expected: int, whose: str = "the query's"
) -> Iterator[Problem]:
    """Yield the error in the device of an array, if any; negative ones are the CPU.

    ``expected``: the device of the first tensor; if that is the CPU, devices are not compared.
    """
    if device < 0:
        yield wrong(argument, "memory of the CPU", "memory of a CUDA device")
    elif device != expected >= 0:
        yield wrong(argument, f"device {device}", f"{whose} device, {expected}")


def unwanted(argument: str, remedy: str) -> Problem:
    """Describe an array that this kernel does not take."""
    return wrong(argument, "an array", f"no {argument}", remedy)


def wrong_address(
    argument: str, pointer: int, multiple: int, remedy: str = ""
) -> Iterator[Problem]:
    """Yield the error in the address of an array, if any."""
    if pointer % multiple:
        expected = f"an address that is a multiple of {multiple} bytes"
        yield wrong(argument, f"{pointer:#x}", expected, remedy)


def refusal(argument: str, got: str, expected: str, *, remedy: str = "") -> ArgumentError:
    """Return the error for a single wrong argument."""
    return ArgumentError(wrong(argument, got, expected, remedy))


def refuse(problems: Iterable[Problem]) -> None:
    """Raise ArgumentError with all the problems, if there are any."""
    found = list(problems)
    if found:
        raise ArgumentError(*found)
