"""``python -m fa4gen`` is the same as ``fa4gen``."""

from __future__ import annotations

import sys

from fa4gen.cli.main import main

if __name__ == "__main__":  # worker processes import this module under another name
    sys.exit(main())
