"""Files named in a launch file for the contents of arrays after its first run."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.launch_file.array_files import BEGINNING
from fa4gen.emulator.launch_file.arrays import LaunchArrays
from fa4gen.emulator.launch_file.problems import LaunchFileError, LaunchProblem
from fa4gen.emulator.launch_file.run import Run


def output_files(launch: LaunchArrays, folder: Path, *, force: bool = False) -> dict[str, Path]:
    """Return the file of each array with an ``output``, below ``folder``.

    Raises LaunchFileError for a file elsewhere, links followed, and for one that exists and is not
    a .npy file, unless ``force`` allows to replace it.
    """
    root = folder.resolve()
    files = {}
    for name, one in launch.described.items():
        if one.output is None:
            continue
        path = (root / one.output).resolve()
        if not path.is_relative_to(root):
            raise _refused(
                f"{one.output!r} is outside of {folder}: a launch file writes below its folder, "
                "or below that of --out"
            )
        if path.exists() and not force and not _may_be_replaced(path):
            raise _refused(
                f"{one.output!r} exists and is no .npy file: name another, or give --force"
            )
        files[name] = path
    return files


def save_outputs(files: dict[str, Path], run: Run) -> tuple[Path, ...]:
    """Write the arrays of ``run`` to their ``files``; types of ml_dtypes as raw bytes."""
    for name, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, run.arrays[name])
    return tuple(files.values())


def _refused(text: str) -> LaunchFileError:
    return LaunchFileError(LaunchProblem(f"output: {text}", "output"))


def _may_be_replaced(path: Path) -> bool:
    if not path.is_file():  # a folder, a device or a pipe
        return False
    with path.open("rb") as stream:
        return stream.read(len(BEGINNING)) in (b"", BEGINNING)


def _save(path: Path, array: NDArray[Any]) -> None:
    """Write ``array`` by a rename: no half of it is left where the disk is full."""
    stream = io.BytesIO()  # NumPy ignores errors of a file
    np.save(stream, array)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(stream.getvalue())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
