"""One process at a time at a file or folder, on every system."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt

    _BYTE = 2**31 - 2
    """The byte that is locked: past the content, which others may read meanwhile."""

    def lock(descriptor: int) -> None:
        """Keep others out until ``descriptor`` is closed; BlockingIOError where one has it."""
        here = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from error
        finally:
            os.lseek(descriptor, here, os.SEEK_SET)

else:

    def lock(descriptor: int) -> None:
        """Keep others out until ``descriptor`` is closed; BlockingIOError where one has it.

        OSError of another kind where the file system has no locks.
        """
        try:
            import fcntl
        except ImportError:  # a Python without it, such as WebAssembly's
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def open_for_appending(path: str | os.PathLike[str]) -> int:
    """Open the file, which is made where there is none, for reading and for appending bytes."""
    binary = getattr(os, "O_BINARY", 0)  # Windows would change line ends
    private = getattr(os, "O_CLOEXEC", 0)  # Windows never passes files on
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | binary | private)
