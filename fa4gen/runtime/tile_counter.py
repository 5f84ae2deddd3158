"""The counters of the dynamic scheduler: two int32 that are zero before and after every launch.

Launches that may run at the same time need counters of their own, so each stream has one, and each
captured graph too, since a graph can be replayed on any stream.
"""

from __future__ import annotations

import threading
from typing import Any

from fa4gen.errors import ArgumentError, Problem
from fa4gen.runtime.device import load_cupy, load_driver

COUNTERS_PER_BUFFER = 1024
COUNTER_BYTES = 32
"""A whole sector of L2, so that counters in use at once do not slow each other."""
LAST_LEGACY_STREAM = 1
"""Handles 0 and 1 are the legacy default stream, of which there is one, and no capture."""
NO_CAPTURE = 0
UNKNOWN_CAPTURE = -1


class TileCounters:
    """The counters on one GPU: the one that is current when the first counter is requested."""

    def __init__(self) -> None:
        self._addresses: dict[tuple[int, int], int] = {}
        self._free: list[int] = []
        self._buffers: list[Any] = []
        self._lock = threading.Lock()

    def address(self, stream: int) -> int:
        """Return the device address of the counter for launches on ``stream``.

        Raises ArgumentError when memory would be needed while a graph is being captured.
        """
        key = stream_key(stream)
        address = self._addresses.get(key)
        if address is not None:
            return address
        with self._lock:
            if key not in self._addresses:
                if not self._free:
                    self._grow(capturing=key[1] != NO_CAPTURE)
                self._addresses[key] = self._free.pop()
            return self._addresses[key]

    def _grow(self, *, capturing: bool) -> None:
        if capturing:
            raise ArgumentError(
                Problem(
                    "no tile counter is left for a launch inside a graph capture",
                    remedy="call the kernel once on this GPU before the capture begins",
                )
            )
        buffer = zeros(COUNTERS_PER_BUFFER * COUNTER_BYTES)
        self._buffers.append(buffer)
        start = int(buffer.data.ptr)
        self._free += range(start, start + buffer.nbytes, COUNTER_BYTES)


def zeros(size: int) -> Any:
    """Return a buffer of so many bytes of zeros on the current GPU."""
    cupy = load_cupy()
    buffer = cupy.zeros(size, dtype=cupy.uint8)
    cupy.cuda.get_current_stream().synchronize()  # other streams use the zeros as well
    return buffer


def stream_key(stream: int) -> tuple[int, int]:
    """Return a key that differs for launches that may run at the same time: stream, captured graph.

    The second number is NO_CAPTURE, or the graph's number.
    """
    capture = _capture_id(stream)
    # Within a capture a handle identifies the stream, and querying its number would invalidate the
    # capture.
    return _stream_id(stream) if capture == NO_CAPTURE else stream, capture


def _stream_id(stream: int) -> int:
    """Return a number that no other stream ever has; handles are reused."""
    if stream <= LAST_LEGACY_STREAM:
        return 0
    driver = load_driver()
    result = driver.cuStreamGetId(stream)
    return int(result[1]) if result[0] == driver.CUresult.CUDA_SUCCESS else -stream


def _capture_id(stream: int) -> int:
    """Return the number of the graph capture that ``stream`` is part of, or NO_CAPTURE."""
    if stream <= LAST_LEGACY_STREAM:
        return NO_CAPTURE
    if not load_cupy().cuda.runtime.streamIsCapturing(stream):
        return NO_CAPTURE
    driver = load_driver()
    result = driver.cuStreamGetCaptureInfo(stream)
    return int(result[2]) if result[0] == driver.CUresult.CUDA_SUCCESS else UNKNOWN_CAPTURE
