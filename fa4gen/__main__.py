"""``python -m fa4gen`` is the same as ``fa4gen``."""

from __future__ import annotations

import gc
import sys

try:
    import signal  # and what it imports: the first files that a run reads
except KeyboardInterrupt:
    sys.exit(130)

_YOUNG_OBJECTS = 50_000


def run() -> int:
    """Run the command line and return its exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of a half imported module
    gc.set_threshold(_YOUNG_OBJECTS)  # of what is imported nothing is garbage
    from fa4gen.cli.main import main

    return main()


if __name__ == "__main__":  # worker processes import this module under another name
    sys.exit(run())
