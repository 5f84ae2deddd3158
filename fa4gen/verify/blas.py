"""Keeps NumPy's matrix products from starting threads of their own."""

from __future__ import annotations

import os

VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def use_one_blas_thread() -> None:
    """Let each matrix product of this process, and of those that it starts, run on one thread.

    Verify works on many cases at a time; if each of their thousands of small products starts
    threads, too, they compete for cores: five times slower was measured on two of them. To be
    called before NumPy is imported, which reads the setting then; later it only counts for new
    processes. A value that the user has set is kept.
    """
    for variable in VARIABLES:
        os.environ.setdefault(variable, "1")
