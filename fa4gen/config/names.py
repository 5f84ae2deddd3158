"""Names that become names of files: what every system that people work on can check out."""

from __future__ import annotations

import re

_SWEEP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def is_device_name(name: str) -> bool:
    """Whether Windows takes ``name``, with whatever suffix, for a device instead of a file."""
    return name.partition(".")[0].casefold() in _DEVICES


def is_sweep_name(name: str) -> bool:
    """Whether ``name`` can name a sweep's results file: no folder, no device, 100 characters."""
    return bool(_SWEEP_NAME.fullmatch(name)) and not is_device_name(name)
