"""The memory that a launch may use, on this machine, and the use of the process now."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fa4gen.emulator.errors import OutOfMemoryError

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_UNKNOWN: Final = 4 << 30  # the memory taken to be free on a machine that does not report it
REMEDY: Final = "Make the launch smaller, or allow more with max_memory."


@dataclass(frozen=True, slots=True)
class Budget:
    """``limit``: bytes that the whole process may use."""

    limit: int

    def need(self, size: int, what: str, key: str = "") -> None:
        """Raise OutOfMemoryError where ``size`` more bytes, for ``what``, exceed the limit."""
        if process_bytes() + size > self.limit:
            raise OutOfMemoryError(
                f"{what}: {shown_bytes(size)} more than the process uses now would be above its "
                f"limit of {shown_bytes(self.limit)}",
                key,
                REMEDY,
            )

    def exceeded(self) -> str:
        """The process's use of memory beyond the limit, for a message; empty if within it."""
        used = process_bytes()
        if used <= self.limit:
            return ""
        return f"the process uses {shown_bytes(used)}, its limit is {shown_bytes(self.limit)}"


def default_budget() -> Budget:
    """The present use of the process, plus half of the free memory of the machine."""
    return Budget(process_bytes() + _free_bytes() // 2)


def process_bytes() -> int:
    """The memory of this process that is in use; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def shown_bytes(size: int) -> str:
    """A size as people write it: ``3.5 GiB``."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.4g} {_UNITS[unit]}" if unit else f"{size} bytes"


def _free_bytes() -> int:
    """The memory available without swapping, here and in the container."""
    found = [size for size in (_in_meminfo(), *_in_containers()) if size is not None]
    if found:
        return max(min(found), 0)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _in_meminfo() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _in_containers() -> list[int | None]:
    """Limits of control groups, of either version, less their use."""
    root = Path("/sys/fs/cgroup")
    pairs = (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    )
    return [_difference(limit, used) for limit, used in pairs]


def _difference(limit: Path, used: Path) -> int | None:
    try:
        return int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max", or no such file
        return None
