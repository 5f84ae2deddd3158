"""Registers, stack, spills and shared memory out of ptxas's report."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fa4gen.toolchain.model import Resources

# nvcc writes these lines as "    0 bytes stack frame, ...", NVRTC as "ptxas         .     0 bytes".
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads"
)
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")
_LOCAL = re.compile(r"(\d+) bytes lmem")


@dataclass(frozen=True)
class FunctionFrame:
    """Stack and spills of one function, per thread, with the line of the log that says so."""

    function: str
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    log_line: str


def function_frames(log: str) -> list[FunctionFrame]:
    """Return stack and spills of each function by ``ptxas -v``, in the log's order."""
    frames = []
    function = ""
    for line in log.splitlines():
        if match := _PROPERTIES.search(line):
            function = match[1].strip("'")
        elif match := _FRAME.search(line):
            stack, stores, loads = (int(match[key]) for key in ("stack", "stores", "loads"))
            frames.append(FunctionFrame(function, stack, stores, loads, line.strip()))
    return frames


def read_resources(log: str) -> Resources:
    """Return the resources of the kernels in a log: the largest of several kernels'.

    Spills are summed over the functions.
    """
    used = [(int(match[1]), match[2]) for match in _USED.finditer(log)]
    frames = function_frames(log)
    return Resources(
        registers=max((count for count, _ in used), default=0),
        stack_bytes=max((frame.stack_bytes for frame in frames), default=0),
        spill_store_bytes=sum(frame.spill_store_bytes for frame in frames),
        spill_load_bytes=sum(frame.spill_load_bytes for frame in frames),
        static_shared_bytes=max((_sum(_SHARED, rest) for _, rest in used), default=0),
        local_bytes=max((_sum(_LOCAL, rest) for _, rest in used), default=0),
    )


def _sum(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return sum(int(group) for group in match.groups() if group) if match else 0
