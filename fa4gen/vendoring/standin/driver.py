"""The stand-in, loaded into this process: its devices, its errors, its records.

It has one set of records for the whole process. A launcher that was built with
``build_library(..., stand_in=...)`` opens it by its path, whatever else is loaded.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from fa4gen.vendoring.standin.build import build_stand_in
from fa4gen.vendoring.standin.records import (
    Image,
    Launch,
    Memset,
    Setting,
    TensorMapCall,
    read_records,
)

if TYPE_CHECKING:
    from pathlib import Path

MAX_DEVICES: Final = 64
NO_CONTEXT: Final = -1
_NO_CHOICE: Final = -2
_R = TypeVar("_R")


@dataclass(frozen=True)
class SimulatedDevice:
    """A device to stand for: its target, of a family the oldest member, and multiprocessors."""

    arch: str = "sm_90a"
    multiprocessors: int = 132

    @property
    def sm(self) -> int:
        """90 for 9.0, 103 for 10.3."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))


class StandIn:
    """The stand-in of a path; loading a path twice gives the same records."""

    def __init__(self, path: Path | None = None) -> None:
        """Load the library at ``path``; MissingCapabilityError without one and a C compiler."""
        self.path = build_stand_in() if path is None else path
        self._library = library = ctypes.CDLL(str(self.path))
        library.standin_records.restype = ctypes.c_char_p

    def reset(self) -> None:
        """Forget all records and errors."""
        self._library.standin_reset()

    def set_devices(self, *devices: SimulatedDevice) -> None:
        """Stand for these devices, 64 at most, by their ordinals."""
        count = len(devices)
        sms = (ctypes.c_int * count)(*(device.sm for device in devices))
        units = (ctypes.c_int * count)(*(device.multiprocessors for device in devices))
        if self._library.standin_set_devices(count, sms, units):
            raise ValueError(f"{count} devices; at most {MAX_DEVICES} are possible")

    def use_device(self, device: SimulatedDevice) -> int:
        """Make a device like this current, and return its ordinal, added where there was none.

        Launchers remember what they asked of an ordinal: so a process that only calls this may go
        from one architecture to another.
        """
        ordinal: int = self._library.standin_find_device(device.sm, device.multiprocessors)
        if ordinal < 0:
            raise ValueError(f"more than {MAX_DEVICES} devices")
        self.set_current(ordinal)
        return ordinal

    def set_current(self, device: int | None, *, only_this_thread: bool = False) -> None:
        """Make a device's context current; None: no context is."""
        number = NO_CONTEXT if device is None else device
        if only_this_thread:
            self._library.standin_set_thread(number)
        else:
            self._library.standin_set_thread(_NO_CHOICE)
            self._library.standin_set_current(number)

    def fail(self, function: str, result: int, *, after: int = 0, times: int = 1) -> None:
        """Let ``function`` return ``result``, ``times`` times after ``after`` calls; -1: always."""
        if self._library.standin_fail(function.encode(), after, times, result):
            raise ValueError(f"{function}: too long, or too many errors are asked for")

    def set_captured(self, stream: int) -> None:
        """Say that somebody else captures this stream; 0: none."""
        self._library.standin_set_captured(ctypes.c_uint64(stream))

    @property
    def living(self) -> int:
        """Streams, graphs and executable graphs that were made and not destroyed."""
        count: int = self._library.standin_living()
        return count

    @property
    def loaded(self) -> int:
        """Libraries of machine code that were loaded and not unloaded."""
        count: int = self._library.standin_loaded()
        return count

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Accepted calls of cuLaunchKernelEx, in their order, also those of launched graphs."""
        return self._records(Launch)

    @property
    def maps(self) -> tuple[TensorMapCall, ...]:
        """Calls of cuTensorMapEncodeTiled, also those that were refused."""
        return self._records(TensorMapCall)

    @property
    def memsets(self) -> tuple[Memset, ...]:
        """Calls of cuMemsetD8Async."""
        return self._records(Memset)

    @property
    def images(self) -> tuple[Image, ...]:
        """Return the machine code that was given to cuLibraryLoadData."""
        return self._records(Image)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Calls of cuKernelSetAttribute."""
        return self._records(Setting)

    def _records(self, kind: type[_R]) -> tuple[_R, ...]:
        lines = self._library.standin_records().decode()
        return tuple(one for one in read_records(lines) if isinstance(one, kind))
