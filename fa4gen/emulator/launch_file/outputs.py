"""Files named in a launch file for the contents of arrays after its first run."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from fa4gen.emulator.launch_file.array_files import BEGINNING
from fa4gen.emulator.launch_file.arrays import LaunchArrays
from fa4gen.emulator.launch_file.problems import LaunchFileError, LaunchProblem
from fa4gen.emulator.launch_file.run import Run
from fa4gen.temporary import replace_file


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
        stream = io.BytesIO()  # NumPy ignores errors of a file
        np.save(stream, run.arrays[name])
        replace_file(path, stream.getvalue())
    return tuple(files.values())


def _refused(text: str) -> LaunchFileError:
    return LaunchFileError(LaunchProblem(f"output: {text}", "output"))


def _may_be_replaced(path: Path) -> bool:
    if not path.is_file():  # a folder, a device or a pipe
        return False
    with path.open("rb") as stream:
        return stream.read(len(BEGINNING)) in (b"", BEGINNING)
