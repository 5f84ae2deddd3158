"""Imports CuPy on machines without a home folder, a driver or a toolkit, which it expects."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from fa4gen.errors import MissingCapabilityError, Problem

_CACHE_VARIABLE = "CUPY_CACHE_DIR"


def import_nvrtc() -> Any:
    """Return CuPy's binding of NVRTC; MissingCapabilityError when CuPy cannot be imported."""
    _give_cupy_a_cache_folder()
    try:
        # CuPy warns about what a machine without GPU or toolkit lacks; none of it matters here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from cupy.cuda import nvrtc
    except ImportError as error:
        raise MissingCapabilityError(
            Problem(
                f"CuPy, which is needed to call NVRTC, cannot be imported: {error}",
                "Install it with: pip install cupy-cuda13x  (or use --compiler nvcc).",
            )
        ) from error
    return nvrtc


def _give_cupy_a_cache_folder() -> None:
    """Name a temporary folder where CuPy could not make its own: its import fails without one."""
    if "cupy" in sys.modules:
        return
    folder = os.environ.get(_CACHE_VARIABLE) or os.path.expanduser("~/.cupy/kernel_cache")  # noqa: PTH111 (never raises)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError:
        temporary = tempfile.mkdtemp(prefix="fa4gen-cupy-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        os.environ[_CACHE_VARIABLE] = temporary
