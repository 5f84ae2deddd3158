"""A wheel of the package and a fresh environment that has it; nothing is downloaded."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program without the environment that would let it see the checkout."""
    ours = ("PYTHON", "FA4GEN_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def build(kind: str, out: Path, source: Path = ROOT, **environment: str) -> Path:
    pytest.importorskip("hatchling", reason="building needs hatchling")
    done = run(
        sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", out, cwd=source, **environment
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built


def install(wheel: Path, folder: Path) -> Path:
    """Make an environment in ``folder`` that has the wheel; return its folder of programs.

    It borrows the dependencies of this environment.
    """
    there = folder.parent
    done = run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=there)
    assert done.returncode == 0, done.stderr
    python = folder / "bin" / "python"
    options = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    done = run(sys.executable, "-m", "pip", "--python", python, *options, wheel, cwd=there)
    if "No module named pip" in done.stderr:
        pytest.skip("installing needs pip in this environment")
    assert done.returncode == 0, done.stderr
    (packages,) = folder.glob("lib/python*/site-packages")
    # Searched after the environment's own packages; .pth files in there, such as those of an
    # editable fa4gen, do not count.
    packages.joinpath("dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # Shared libraries are looked for in the environment's own packages alone.
    libraries = Path(sysconfig.get_path("purelib")) / "nvidia"
    if libraries.is_dir():
        packages.joinpath("nvidia").symlink_to(libraries)
    return python.parent
